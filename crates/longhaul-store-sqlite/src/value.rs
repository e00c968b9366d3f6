//! The values of columns.

use longhaul_store::embedded::DiskError;
use longhaul_task::Timestamp;
use rusqlite::types::ValueRef;
use serde::Serialize;

/// Converts a number for a column. SQLite's integers are signed: numbers past `i64::MAX` are stored as `i64::MAX`, which is
/// read as `u64::MAX`. Only limits are so large, and `u64::MAX` means that there is none.
pub(crate) fn to_sql(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(crate) fn time_to_sql(at: Timestamp) -> i64 {
    to_sql(at.as_ms())
}

pub(crate) fn text(text: &str) -> ValueRef<'_> {
    ValueRef::Text(text.as_bytes())
}

pub(crate) fn maybe_text(maybe: Option<&str>) -> ValueRef<'_> {
    maybe.map_or(ValueRef::Null, text)
}

pub(crate) fn number(number: impl Into<i64>) -> ValueRef<'static> {
    ValueRef::Integer(number.into())
}

pub(crate) fn maybe_number(maybe: Option<i64>) -> ValueRef<'static> {
    maybe.map_or(ValueRef::Null, ValueRef::Integer)
}

pub(crate) fn json(value: &impl Serialize) -> Result<String, DiskError> {
    serde_json::to_string(value).map_err(|error| DiskError::Failed(error.to_string()))
}

//! A connection with its compiled statements and its shared texts.

use longhaul_store::embedded::DiskError;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Connection, OptionalExtension, Params};

use crate::error::disk_error;
use crate::row::Columns;
use crate::texts::Texts;

/// The writer has one of its own; the readers share a few.
#[derive(Debug)]
pub(crate) struct SqliteConnection {
    pub(crate) inner: Connection,
    texts: Texts,
}

impl SqliteConnection {
    pub(crate) fn new(connection: Connection) -> Self {
        Self { inner: connection, texts: Texts::default() }
    }

    /// Runs a statement that changes rows. Returns how many it changed.
    pub(crate) fn execute(&self, sql: &str, params: impl Params) -> Result<usize, DiskError> {
        self.statement(sql)?.execute(params).map_err(disk_error)
    }

    /// Runs a statement that changes rows, with the values of all groups as its parameters, in their order.
    pub(crate) fn execute_values(&self, sql: &str, groups: &[&[ValueRef<'_>]]) -> Result<usize, DiskError> {
        let mut statement = self.statement(sql)?;
        let mut index = 0;
        for group in groups {
            for value in *group {
                index += 1;
                statement.raw_bind_parameter(index, ToSqlOutput::Borrowed(*value)).map_err(disk_error)?;
            }
        }
        debug_assert_eq!(index, statement.parameter_count(), "a parameter without a value is NULL");
        statement.raw_execute().map_err(disk_error)
    }

    /// Reads the first row of a query, if it has one.
    pub(crate) fn row<T>(
        &mut self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(Columns<'_, '_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, DiskError> {
        let mut statement = self.inner.prepare_cached(sql).map_err(disk_error)?;
        let texts = &mut self.texts;
        statement.query_row(params, |row| read(Columns::of(row, texts))).optional().map_err(disk_error)
    }

    /// Reads all rows of a query.
    pub(crate) fn rows<T>(
        &mut self,
        sql: &str,
        params: impl Params,
        mut read: impl FnMut(Columns<'_, '_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, DiskError> {
        let mut statement = self.inner.prepare_cached(sql).map_err(disk_error)?;
        let texts = &mut self.texts;
        let rows = statement.query_map(params, |row| read(Columns::of(row, texts))).map_err(disk_error)?;
        rows.collect::<Result<_, _>>().map_err(disk_error)
    }

    fn statement(&self, sql: &str) -> Result<CachedStatement<'_>, DiskError> {
        self.inner.prepare_cached(sql).map_err(disk_error)
    }
}

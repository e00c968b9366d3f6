//! `[limits]`: every limit of `docs/limits.md` that can be changed.

use std::time::Duration;

use longhaul::{EmbeddedLimits, EngineLimits, RateLimits, ServerLimits, ToolLimits};
use toml::de::DeValue;

use super::section::{Form, NamedSection, article, unknown};
use super::unit::{self, UnitError};

/// All limits: the values of the file, and the defaults of those that it does not set.
#[derive(Debug, Clone, Default)]
pub(crate) struct Limits {
    /// Whether the file sets a limit.
    pub(crate) is_set: bool,
    pub(crate) server: ServerLimits,
    pub(crate) rates: RateLimits,
    pub(crate) engine: EngineLimits,
    pub(crate) tool: ToolLimits,
    pub(crate) policy: PolicyLimits,
    pub(crate) receiver: ReceiverLimits,
    pub(crate) store: EmbeddedLimits,
}

/// Limits of the policy of every tool in the file. `None` is the default of the library. A tool's own `attempts` and `backoff`
/// take precedence.
#[derive(Debug, Clone, Default)]
pub(crate) struct PolicyLimits {
    pub(crate) running_ms_max: Option<u64>,
    pub(crate) life_ms_max: Option<u64>,
    pub(crate) attempts_max: Option<u32>,
    pub(crate) backoff_ms: Option<u64>,
    pub(crate) backoff_ms_max: Option<u64>,
}

#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_field_names, reason = "the names are those of the limits")]
pub(crate) struct ReceiverLimits {
    pub(crate) ttl_ms_max: Option<u64>,
    pub(crate) anonymous_kept_ms_max: Option<u64>,
    pub(crate) list_page_max: Option<usize>,
}

/// A limit that can be set.
pub(crate) struct Limit {
    /// The name in `docs/limits.md`: the crate, a dot, the field.
    pub(crate) name: &'static str,
    pub(crate) form: Form,
    /// Sets the limit. Returns `None` if the value is too large.
    set: fn(&mut Limits, u64) -> Option<()>,
}

/// Converts a number of the file to the type of a limit. Times are in milliseconds.
trait FromNumber: Sized {
    fn from_number(number: u64) -> Option<Self>;
}

impl FromNumber for u64 {
    fn from_number(number: u64) -> Option<Self> {
        Some(number)
    }
}

impl FromNumber for u32 {
    fn from_number(number: u64) -> Option<Self> {
        number.try_into().ok()
    }
}

impl FromNumber for usize {
    fn from_number(number: u64) -> Option<Self> {
        number.try_into().ok()
    }
}

impl FromNumber for Duration {
    fn from_number(number: u64) -> Option<Self> {
        Some(Self::from_millis(number))
    }
}

impl<T: FromNumber> FromNumber for Option<T> {
    fn from_number(number: u64) -> Option<Self> {
        T::from_number(number).map(Some)
    }
}

macro_rules! limits {
    ($($crate_name:literal: $($form:ident $($place:ident).+ = $field:ident),+;)+) => {
        /// All limits that can be set.
        pub(crate) const LIMITS: &[Limit] = &[$($(
            Limit {
                name: concat!($crate_name, ".", stringify!($field)),
                form: Form::$form,
                set: |limits, number| {
                    limits.$($place).+.$field = FromNumber::from_number(number)?;
                    Some(())
                },
            },
        )+)+];
    };
}

limits! {
    "server":
        Bytes server = message_bytes_max, Count server = connections_max, Duration server = head_time_max,
        Duration server = body_time_max, Duration server = write_time_max, Bytes server = unread_bytes_max,
        Duration server = keep_alive, Count server = stream_messages_max, Count server = in_flight_max,
        Duration server = close_time_max;
    "receiver":
        Count rates = creates_per_second, Count rates = creates_burst, Count rates = reads_per_second,
        Count rates = reads_burst, Count rates = changes_per_second, Count rates = changes_burst,
        Count rates = others_per_second, Count rates = others_burst, Count rates = failed_lookups_per_second,
        Count rates = failed_lookups_burst,
        Count server.session = sessions_max, Duration server.session = idle_time_max, Count server.session = ended_max,
        Count server.session = requests_max, Count server.session = questions_max, Count server.session = listening_max,
        Count server.session = followed_max, Count server.session = resource_subscriptions_max,
        Count server.session = kept_messages_max, Bytes server.session = kept_bytes_max,
        Bytes server.session = all_kept_bytes_max, Count server.session = ended_streams_max,
        Count server.session = unread_messages_max, Duration server.session = broken_time_max,
        Duration receiver = ttl_ms_max, Duration receiver = anonymous_kept_ms_max, Count receiver = list_page_max;
    "engine":
        Count engine = open_per_owner_max, Duration engine = tool_gone_ms, Duration engine = drain_ms,
        Count tool = running_max, Count tool = idle_max, Count tool = queued_max, Bytes tool = input_bytes_max,
        Bytes tool = result_bytes_max, Duration tool = grace_ms, Count tool = calls_max, Count tool = journal_entries_max,
        Bytes tool = journal_bytes_max, Bytes tool = step_bytes_max;
    "task":
        Duration policy = running_ms_max, Duration policy = life_ms_max, Count policy = attempts_max,
        Duration policy = backoff_ms, Duration policy = backoff_ms_max;
    "store":
        Bytes store = cache_bytes_max, Count store = waiting_max, Count store = batch_max, Duration store = progress_ms_min;
}

/// Reads the tables `limits.server`, `limits.receiver` and so on.
pub(super) fn read(root: &NamedSection<'_>) -> Limits {
    let mut limits = Limits::default();
    let problems = root.problems();
    for (crate_name, span, entry) in root.members("limits") {
        let path = format!("limits.{crate_name}");
        let prefix = format!("{crate_name}.");
        let known: Vec<&str> = LIMITS.iter().filter_map(|limit| limit.name.strip_prefix(&prefix)).collect();
        if known.is_empty() {
            let names = ["server", "receiver", "engine", "task", "store"];
            unknown(problems, &span, &path, crate_name, &names);
            continue;
        }
        let DeValue::Table(table) = entry.get_ref() else {
            let what = format!("is {}", article(entry.get_ref().type_str()));
            problems.add(&entry.span(), &path, what, format!("write {path}.{} = …, for example", known[0]));
            continue;
        };
        for (name, value) in table {
            let full = format!("{crate_name}.{}", name.get_ref());
            let Some(limit) = LIMITS.iter().find(|limit| limit.name == full) else {
                if name.get_ref().chars().all(|letter| letter.is_ascii_uppercase() || letter == '_') {
                    let what = "cannot be changed";
                    problems.add(
                        &name.span(),
                        &format!("limits.{full}"),
                        what,
                        "remove it; only names in lower case can be set",
                    );
                } else {
                    unknown(problems, &name.span(), &format!("limits.{full}"), name.get_ref(), &known);
                }
                continue;
            };
            let path = format!("limits.{full}");
            match number(limit.form, value.get_ref()) {
                Err(error) => {
                    let (why, remedy) = match error.describe() {
                        Some((why, remedy)) => (format!(", {why}"), remedy),
                        None => (String::new(), format!("it must be {}", limit.form.describe())),
                    };
                    problems.add(&value.span(), &path, format!("is {}{why}", shown(value.get_ref())), remedy);
                }
                Ok(number) if (limit.set)(&mut limits, number).is_none() => {
                    problems.add(&value.span(), &path, "is too large", "use at most 4294967295");
                }
                Ok(_) => limits.is_set = true,
            }
        }
    }
    limits
}

fn number(form: Form, value: &DeValue<'_>) -> Result<u64, UnitError> {
    match (form, value) {
        (Form::Duration, DeValue::String(text)) => {
            u64::try_from(unit::duration(text)?.as_millis()).map_err(|_| UnitError::TooLong)
        }
        (Form::Bytes, DeValue::String(text)) => unit::bytes(text),
        (Form::Bytes | Form::Count, DeValue::Integer(number)) => unit::count(number),
        _ => Err(UnitError::Form),
    }
}

fn shown(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("{text:?}"),
        DeValue::Integer(number) => number.to_string(),
        other => article(other.type_str()),
    }
}

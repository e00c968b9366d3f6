//! Checksums of rows. Each is in a column of its row, and is checked whenever the row is read.
//!
//! SQLite checks the structure of its pages, and not what is in them: a bit that flips on the disk would be served as part
//! of a result. SQLite's own remedy, the checksum VFS, is C code that this program would have to compile and load, gives up
//! the mapping of the file into memory, and covers only files that were made with it.

use longhaul_store::IdempotencyKey;
use longhaul_task::{JournalEntry, Json, QuestionKey, Task, TaskKey};
use rusqlite::types::ValueRef;
use xxhash_rust::xxh3::xxh3_64;

use crate::disk::PhaseColumns;
use crate::journal::StateColumns;
use crate::row::{began_at, on_crash_word, outcome_columns, retention_columns, time_to_sql, to_sql};

/// Longer texts are hashed on their own instead of being copied.
const COPIED_BYTES_MAX: usize = 128;

/// Computes the checksum of values, in their order.
pub(crate) struct Checksum(Vec<u8>);

impl Checksum {
    pub(crate) fn new() -> Self {
        Self(Vec::with_capacity(768))
    }

    #[inline]
    pub(crate) fn add(&mut self, value: ValueRef<'_>) {
        let Self(bytes) = self;
        match value {
            ValueRef::Null => bytes.push(0),
            ValueRef::Integer(number) => bytes.extend_from_slice(&tagged(1, number.to_le_bytes())),
            ValueRef::Real(number) => bytes.extend_from_slice(&tagged(2, number.to_le_bytes())),
            ValueRef::Text(text) | ValueRef::Blob(text) => {
                bytes.extend_from_slice(&tagged(3, (text.len() as u64).to_le_bytes()));
                if text.len() <= COPIED_BYTES_MAX {
                    bytes.extend_from_slice(text);
                } else {
                    bytes.extend_from_slice(&xxh3_64(text).to_le_bytes());
                }
            }
        }
    }

    fn add_all(&mut self, values: &[ValueRef<'_>]) {
        for value in values {
            self.add(*value);
        }
    }

    /// 32 bits take four bytes in a row, and miss one damage in four thousand million.
    pub(crate) fn value(&self) -> i64 {
        let half = u32::try_from(xxh3_64(&self.0) >> 32).unwrap_or_default();
        half.cast_signed().into()
    }
}

/// A value behind the number of its type, in one piece: every column of every row is appended.
fn tagged(kind: u8, value: [u8; 8]) -> [u8; 9] {
    let mut tagged = [kind; 9];
    tagged[1..].copy_from_slice(&value);
    tagged
}

fn of(values: &[ValueRef<'_>]) -> i64 {
    let mut checksum = Checksum::new();
    checksum.add_all(values);
    checksum.value()
}

/// The columns of a task from `owner` to `settled_at`, in the order of `select_task!` and of the statement that inserts a row.
pub(crate) fn task_columns<'a>(task: &'a Task, phase: &'a PhaseColumns) -> [ValueRef<'a>; 36] {
    let family = &task.family;
    let is_root = task.is_root();
    let (from_creation, from_end) = retention_columns(task.retention);
    [
        text(task.key.owner.as_str()),
        text(task.key.id.as_str()),
        maybe_text((!is_root).then(|| family.root.as_str())),
        maybe_text(family.parent.as_ref().map(longhaul_task::TaskId::as_str)),
        maybe_number((!is_root).then(|| time_to_sql(family.since))),
        number(family.depth),
        number(family.children),
        number(family.ordinal),
        text(&task.tool.name),
        text(&task.tool.version),
        text(&task.origin),
        text(on_crash_word(task.policy.on_crash)),
        number(task.policy.attempts_max),
        number(to_sql(task.policy.backoff_ms)),
        number(to_sql(task.policy.backoff_ms_max)),
        number(to_sql(task.policy.running_ms_max)),
        number(to_sql(task.policy.life_ms_max)),
        maybe_number(from_creation),
        maybe_number(from_end),
        number(time_to_sql(task.created_at)),
        number(time_to_sql(task.updated_at)),
        number(to_sql(task.revision)),
        number(to_sql(task.fence)),
        number(task.attempt),
        number(task.failed_attempts),
        number(task.questions_asked),
        maybe_text(task.message.as_deref()),
        text(task.phase.name().as_str()),
        maybe_number(phase.not_before),
        phase.node_text(),
        maybe_number(phase.run_since),
        maybe_text(phase.questions.as_deref()),
        maybe_number(phase.wake_at),
        maybe_text(phase.wake_children.as_deref()),
        maybe_text(phase.outcome),
        maybe_number(phase.settled_at),
    ]
}

/// The checksum of the columns of `select_task!` that precede the checksum. `began_at` is left out if it is NULL, as it is in
/// the rows of older programs.
pub(crate) fn of_task(task: &Task, columns: &[ValueRef<'_>]) -> i64 {
    let (body, code, message) = task.phase.outcome().map_or((None, None, None), outcome_columns);
    let due_at = maybe_number(task.due_at().map(time_to_sql));
    let mut checksum = Checksum::new();
    checksum.add_all(columns);
    checksum.add_all(&[maybe_text(body.map(Json::as_str)), maybe_number(code), maybe_text(message), due_at]);
    if let Some(began_at) = began_at(task) {
        checksum.add(number(began_at));
    }
    checksum.value()
}

pub(crate) fn of_input(input: &Json) -> i64 {
    of(&[text(input.as_str())])
}

/// The checksum of the columns of `select_entry!` that precede the checksum.
pub(crate) fn of_entry(entry: &JournalEntry, state: &StateColumns<'_>) -> i64 {
    of(&[
        text(&entry.position.fork),
        number(entry.position.seq),
        text(entry.kind.as_str()),
        text(&entry.name),
        number(entry.digest.cast_signed()),
        text(state.word),
        maybe_text(state.output.as_deref()),
        maybe_text(entry.question.as_ref().map(QuestionKey::as_str)),
        maybe_number(entry.took_ms.map(to_sql)),
        maybe_text(entry.note.as_deref()),
        number(entry.attempt),
        number(time_to_sql(entry.at)),
    ])
}

/// The checksum of the columns `owner, id, key, digest` of an idempotency key.
pub(crate) fn of_key(task: &TaskKey, key: &IdempotencyKey) -> i64 {
    of(&[text(task.owner.as_str()), text(task.id.as_str()), text(&key.key), ValueRef::Blob(&key.digest)])
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

//! Checksums of rows. Each is in a column of its row, and is checked whenever the row is read.
//!
//! SQLite checks the structure of its pages, and not what is in them: a bit that flips on the disk would be served as part
//! of a result. SQLite's own remedy, the checksum VFS, is C code that this program would have to compile and load, gives up
//! the mapping of the file into memory, and covers only files that were made with it.

use longhaul_store::IdempotencyKey;
use longhaul_task::{JournalEntry, Json, QuestionKey, Task, TaskKey};
use rusqlite::types::ValueRef;
use xxhash_rust::xxh3::xxh3_64;

use crate::journal::StateColumns;
use crate::task_columns::{began_at, outcome_columns};
use crate::value::{maybe_number, maybe_text, number, text, time_to_sql, to_sql};

/// Longer texts are hashed on their own instead of being copied.
const COPIED_BYTES_MAX: usize = 128;

/// The most bytes that one value takes: 1 for its type, 8 for a number or a length, and a copied text.
const LONGEST_VALUE_BYTES: usize = 9 + COPIED_BYTES_MAX;

/// The first size of the buffer, and by how much it grows. Most rows of tasks fit into the first size.
const BUFFER_BYTES: usize = 1_024;

// After it has grown, any value fits.
const _: () = assert!(BUFFER_BYTES >= LONGEST_VALUE_BYTES);

/// Computes the checksum of values, in their order.
pub(crate) struct Checksum {
    /// Longer than `used`, so that `add` compares lengths once and then writes into a piece of fixed size.
    buffer: Vec<u8>,
    /// The bytes of `buffer` that were written.
    used: usize,
}

impl Checksum {
    pub(crate) fn new() -> Self {
        Self { buffer: vec![0; BUFFER_BYTES], used: 0 }
    }

    #[inline]
    pub(crate) fn add(&mut self, value: ValueRef<'_>) {
        let free = self.buffer.get_mut(self.used..);
        let Some(room) = free.and_then(<[u8]>::first_chunk_mut::<LONGEST_VALUE_BYTES>) else {
            return self.grow_and_add(value);
        };
        self.used += match value {
            ValueRef::Null => {
                room[0] = 0;
                1
            }
            ValueRef::Integer(number) => write_tagged(room, 1, number.to_le_bytes()),
            ValueRef::Real(number) => write_tagged(room, 2, number.to_le_bytes()),
            ValueRef::Text(text) | ValueRef::Blob(text) => {
                let head = write_tagged(room, 3, (text.len() as u64).to_le_bytes());
                let hashed;
                let text = if text.len() <= COPIED_BYTES_MAX {
                    text
                } else {
                    hashed = xxh3_64(text).to_le_bytes();
                    &hashed
                };
                room[head..head + text.len()].copy_from_slice(text);
                head + text.len()
            }
        };
    }

    #[cold]
    fn grow_and_add(&mut self, value: ValueRef<'_>) {
        self.buffer.resize(self.buffer.len() + BUFFER_BYTES, 0);
        self.add(value);
    }

    fn add_all(&mut self, values: &[ValueRef<'_>]) {
        for value in values {
            self.add(*value);
        }
    }

    /// 32 bits take four bytes in a row, and miss one damage in four thousand million.
    pub(crate) fn value(&self) -> i64 {
        let half = u32::try_from(xxh3_64(&self.buffer[..self.used]) >> 32).unwrap_or_default();
        half.cast_signed().into()
    }
}

/// Writes the number of a type, then a number or a length. Returns how many bytes it wrote.
fn write_tagged(room: &mut [u8; LONGEST_VALUE_BYTES], type_number: u8, value: [u8; 8]) -> usize {
    room[0] = type_number;
    room[1..9].copy_from_slice(&value);
    9
}

fn of(values: &[ValueRef<'_>]) -> i64 {
    let mut checksum = Checksum::new();
    checksum.add_all(values);
    checksum.value()
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Another value would make every row of an existing file count as damaged.
    #[test]
    fn checksums_are_those_of_existing_files() {
        let (copied, hashed) = ("c".repeat(COPIED_BYTES_MAX), "h".repeat(COPIED_BYTES_MAX + 1));
        let one_of_each = [
            ValueRef::Null,
            number(-7),
            ValueRef::Real(0.5),
            text(""),
            text("ada"),
            ValueRef::Blob(&[0, 255]),
            text(&copied),
            text(&hashed),
        ];
        assert_eq!(of(&[]), 755_400_709);
        assert_eq!(of(&one_of_each), -1_423_725_740);
        // More than the buffer holds at first.
        assert_eq!(of(&one_of_each.repeat(40)), -100_648_353);
    }
}

//! Identifiers of tasks, owners and nodes.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// The maximum length of a task ID or an owner, in bytes.
///
/// In one wire generation the requestor chooses the task ID, so the length needs a limit. 256 bytes fit into a page of
/// an index many times over.
pub const NAME_BYTES_MAX: usize = 256;

/// Why a text cannot be the ID of a task or the name of an owner. The message says it of `it`: the caller knows which it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("it needs at least one character")]
    Empty,
    #[error("it has {0} bytes; the limit is {NAME_BYTES_MAX}")]
    TooLong(usize),
    /// Control characters are refused because names are printed to logs and terminals.
    #[error("it contains a control character; remove it")]
    Control,
}

fn check(text: &str) -> Result<(), NameError> {
    match text {
        "" => Err(NameError::Empty),
        _ if text.len() > NAME_BYTES_MAX => Err(NameError::TooLong(text.len())),
        _ if text.chars().any(char::is_control) => Err(NameError::Control),
        _ => Ok(()),
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            pub fn parse(text: &str) -> Result<Self, NameError> {
                check(text)?;
                Ok(Self(text.into()))
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }
    };
}

name! {
    /// The ID of a task, unique among the tasks of its owner.
    ///
    /// ```
    /// use longhaul_task::{TaskId, Timestamp};
    ///
    /// let earlier = TaskId::mint(Timestamp::from_ms(1_000), [7; 16]);
    /// let later = TaskId::mint(Timestamp::from_ms(1_001), [0; 16]);
    /// assert!(earlier < later);
    /// assert!(TaskId::parse("chosen-by-the-requestor").is_ok());
    /// ```
    TaskId
}

name! {
    /// The identity that a task belongs to. The transport determines it; this crate only compares it.
    Owner
}

impl TaskId {
    /// Makes an ID from the time, so that inserts into an index are ordered, and 128 random bits, so that the ID cannot
    /// be guessed.
    pub fn mint(now: Timestamp, random: [u8; 16]) -> Self {
        // 48 bits hold the milliseconds until the year 10889. Later times count as the last of them.
        let [_, _, time @ ..] = now.as_ms().min((1 << 48) - 1).to_be_bytes();
        let mut digits = [0; 2 * (6 + 16)];
        let (time_digits, random_digits) = digits.split_at_mut(2 * time.len());
        write_hex(&time, time_digits);
        write_hex(&random, random_digits);
        Self(std::str::from_utf8(&digits).unwrap_or_default().into())
    }

    /// The ID under which a task is stored whose requestor chose `id` and is only known by its session: another session of
    /// the same owner can use the same `id`. [`shown`](Self::shown) is `id` again.
    pub fn in_session(scope: &str, id: &Self) -> Result<Self, NameError> {
        Self::parse(&format!("{scope}{SCOPE_END}{id}"))
    }

    /// The scope of an ID that [`in_session`](Self::in_session) made.
    pub fn scope(&self) -> Option<&str> {
        self.0.split_once(SCOPE_END).map(|(scope, _)| scope)
    }

    /// The ID as its requestor knows it.
    pub fn shown(&self) -> &str {
        self.0.split_once(SCOPE_END).map_or(&*self.0, |(_, id)| id)
    }

    /// Whether a requestor may choose this ID: not if it looks like one that [`in_session`](Self::in_session) made.
    pub fn can_be_chosen(&self) -> bool {
        !self.0.contains(SCOPE_END)
    }
}

/// Ends the scope of an ID. A character for private use, which is no control character and in no ID that is made here.
const SCOPE_END: char = '\u{f8ff}';

/// The key of a task. A task is never looked up by its ID alone, so a task of another owner is not even read.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskKey {
    pub owner: Owner,
    pub id: TaskId,
}

/// A process that runs tasks. A restarted process is a new node with a new ID.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NodeId(u128);

impl NodeId {
    pub fn mint(random: [u8; 16]) -> Self {
        Self(u128::from_be_bytes(random))
    }

    /// The number of its hexadecimal digits.
    pub const DIGITS: usize = 32;

    /// Its hexadecimal digits, as ASCII text.
    pub fn digits(self) -> [u8; Self::DIGITS] {
        let mut digits = [0; Self::DIGITS];
        write_hex(&self.0.to_be_bytes(), &mut digits);
        digits
    }

    /// Parses the output of `Display`.
    pub fn parse(text: &str) -> Option<Self> {
        u128::from_str_radix(text, 16).ok().map(Self)
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.digits()).unwrap_or_default())
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Writes bytes as hexadecimal digits, two per byte. Every creation writes several IDs, and `format!` takes several times as
/// long.
fn write_hex(bytes: &[u8], digits: &mut [u8]) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    for (pair, byte) in digits.chunks_exact_mut(2).zip(bytes) {
        pair.copy_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 0xf)]]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_accepted_at_its_limit_and_refused_past_it() {
        assert!(TaskId::parse(&"x".repeat(NAME_BYTES_MAX)).is_ok());
        assert_eq!(TaskId::parse(&"x".repeat(NAME_BYTES_MAX + 1)), Err(NameError::TooLong(NAME_BYTES_MAX + 1)));
        assert_eq!(TaskId::parse(""), Err(NameError::Empty));
        assert_eq!(TaskId::parse("a\nb"), Err(NameError::Control));
    }

    #[test]
    fn an_id_of_a_session_is_shown_as_it_was_chosen() {
        let chosen = TaskId::parse("t-1").unwrap();
        let stored = TaskId::in_session("0a", &chosen).unwrap();
        assert_eq!((chosen.shown(), stored.shown()), ("t-1", "t-1"));
        assert_ne!(stored, TaskId::in_session("0b", &chosen).unwrap());
        assert!(chosen.can_be_chosen() && !stored.can_be_chosen());
    }

    #[test]
    fn a_minted_id_is_the_time_and_the_random_bits_in_hexadecimal() {
        let id = TaskId::mint(Timestamp::from_ms(0x0123_4567_89ab), [0xcd; 16]);
        assert_eq!(id.as_str(), format!("0123456789ab{}", "cd".repeat(16)));
        let late = TaskId::mint(Timestamp::from_ms(1 << 48), [0; 16]);
        assert!(late > TaskId::mint(Timestamp::from_ms((1 << 48) - 2), [0xff; 16]));
    }

    #[test]
    fn a_node_id_parses_its_own_display() {
        let node = NodeId::mint([9; 16]);
        assert_eq!(node.to_string(), "09".repeat(16));
        assert_eq!(NodeId::parse(&node.to_string()), Some(node));
    }
}

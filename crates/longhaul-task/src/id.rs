//! Names: of tasks, of their owners, of the nodes that run them.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// The longest task ID or owner name, in bytes.
///
/// Requestors choose their own IDs in one wire generation, so the length needs a bound; 256 bytes is what an index
/// holds comfortably.
pub const NAME_BYTES_MAX: usize = 256;

/// Why a text cannot be a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// There is nothing in it.
    #[error("a name must not be empty")]
    Empty,
    /// It is longer than [`NAME_BYTES_MAX`].
    #[error("a name has at most {NAME_BYTES_MAX} bytes, this one has {0}")]
    TooLong(usize),
    /// It has a control character, which no log or terminal should be made to print.
    #[error("a name must not contain control characters")]
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
            /// Takes a text as it is, if it can be a name.
            pub fn parse(text: &str) -> Result<Self, NameError> {
                check(text)?;
                Ok(Self(text.into()))
            }

            /// The name as text.
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
    /// The public name of a task, unique per owner.
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
    /// Whose task it is. The transport finds out who is calling; here it is only a name.
    Owner
}

impl TaskId {
    /// Makes an ID: the time first, so that inserts are ordered, then 128 random bits, so that nobody can guess it.
    pub fn mint(now: Timestamp, random: [u8; 16]) -> Self {
        let text = format!("{:012x}{:032x}", now.as_ms(), u128::from_be_bytes(random));
        Self(text.into())
    }
}

/// How a task is found: never by its ID alone, so that somebody else's row is not even read.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskKey {
    /// Whose task it is.
    pub owner: Owner,
    /// Its public name.
    pub id: TaskId,
}

/// One process that runs tasks, from its start to its end. A restarted process is another node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NodeId(u128);

impl NodeId {
    /// Makes an ID from 128 random bits.
    pub fn mint(random: [u8; 16]) -> Self {
        Self(u128::from_be_bytes(random))
    }

    /// Reads what [`NodeId`]'s `Display` wrote.
    pub fn parse(text: &str) -> Option<Self> {
        u128::from_str_radix(text, 16).ok().map(Self)
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_refused_past_its_limit_and_taken_at_it() {
        assert!(TaskId::parse(&"x".repeat(NAME_BYTES_MAX)).is_ok());
        assert_eq!(TaskId::parse(&"x".repeat(NAME_BYTES_MAX + 1)), Err(NameError::TooLong(NAME_BYTES_MAX + 1)));
        assert_eq!(TaskId::parse(""), Err(NameError::Empty));
        assert_eq!(TaskId::parse("a\nb"), Err(NameError::Control));
    }

    #[test]
    fn a_node_id_reads_back_what_it_shows() {
        let node = NodeId::mint([9; 16]);
        assert_eq!(NodeId::parse(&node.to_string()), Some(node));
    }
}

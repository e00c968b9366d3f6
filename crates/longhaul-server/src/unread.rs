//! Answers that their clients have not read yet.

use std::sync::Arc;

use bytes::Bytes;
use longhaul_receiver::SOON_MS;
use longhaul_wire::jsonrpc::{self, Message, RequestId, RpcError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Answers up to this size are not counted: there are at most as many as connections.
const SMALL_BYTES_MAX: usize = 16 << 10;

/// The bytes of answers that wait to be read, all clients together. A client that asks and does not read keeps its
/// answer in our memory until its time is up, so there is only so much room for those.
#[derive(Debug, Clone)]
pub(crate) struct Unread {
    room: Arc<Semaphore>,
    bytes_max: u32,
}

impl Unread {
    pub(crate) fn new(bytes_max: u32) -> Self {
        Self { room: Arc::new(Semaphore::new(bytes_max as usize)), bytes_max }
    }

    /// Keeps an answer until it is read, if there is room. Waiting for some would keep the text all the same.
    pub(crate) fn keep(&self, text: String) -> Result<Kept, TooMuchUnread> {
        if text.len() <= SMALL_BYTES_MAX {
            return Ok(Kept::uncounted(text));
        }
        match Arc::clone(&self.room).try_acquire_many_owned(self.bytes(&text)) {
            Ok(room) => Ok(Kept { text, _room: Some(room) }),
            Err(_) => Err(TooMuchUnread { text }),
        }
    }

    /// Keeps something that is kept elsewhere until then, when there is room.
    pub(crate) async fn keep_later(&self, text: String) -> Kept {
        let room = Arc::clone(&self.room).acquire_many_owned(self.bytes(&text)).await;
        // It fails when the room is closed, which it never is.
        Kept { text, _room: room.ok() }
    }

    /// What a text takes of the room. One that is larger than everything goes out alone.
    fn bytes(&self, text: &str) -> u32 {
        u32::try_from(text.len()).unwrap_or(u32::MAX).min(self.bytes_max)
    }
}

/// An answer on its way; its room is free again when its last byte has gone.
#[derive(Debug)]
pub(crate) struct Kept {
    text: String,
    _room: Option<OwnedSemaphorePermit>,
}

impl Kept {
    /// One that goes out whatever is unread: the word that there is no room.
    pub(crate) fn uncounted(text: String) -> Self {
        Self { text, _room: None }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }
}

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        self.text.as_bytes()
    }
}

impl From<Kept> for Bytes {
    fn from(kept: Kept) -> Self {
        match kept {
            Kept { text, _room: None } => Self::from(text),
            counted => Self::from_owner(counted),
        }
    }
}

/// Clients leave too many answers unread.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooMuchUnread {
    /// What there is no room for.
    pub(crate) text: String,
}

impl TooMuchUnread {
    /// The ID of the request whose answer that is; none if it is something else.
    pub(crate) fn answered(&self) -> Option<RequestId> {
        match jsonrpc::parse(self.text.as_bytes()) {
            Ok(Message::Response(response)) => response.id,
            _ => None,
        }
    }
}

impl From<TooMuchUnread> for RpcError {
    fn from(_: TooMuchUnread) -> Self {
        let why = "too many answers wait for clients that do not read them; try again in a moment";
        Self::try_later("TOO_MUCH_UNREAD", why, SOON_MS).with_status(503)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: usize) -> String {
        "x".repeat(bytes)
    }

    #[test]
    fn large_answers_share_their_room_and_give_it_back_when_the_bytes_are_gone() {
        let unread = Unread::new(100_000);
        let first = Bytes::from(unread.keep(text(60_000)).unwrap());
        assert!(unread.keep(text(40_001)).is_err());
        let second = unread.keep(text(40_000)).unwrap();
        // What is cut off still keeps the whole.
        let rest = first.slice(59_999..);
        drop(first);
        assert!(unread.keep(text(60_000)).is_err());
        drop(rest);
        assert!(unread.keep(text(60_000)).is_ok());
        drop(second);
    }

    #[test]
    fn small_answers_go_out_whatever_is_unread() {
        let unread = Unread::new(100_000);
        let _all = unread.keep(text(100_000)).unwrap();
        assert!(unread.keep(text(SMALL_BYTES_MAX)).is_ok());
        assert!(unread.keep(text(SMALL_BYTES_MAX + 1)).is_err());
    }

    #[test]
    fn one_that_is_larger_than_the_room_goes_out_alone() {
        let unread = Unread::new(100_000);
        let large = unread.keep(text(200_000)).unwrap();
        assert!(unread.keep(text(SMALL_BYTES_MAX + 1)).is_err());
        drop(large);
        assert!(unread.keep(text(SMALL_BYTES_MAX + 1)).is_ok());
    }
}

//! Responses that their clients have not read yet.

use std::sync::Arc;

use bytes::Bytes;
use longhaul_receiver::SOON_MS;
use longhaul_wire::jsonrpc::{self, Message, RequestId, RpcError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Responses up to this size are not counted: there are at most as many as connections.
const SMALL_BYTES_MAX: usize = 16 << 10;

/// The bytes of responses that wait to be read, for all clients together. A client that does not read keeps its response
/// in memory until its connection times out, so their sum has a limit.
#[derive(Debug, Clone)]
pub(crate) struct UnreadBudget {
    room: Arc<Semaphore>,
    bytes_max: u32,
}

impl UnreadBudget {
    pub(crate) fn new(bytes_max: u32) -> Self {
        Self { room: Arc::new(Semaphore::new(bytes_max as usize)), bytes_max }
    }

    /// Reserves room for a response until it is read. Does not wait for room: the waiting response would take memory, too.
    pub(crate) fn keep(&self, text: String) -> Result<CountedMessage, TooMuchUnread> {
        if text.len() <= SMALL_BYTES_MAX {
            return Ok(CountedMessage::uncounted(text));
        }
        match Arc::clone(&self.room).try_acquire_many_owned(self.bytes(&text)) {
            Ok(room) => Ok(CountedMessage { text, _room: Some(room) }),
            Err(_) => Err(TooMuchUnread { text }),
        }
    }

    /// Reserves room for a message that is in memory anyway, as soon as there is some.
    pub(crate) async fn keep_later(&self, text: String) -> CountedMessage {
        let room = Arc::clone(&self.room).acquire_many_owned(self.bytes(&text)).await;
        // It fails only if the semaphore is closed, which it never is.
        CountedMessage { text, _room: room.ok() }
    }

    /// The room that a text takes. One that is larger than the whole limit is sent when nothing else is unread.
    fn bytes(&self, text: &str) -> u32 {
        u32::try_from(text.len()).unwrap_or(u32::MAX).min(self.bytes_max)
    }
}

/// A message on its way. Its room is free again when its last byte has been written.
#[derive(Debug)]
pub(crate) struct CountedMessage {
    text: String,
    _room: Option<OwnedSemaphorePermit>,
}

impl CountedMessage {
    /// A message that takes no room, such as the error that there is none.
    pub(crate) fn uncounted(text: String) -> Self {
        Self { text, _room: None }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }
}

impl AsRef<[u8]> for CountedMessage {
    fn as_ref(&self) -> &[u8] {
        self.text.as_bytes()
    }
}

impl From<CountedMessage> for Bytes {
    fn from(kept: CountedMessage) -> Self {
        match kept {
            CountedMessage { text, _room: None } => Self::from(text),
            counted => Self::from_owner(counted),
        }
    }
}

/// Clients leave too many responses unread.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooMuchUnread {
    /// The message that there is no room for.
    pub(crate) text: String,
}

impl TooMuchUnread {
    /// The ID of the request that the message answers; `None` if it is not a response.
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
    fn large_responses_free_their_room_when_their_bytes_are_written() {
        let unread = UnreadBudget::new(100_000);
        let first = Bytes::from(unread.keep(text(60_000)).unwrap());
        assert!(unread.keep(text(40_001)).is_err());
        let second = unread.keep(text(40_000)).unwrap();
        // A slice keeps the whole buffer alive.
        let rest = first.slice(59_999..);
        drop(first);
        assert!(unread.keep(text(60_000)).is_err());
        drop(rest);
        assert!(unread.keep(text(60_000)).is_ok());
        drop(second);
    }

    #[test]
    fn small_responses_are_sent_whatever_is_unread() {
        let unread = UnreadBudget::new(100_000);
        let _all = unread.keep(text(100_000)).unwrap();
        assert!(unread.keep(text(SMALL_BYTES_MAX)).is_ok());
        assert!(unread.keep(text(SMALL_BYTES_MAX + 1)).is_err());
    }

    #[test]
    fn a_response_larger_than_the_limit_is_sent_alone() {
        let unread = UnreadBudget::new(100_000);
        let large = unread.keep(text(200_000)).unwrap();
        assert!(unread.keep(text(SMALL_BYTES_MAX + 1)).is_err());
        drop(large);
        assert!(unread.keep(text(SMALL_BYTES_MAX + 1)).is_ok());
    }
}

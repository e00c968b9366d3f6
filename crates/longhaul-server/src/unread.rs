//! Responses that their clients have not read yet.

use std::sync::Arc;

use bytes::Bytes;
use longhaul_engine::{Budget, Share};
use longhaul_receiver::SOON_MS;
use longhaul_task::Owner;
use longhaul_wire::jsonrpc::{self, Message, RequestId, RpcError};
use tokio::sync::Notify;

/// Responses up to this size are not counted: there are at most as many as connections.
const SMALL_BYTES_MAX: usize = 16 << 10;

/// The bytes of responses that wait to be read. A client that does not read keeps its response in memory until its
/// connection times out, so their sum has a limit, and each owner has a share of it.
#[derive(Debug, Clone)]
pub(crate) struct UnreadBudget {
    budget: Arc<Budget>,
    freed: Arc<Notify>,
}

impl UnreadBudget {
    pub(crate) fn new(bytes_max: u32) -> Self {
        Self { budget: Budget::new("unread_bytes", bytes_max as usize), freed: Arc::default() }
    }

    pub(crate) fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// Reserves room for a response until it is read. Does not wait for room: the waiting response would take memory, too.
    pub(crate) fn keep(&self, owner: Option<&Owner>, text: String) -> Result<CountedMessage, TooMuchUnread> {
        let Some(owner) = owner.filter(|_| text.len() > SMALL_BYTES_MAX) else {
            return Ok(CountedMessage::uncounted(text));
        };
        match self.budget.take(owner, text.len()) {
            Some(share) => Ok(self.counted(text, share)),
            None => Err(TooMuchUnread { text }),
        }
    }

    /// Reserves room for a message that is in memory anyway, as soon as there is some.
    pub(crate) async fn keep_later(&self, owner: &Owner, text: String) -> CountedMessage {
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            freed.as_mut().enable();
            if let Some(share) = self.budget.take(owner, text.len()) {
                return self.counted(text, share);
            }
            freed.await;
        }
    }

    fn counted(&self, text: String, share: Share) -> CountedMessage {
        CountedMessage { text, room: Some(Room { share: Some(share), freed: Arc::clone(&self.freed) }) }
    }
}

/// A message on its way. Its room is free again when its last byte has been written.
#[derive(Debug)]
pub(crate) struct CountedMessage {
    text: String,
    room: Option<Room>,
}

#[derive(Debug)]
struct Room {
    share: Option<Share>,
    freed: Arc<Notify>,
}

impl Drop for Room {
    fn drop(&mut self) {
        self.share = None;
        self.freed.notify_waiters();
    }
}

impl CountedMessage {
    /// A message that takes no room, such as the error that there is none.
    pub(crate) fn uncounted(text: String) -> Self {
        Self { text, room: None }
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
            CountedMessage { text, room: None } => Self::from(text),
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

    fn owner(name: &str) -> Owner {
        Owner::parse(name).unwrap()
    }

    #[test]
    fn large_responses_free_their_room_when_their_bytes_are_written() {
        let (unread, ada) = (UnreadBudget::new(100_000), owner("ada"));
        let keep = |bytes| unread.keep(Some(&ada), text(bytes));
        let first = Bytes::from(keep(60_000).unwrap());
        assert!(keep(40_001).is_err());
        // A slice keeps the whole buffer alive.
        let rest = first.slice(59_999..);
        drop(first);
        assert!(keep(60_000).is_err());
        drop(rest);
        assert!(keep(60_000).is_ok());
    }

    #[test]
    fn small_responses_are_sent_whatever_is_unread() {
        let (unread, ada) = (UnreadBudget::new(100_000), owner("ada"));
        let _all = unread.keep(Some(&ada), text(100_000)).unwrap();
        assert!(unread.keep(Some(&ada), text(SMALL_BYTES_MAX)).is_ok());
        assert!(unread.keep(Some(&ada), text(SMALL_BYTES_MAX + 1)).is_err());
    }

    #[test]
    fn a_response_larger_than_the_limit_is_sent_alone() {
        let (unread, ada, bob) = (UnreadBudget::new(100_000), owner("ada"), owner("bob"));
        let large = unread.keep(Some(&ada), text(200_000)).unwrap();
        assert!(unread.keep(Some(&bob), text(SMALL_BYTES_MAX + 1)).is_err());
        drop(large);
        assert!(unread.keep(Some(&bob), text(SMALL_BYTES_MAX + 1)).is_ok());
    }

    #[tokio::test]
    async fn a_message_that_must_be_sent_waits_for_room() {
        let (unread, ada) = (UnreadBudget::new(100_000), owner("ada"));
        let held = unread.keep(Some(&ada), text(100_000)).unwrap();
        let mut later = std::pin::pin!(unread.keep_later(&ada, text(20_000)));
        assert!(futures_util::poll!(&mut later).is_pending());
        drop(held);
        assert_eq!(later.await.as_str().len(), 20_000);
    }
}

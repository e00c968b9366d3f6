//! The lists of a server: one page of any of them, and the notification that one has changed.

use crate::jsonrpc::{self, RequestId};
use crate::{Cache, ReplyTo, subscription, text};

/// A list that can change while the server runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ListKind {
    Tools,
    Prompts,
    /// The resources and the resource templates: one notification is for both.
    Resources,
}

impl ListKind {
    pub const ALL: [Self; 3] = [Self::Tools, Self::Prompts, Self::Resources];

    const fn changed_method(self) -> &'static str {
        match self {
            Self::Tools => "notifications/tools/list_changed",
            Self::Prompts => "notifications/prompts/list_changed",
            Self::Resources => "notifications/resources/list_changed",
        }
    }
}

/// The part of a page that all lists have in common.
#[derive(Debug, Clone, Copy)]
pub struct PageEnd<'a> {
    /// Present exactly when there are more entries.
    pub next_cursor: Option<&'a str>,
    /// For stateless requests; sessions have a notification instead.
    pub cache: Cache,
}

/// A response with one page of a list. `member` is the name of the array, and `write` appends one entry.
pub(crate) fn page<T>(
    to: &ReplyTo<'_>,
    member: &str,
    entries: impl ExactSizeIterator<Item = T>,
    end: PageEnd<'_>,
    write: impl FnMut(&mut String, T),
) -> String {
    const ENTRY_BYTES: usize = 512;
    jsonrpc::response(to.id, to.server.room() + ENTRY_BYTES * entries.len(), |out| {
        out.push('{');
        if to.revision.is_stateless() {
            out.push_str("\"resultType\":\"complete\",");
        }
        text::push_str(out, member);
        out.push(':');
        text::push_array(out, entries, write);
        if let Some(cursor) = end.next_cursor {
            text::push_str_member(out, "nextCursor", cursor);
        }
        if to.revision.is_stateless() {
            end.cache.write(out);
            to.server.write_meta(out);
        }
        out.push('}');
    })
}

/// The notification that a list has changed; `subscription` is the request of the stream that carries it, in the
/// stateless era.
pub fn changed(list: ListKind, subscription: Option<&RequestId>) -> String {
    jsonrpc::notification(list.changed_method(), 128, |out| {
        out.push('{');
        if let Some(id) = subscription {
            subscription::write_id(out, id);
        }
        out.push('}');
    })
}

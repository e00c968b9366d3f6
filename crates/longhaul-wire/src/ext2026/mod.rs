//! The extension `io.modelcontextprotocol/tasks` at protocol version 2026-07-28: stateless, every request with its
//! own `_meta`, the server deciding what becomes a task.
//!
//! One file per operation; each reads its parameters and writes its answers. [`accept`] does what comes before all
//! of them.

mod accept;
mod headers;
mod input;
mod meta;
mod method;
mod params;
mod server_info;
mod task;

pub mod discover;
pub mod logging;
pub mod progress;
pub mod subscriptions_listen;
pub mod tasks_cancel;
pub mod tasks_get;
pub mod tasks_update;
pub mod tools_call;
pub mod tools_list;

pub use accept::{Accepted, accept};
pub use headers::{check_mirrored, encode_value};
pub use input::InputResponses;
pub use meta::Meta;
pub use method::Method;
pub use params::Params;
pub(crate) use server_info::SERVER_INFO;
pub use server_info::ServerInfo;
pub use task::required_task_id;

// What is the same in every generation, under this one's roof, too.
pub use crate::refusal::no_such_task;
pub use crate::{Cancelled, Capabilities, Capability, HeaderValue, Headers, LogLevel};

use crate::jsonrpc::{self, RequestId};

/// The protocol version that this generation is spoken at.
pub const VERSION: &str = "2026-07-28";

/// The label of tasks that were made here, for a task's `origin`.
pub const ORIGIN: &str = "ext2026";

/// The extension's name in capabilities.
pub const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// How long, and by whom, a list may be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cache {
    /// For how many milliseconds it counts as fresh.
    pub ttl_ms: u64,
    /// Whether it holds for everybody or only for whoever asked.
    pub is_public: bool,
}

impl Cache {
    fn write(self, out: &mut String) {
        crate::text::push_number_member(out, "ttlMs", self.ttl_ms);
        crate::text::push_str_member(out, "cacheScope", if self.is_public { "public" } else { "private" });
    }
}

/// The answer that says no more than that the request was taken.
pub fn acknowledge(id: &RequestId, server: &ServerInfo) -> String {
    jsonrpc::response(id, server.room(), |out| {
        out.push_str("{\"resultType\":\"complete\"");
        server.write_meta(out);
        out.push('}');
    })
}

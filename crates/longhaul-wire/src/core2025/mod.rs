//! The stateful era: sessions that begin with `initialize`, at the revisions 2025-03-26, 2025-06-18 and 2025-11-25, and
//! tasks as the last of them has them.
//!
//! One file per operation; each reads its parameters and writes its answers. [`Initialize`](initialize::Initialize)
//! opens a session, [`Peer`] is what the session then knows, [`read`] sorts what comes in. In this era the server asks,
//! too: [`question`] is what it asks, [`requestor`] what it does when the client answers by way of a task.
//!
//! Two more generations of tasks live in this era. A call shows by a `_meta` key that it speaks one: see [`Marker`].
//!
//! ```
//! use longhaul_wire::core2025::{Incoming, Operation, Read, Revision, initialize, read};
//! use longhaul_wire::jsonrpc::{self, Message};
//!
//! let bytes = br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",
//!     "capabilities":{"elicitation":{}},"clientInfo":{"name":"c","version":"1"}}}"#;
//! let Message::Request(request) = jsonrpc::parse(bytes).unwrap() else { panic!() };
//! let peer = initialize::Initialize::parse(request.params).unwrap().peer;
//! assert_eq!(peer.revision, Revision::V2025_11_25);
//!
//! let bytes = br#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","task":{"ttl":60000}}}"#;
//! let Read::One(Incoming::Request(request)) = read(bytes, peer.revision).unwrap() else { panic!() };
//! let Operation::ToolsCall(call) = request.operation else { panic!() };
//! assert!(call.marker.asks_for_a_task());
//! ```

mod marker;
mod message;
mod meta;
mod params;
mod peer;
mod related;
mod result;
mod status;
mod task;
mod version;

pub mod initialize;
pub mod logging;
pub mod progress;
pub mod question;
pub mod requestor;
pub mod tasks_cancel;
pub mod tasks_get;
pub mod tasks_list;
pub mod tasks_result;
pub mod tasks_status;
pub mod tools_call;
pub mod tools_list;

pub use marker::{Marker, Ttl};
pub use message::{Incoming, Notice, Operation, Read, Request, accept, read};
pub use meta::Meta;
pub use peer::Peer;
pub use progress::ClientProgress;
pub use related::{RELATED_TASK, Related};
pub use status::Status;
pub use version::Revision;

use crate::jsonrpc::{self, RequestId};

/// The label of tasks that were made here, for a task's `origin`.
pub const ORIGIN: &str = "core2025";

/// The answer that says no more than that the request was taken: to `ping` and to `logging/setLevel`.
pub fn acknowledge(id: &RequestId) -> String {
    jsonrpc::result(id, "{}")
}

/// `ping`, to the client.
pub fn ping(id: &RequestId) -> String {
    jsonrpc::request(id, "ping", "{}")
}

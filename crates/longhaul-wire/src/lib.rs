//! How tasks look on the wire: JSON-RPC, the revisions of MCP, and the generations of its tasks.
//!
//! Everything here is pure: bytes in, values out; values in, text out. No socket, no clock, no storage. The protocol's
//! [`Revision`] decides how everything but tasks looks, the task [`Generation`] how tasks look. All generations are views
//! of the same [`longhaul_task::Task`].
//!
//! ```
//! use longhaul_task::transition::{self, Create};
//! use longhaul_task::{Owner, Policy, Retention, TaskId, TaskKey, Timestamp, ToolRef};
//! use longhaul_wire::jsonrpc::{self, Message};
//! use longhaul_wire::{Context, Operation, ReplyTo, ServerInfo, TaskView, route};
//!
//! let bytes = br#"{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"t-1","_meta":{
//!     "io.modelcontextprotocol/protocolVersion":"2026-07-28",
//!     "io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}"#;
//! let Message::Request(request) = jsonrpc::parse(bytes).unwrap() else { panic!() };
//! let request = route(&request, &Context::Stateless { headers: None }).unwrap();
//! let Operation::GetTask(id) = request.operation else { panic!() };
//!
//! let now = Timestamp::from_ms(1_764_066_600_000);
//! let task = transition::create(
//!     &Create {
//!         key: TaskKey { owner: Owner::parse("ada").unwrap(), id },
//!         tool: ToolRef::new("generate_report", "1"),
//!         origin: request.generation.label().into(),
//!         policy: Policy::default(),
//!         retention: Retention::FromCreation(3_600_000),
//!         claimed_by: None,
//!         first_fence: 0,
//!     },
//!     now,
//! );
//!
//! let server = ServerInfo::hidden();
//! let to = ReplyTo { id: &request.id, revision: request.peer.revision, server: &server };
//! assert_eq!(
//!     request.generation.task(&to, &TaskView::of(&task)),
//!     r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","taskId":"t-1","status":"working","createdAt":"2025-11-25T10:30:00.000Z","lastUpdatedAt":"2025-11-25T10:30:00.000Z","ttlMs":3600000}}"#
//! );
//! ```
//!
//! # Layout
//!
//! - [`jsonrpc`]: messages, IDs, errors. [`sse`]: events. [`headers`]: HTTP headers against bodies.
//! - [`route`](mod@route): which revision and generation a [`RoutedRequest`] speaks.
//!   [`ClientNotification`]: notifications of clients.
//! - [`generation`]: tasks, one module per generation. [`TaskView`] is the task that all of them show.
//! - One module per operation for everything else, for all revisions: [`initialize`], [`discover`], [`tools_list`],
//!   [`call_result`], [`update`], [`completion`], [`subscription`], [`logging`], [`progress`]. [`refusal`]: the errors
//!   that they share. [`list`]: the pages of all lists.
//! - [`ask`]: questions to the client of a session. [`remote_task`]: tasks that the client runs for them. [`question`]:
//!   whether an answer fits.
//! - [`ticket`]: what clients without tasks get instead of a result that takes long.
//! - [`tool`]: the MCP half of a tool's declaration. [`content`]: the results of tools. [`prompt`] and [`resource`]: the
//!   same for prompts, resources and resource templates.

mod cancelled;
mod capability;
mod feature;
mod icon;
mod meta;
mod notice;
mod params;
mod peer;
mod presentation;
mod project;
mod related;
mod request;
mod revision;
mod schema;
mod server_info;
mod session_result;
mod splice;
mod text;
mod tree;
mod view;

pub mod ask;
pub mod call_result;
pub mod canonical;
pub mod completion;
pub mod content;
pub mod discover;
pub mod generation;
pub mod headers;
pub mod idempotency;
pub mod initialize;
pub mod jsonrpc;
pub mod list;
pub mod logging;
pub mod progress;
pub mod prompt;
pub mod question;
pub mod refusal;
pub mod remote_task;
pub mod resource;
pub mod route;
pub mod sse;
pub mod subscription;
pub mod ticket;
pub mod tool;
pub mod tools_list;
pub mod update;

pub use cancelled::CancelledRequest;
pub use capability::{Capabilities, Capability};
pub use discover::Cache;
pub use feature::ServerFeatures;
pub use generation::{CallMode, Generation, TaskWire};
pub use headers::{HeaderValue, Headers};
pub use icon::{Icon, IconTheme};
pub use logging::{LogLevel, LogMessage};
pub use notice::ClientNotification;
pub use params::Params;
pub use peer::Peer;
pub use related::RelatedTask;
pub use request::{
    CallTool, GetPrompt, Operation, ReadResource, RelayMark, RoutedRequest, TaskRequest, Ttl, UpdateTask,
};
pub use revision::Revision;
pub use route::{Context, is_stateless, route};
pub use server_info::{ReplyTo, ServerInfo};
pub use text::ObjectMembers;
pub use update::InputResponses;
pub use view::TaskView;

/// The answer that only acknowledges a request: `ping`, `logging/setLevel`, and the stateless `tasks/update` and
/// `tasks/cancel`.
pub fn acknowledge(to: &ReplyTo<'_>) -> String {
    if !to.revision.is_stateless() {
        return jsonrpc::result(to.id, "{}");
    }
    jsonrpc::response(to.id, to.server.room(), |out| {
        out.push_str("{\"resultType\":\"complete\"");
        to.server.write_meta(out);
        out.push('}');
    })
}

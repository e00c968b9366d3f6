//! How tasks look on the wire: JSON-RPC, and the generations of the MCP tasks protocol.
//!
//! Everything here is pure: bytes in, values out; values in, text out. No socket, no clock, no storage. A generation
//! is one module, an operation one file in it, and all generations are views of the same [`longhaul_task::Task`].
//!
//! ```
//! use longhaul_task::transition::{self, Create};
//! use longhaul_task::{Owner, Policy, Retention, TaskId, TaskKey, Timestamp, ToolRef};
//! use longhaul_wire::jsonrpc::{self, Message};
//! use longhaul_wire::{View, ext2026};
//!
//! let now = Timestamp::from_ms(1_764_066_600_000);
//! let key = TaskKey { owner: Owner::parse("ada").unwrap(), id: TaskId::parse("t-1").unwrap() };
//! let task = transition::create(
//!     &Create {
//!         key,
//!         tool: ToolRef::new("generate_report", "1"),
//!         origin: ext2026::ORIGIN.into(),
//!         policy: Policy::default(),
//!         retention: Retention::FromCreation(3_600_000),
//!         claimed_by: None,
//!         fences_from: 0,
//!     },
//!     now,
//! );
//!
//! let bytes = br#"{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"t-1","_meta":{
//!     "io.modelcontextprotocol/protocolVersion":"2026-07-28",
//!     "io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}"#;
//! let Message::Request(request) = jsonrpc::parse(bytes).unwrap() else { panic!() };
//! let accepted = ext2026::accept(&request, None, &[ext2026::VERSION]).unwrap();
//! accepted.meta.capabilities.require(ext2026::Capability::Tasks).unwrap();
//! assert_eq!(ext2026::required_task_id(&accepted.params).unwrap().as_str(), "t-1");
//!
//! let answer = ext2026::tasks_get::answer(&request.id, &View::of(&task, now), &ext2026::ServerInfo::hidden());
//! assert_eq!(
//!     answer,
//!     r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","taskId":"t-1","status":"working","createdAt":"2025-11-25T10:30:00.000Z","lastUpdatedAt":"2025-11-25T10:30:00.000Z","ttlMs":3600000}}"#
//! );
//! ```
//!
//! # Layout
//!
//! - [`jsonrpc`]: messages, IDs, errors. [`sse`]: events.
//! - [`core2025`]: the stateful era, and tasks at 2025-11-25. [`ext2026`]: the tasks extension at 2026-07-28. Other
//!   generations become modules beside them.
//! - [`refusal`]: the errors that they share.
//! - [`View`]: a task and what stands beside it: what every generation projects.
//! - [`question`]: questions to the requestor, and whether an answer fits.
//! - [`tool`]: the MCP half of a tool's declaration. [`content`]: what tools answer with.

mod cancelled;
mod capability;
mod headers;
mod logging;
mod params;
mod progress;
mod project;
mod schema;
mod splice;
mod text;
mod view;

pub mod content;
pub mod core2025;
pub mod ext2026;
pub mod jsonrpc;
pub mod question;
pub mod refusal;
pub mod sse;
pub mod tool;

pub use cancelled::Cancelled;
pub use capability::{Capabilities, Capability};
pub use headers::{HeaderValue, Headers};
pub use logging::{LogLevel, LogMessage};
pub use view::View;

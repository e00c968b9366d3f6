//! Durable tasks for MCP servers: call now, fetch later, survive everything in between.
//!
//! A tool call that takes minutes or days is accepted at once, answered with a task ID, carried out in the background
//! and collected later, by the same client or another one, before or after a crash of either side.
//!
//! ```no_run
//! use longhaul::{Ctx, JsonSchema, OnCrash, Server, StoreUrl, Tool};
//!
//! #[derive(serde::Deserialize, JsonSchema)]
//! struct Book {
//!     pages: u32,
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let write_book = Tool::new("write_book", |mut ctx: Ctx, Book { pages }| async move {
//!     for page in 1..=pages {
//!         ctx.progress(page, pages, &format!("page {page}")).await?;
//!         tokio::time::sleep(std::time::Duration::from_secs(1)).await;
//!     }
//!     Ok(format!("{pages} pages written"))
//! })
//! .description("Writes a book.")
//! .on_crash(OnCrash::Retry);
//!
//! let store = "sqlite:books.db".parse::<StoreUrl>()?.open().await?;
//! let server = Server::new("library").tool(write_book).start(store).await?;
//! server.listen("127.0.0.1:8377".parse()?).await?.serve().await?;
//! # Ok(())
//! # }
//! ```
//!
//! # What is where
//!
//! - [`Tool`]: what a tool is called, does, and may use. [`Ctx`]: what its function gets. [`Answer`], [`Structured`],
//!   [`Failure`]: what it returns.
//! - [`Form`], [`Sampling`], [`Roots`]: what it can ask its client.
//! - [`Server`]: a whole server, over HTTP or stdio. [`StoreUrl`]: where tasks are kept.
//! - [`TokenFile`]: who may call. [`Identify`]: the same in another way.

mod answer;
mod error;
mod failure;
mod question;
mod schema;
mod server;
mod store_url;
mod tool;

pub use answer::{Answer, Structured};
pub use error::Error;
pub use failure::Failure;
pub use longhaul_engine::{Amount, Ask, Ctx, EngineLimits, Severity, Stop, ToolLimits, Total};
pub use longhaul_receiver::audit::TARGET as AUDIT_TARGET;
pub use longhaul_server::{
    Caller, Identify, Limits, NotIdentified, Presented, RateLimits, SessionLimits, TokenError, TokenFile,
    TokenFileError, Tokens,
};
pub use longhaul_task::{Fault, Json, NameError, OnCrash, Owner, QuestionKind, Retention, TaskId};
pub use longhaul_wire::content::{Content, ToolResult};
pub use longhaul_wire::tool::{Annotations, TaskSupport};
pub use question::{Filled, Form, Root, Roots, Sampled, Sampling};
pub use schemars::JsonSchema;
pub use server::{Listening, Server, Started};
pub use store_url::StoreUrl;
pub use tool::Tool;

/// The arguments of a tool that takes none.
#[derive(Debug, Clone, Copy, Default, serde::Deserialize, serde::Serialize, JsonSchema)]
pub struct NoArgs {}

//! Durable tasks for MCP servers: call now, fetch later, survive everything in between.
//!
//! A tool call that takes minutes or days returns a task ID at once, runs in the background, and its result is collected
//! later, by the same client or another one, before or after a crash of either side.
//!
//! ```no_run
//! use longhaul::{Ctx, JsonSchema, OnCrash, Server, StoreUrl, Tool};
//!
//! #[derive(serde::Deserialize, JsonSchema)]
//! struct Book {
//!     pages: u32,
//! }
//!
//! # async fn write(page: u32) -> Result<(), std::io::Error> { Ok(()) }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let write_book = Tool::new("write_book", |mut ctx: Ctx, Book { pages }| async move {
//!     for page in 1..=pages {
//!         ctx.progress(page, pages, &format!("page {page}")).await?;
//!         ctx.step("write", || write(page)).await?; // recorded: a crash does not repeat it
//!     }
//!     Ok(format!("{pages} pages written"))
//! })
//! .description("Writes a book.")
//! .on_crash(OnCrash::Resume);
//!
//! let store = "sqlite:books.db".parse::<StoreUrl>()?.open().await?;
//! let server = Server::new("library").tool(write_book).start(store).await?;
//! server.listen("127.0.0.1:8377".parse()?).await?.serve().await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Layout
//!
//! - [`Tool`]: a tool's name, function and limits. [`Ctx`]: what its function gets. [`IntoToolResult`], [`Structured`],
//!   [`Failure`]: what it returns.
//! - [`Form`], [`Sampling`], [`Roots`]: what it can ask its client; [`Ask`]: a question of your own.
//! - [`Subtask`]: a call of another tool as a task of its own; [`TaskResult`]: how it ended.
//! - `command` (with the feature of this name): other programs, ended with everything that they have started.
//! - [`Prompt`], [`Resource`], [`ResourceTemplate`]: what a server offers beside tools. [`ServerHandle`]: changes while it
//!   runs.
//! - [`testing`]: runs a tool in memory, crashes it after any journal entry, and compares the results.
//! - [`Server`]: a whole server, over HTTP or stdio. [`StoreUrl`]: where tasks are kept.
//! - [`TokenFile`]: who may call; [`Identify`]: callers told apart in a way of your own.

#![warn(missing_docs)]

mod arguments;
#[cfg(feature = "command")]
pub mod command;
mod completion;
mod error;
mod function;
mod handle;
mod prompt;
mod question;
mod regular_file;
mod resource;
mod schema;
mod server;
mod store_url;
mod subtask;
mod task_result;
pub mod testing;
mod text_arguments;
mod tool;
mod tool_result;

pub use completion::CompletionRequest;
pub use error::Error;
pub use handle::ServerHandle;
/// A question of your own, where [`Form`], [`Sampling`] and [`Roots`] are not enough:
///
/// ```
/// use longhaul::{Ask, Ctx, Failure, Json, QuestionKind, CtxError};
///
/// /// Sends the user to a page, and tells whether they agreed.
/// struct SignIn {
///     url: &'static str,
/// }
///
/// impl Ask for SignIn {
///     type Answer = bool;
///
///     fn kind(&self) -> QuestionKind {
///         QuestionKind::Elicitation
///     }
///
///     fn params(&self) -> Json {
///         let url = self.url;
///         Json::from_text(format!(
///             r#"{{"mode":"url","message":"Please sign in.","url":"{url}","elicitationId":"sign-in"}}"#
///         ))
///     }
///
///     fn read(&self, answer: &Json) -> Result<bool, CtxError> {
///         let answer: serde_json::Value =
///             serde_json::from_str(answer.as_str()).map_err(|error| CtxError::BadAnswer(error.to_string()))?;
///         Ok(answer["action"] == "accept")
///     }
/// }
///
/// async fn handler(mut ctx: Ctx) -> Result<String, Failure> {
///     let agreed = ctx.ask("sign-in", SignIn { url: "https://example.com/login" }).await?;
///     Ok(format!("agreed: {agreed}"))
/// }
/// ```
#[doc(inline)]
pub use longhaul_engine::Ask;
pub use longhaul_engine::{
    Amount, Ctx, CtxError, EngineLimits, Failure, Fork, Race, Retry, Severity, Step, SubtaskRequest, Subtasks,
    ToolLimits, Total,
};
pub use longhaul_receiver::audit::TARGET as AUDIT_TARGET;
/// Callers told apart in a way of your own:
///
/// ```
/// use std::sync::Arc;
///
/// use longhaul::{Caller, HeaderMap, Identify, NotIdentified, Owner, Credentials, Server};
///
/// /// A proxy in front of the server names the user in a header.
/// #[derive(Debug)]
/// struct BehindProxy;
///
/// impl Identify for BehindProxy {
///     fn identify(&self, shown: &Credentials<'_>) -> Result<Arc<Caller>, NotIdentified> {
///         let name = shown.header("x-user").ok_or(NotIdentified::Missing)?;
///         let name = std::str::from_utf8(name).map_err(|_| NotIdentified::Unknown)?;
///         let owner = Owner::parse(name).map_err(|_| NotIdentified::Unknown)?;
///         Ok(Arc::new(Caller::known(owner)))
///     }
/// }
///
/// let server = Server::new("library").identity(BehindProxy);
///
/// let mut headers = HeaderMap::new();
/// headers.insert("x-user", "ada".parse()?);
/// assert_eq!(BehindProxy.identify(&Credentials::from_headers(&headers))?.owner.as_str(), "ada");
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use longhaul_server::Identify;
pub use longhaul_server::{
    Caller, Credentials, FileCheck, FollowedFile, FollowedFileError, HeaderMap, NotIdentified, RateLimits,
    ServerLimits, SessionLimits, TokenError, TokenFile, TokenFileError, Tokens,
};
pub use longhaul_store::embedded::EmbeddedLimits;
pub use longhaul_store::{Backup, BackupError, OpenError, ReadOnlyStore, Store, StoreError};
pub use longhaul_task::{
    Json, NameError, OnCrash, Outcome, Owner, QuestionKind, Retention, TaskError, TaskId, Timestamp,
};
pub use longhaul_wire::content::{Content, ToolResult};
pub use longhaul_wire::prompt::{PromptMessage, PromptResult};
pub use longhaul_wire::resource::{ResourceAnnotations, ResourceContent, ResourceContents};
pub use longhaul_wire::ticket::TicketNames;
pub use longhaul_wire::tool::{Annotations, TaskSupport};
pub use longhaul_wire::{Icon, IconTheme};
pub use prompt::{IntoPromptResult, Prompt};
pub use question::{Form, FormAnswer, Root, Roots, Sampling, SamplingAnswer, Visit};
/// For the prompts of a config file.
#[doc(hidden)]
pub use regular_file::read_regular_file;
pub use resource::{IntoResourceContents, Resource, ResourceTemplate};
pub use schemars::JsonSchema;
pub use server::{HttpServer, PipeServer, RunningServer, Server};
pub use store_url::StoreUrl;
pub use subtask::Subtask;
pub use task_result::TaskResult;
pub use tokio_util::sync::CancellationToken;
pub use tool::Tool;
pub use tool_result::{IntoToolResult, Structured, StructuredWithText};

/// The arguments of a tool that takes none.
#[derive(Debug, Clone, Copy, Default, serde::Deserialize, serde::Serialize, JsonSchema)]
pub struct NoArgs {}

/// Compiles and runs the code of the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/durable-tools.md")]
mod durable_tools_guide {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/server.md")]
mod server_guide {}

//! The engine: takes tasks, runs them, ends them, and comes back after a crash.
//!
//! ```text
//!  create ──► admit ──► store.create (claimed at once if a worker is free) ──► start ─┐
//!                                                                                     ▼
//!  claim ◄── a worker is free ◄── over ◄── store.apply(settle) ◄── the handler ends ◄─┤ attempt
//!                                                                                     │
//!  cancel ──► store.apply(cancel) ──► the handler is told ──► grace period ──► dropped┘
//! ```
//!
//! - [`core`]: every decision, as a deterministic step function without a clock, a runtime or a store.
//! - [`Engine`]: the face of the thin async shell around it.
//! - [`Ctx`]: what a handler gets; [`Ask`]: what it can ask; [`CtxError`]: why it cannot go on.
//! - [`EngineTool`], [`Handler`]: what the engine runs; [`ToolLimits`], [`EngineLimits`]: what it may use.
//! - [`audit`]: the events of the audit log.
//! - [`CallOptions`], [`CallEnd`]: ordinary calls, for clients that did not ask for a task.
//! - [`LogLine`], [`Severity`]: what a handler logs; [`LogTail`]: the lines of a task, for a client that follows it.

mod amount;
mod ask;
mod attempt;
pub mod audit;
mod budget;
mod call;
pub mod core;
mod ctx;
mod ending;
mod engine;
mod error;
mod gate;
mod limits;
mod log;
mod random;
mod service;
mod shares;
mod shell;
mod task_link;
mod tool;
mod unanswered;

pub use amount::{Amount, Total};
pub use ask::Ask;
pub use budget::{Budget, BudgetUse, Share};
pub use call::{CallEnd, CallOptions, OpenQuestion, Requestor};
pub use ctx::Ctx;
pub use engine::{Engine, NewCall};
pub use error::{CtxError, EngineError};
pub use limits::{EngineLimits, ToolLimits};
pub use log::{LOG_BYTES_MAX, LogLine, LogTail, Severity};
pub use random::{RandomSource, SystemRandom, secret};
pub use tool::{EngineTool, Handler};
pub use unanswered::not_answered;

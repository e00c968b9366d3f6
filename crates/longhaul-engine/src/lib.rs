//! The engine: admits tasks, runs them, writes their ends, and recovers them after a crash.
//!
//! ```text
//!  create ──► admit ──► store.create (claimed at once if a worker is free) ──► start ─┐
//!                                                                                     ▼
//!  claim ◄── a worker is free ◄── store.apply(settle) ◄── the handler ends ◄──────────┤ attempt
//!                                                                                     │
//!  cancel ──► store.apply(cancel) ──► the handler is told ──► grace period ──► dropped┘
//! ```
//!
//! - [`core`]: every decision, as a deterministic step function without a clock, a runtime or a store.
//! - [`Engine`]: the interface of the thin async shell that performs the decisions.
//! - [`Ctx`]: what a handler gets; [`Ask`]: what it can ask; [`CtxError`]: why it cannot go on.
//! - [`Step`], [`Retry`], [`Race`], [`Subtasks`]: operations that the journal records; [`history_events`]: what happened to a
//!   task.
//! - [`EngineTool`], [`Handler`]: what the engine runs; [`ToolLimits`], [`EngineLimits`]: the limits of a tool and of the
//!   engine.
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
mod failure;
mod fork;
mod history;
mod journal;
mod limits;
mod log;
mod race;
mod random;
mod registry;
mod retry;
mod service;
mod shares;
mod shell;
mod sorted;
mod step;
mod subtask;
mod task_link;
mod timer;
mod token;
mod tool;
mod wait_tracker;

pub use amount::{Amount, Total};
pub use ask::Ask;
pub use budget::{Budget, BudgetUse, Share};
pub use call::{CallEnd, CallOptions, OpenQuestion, Requestor};
pub use ctx::Ctx;
pub use engine::{Engine, NewCall};
pub use error::{CtxError, EngineError};
pub use failure::Failure;
pub use fork::Fork;
pub use history::{HistoryEvent, HistoryItem, events as history_events};
pub use limits::{EngineLimits, ToolLimits};
pub use log::{LOG_BYTES_MAX, LogLine, LogTail, Severity};
pub use race::Race;
pub use random::{RandomSource, SystemRandom, secret};
pub use retry::Retry;
#[doc(hidden)]
pub use service::Activity;
pub use step::{GiveUp, GiveUpIf, RetriedStep, Step};
pub use subtask::{SubtaskRequest, Subtasks};
pub use tool::{AnswerCheck, EngineTool, Handler};

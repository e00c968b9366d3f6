//! Tests of tools: in memory, without a server, and without waiting.
//!
//! [`run`] runs a tool on the real engine with a store in memory. A [`Run`] answers the questions of the tool, cancels it, kills
//! its process after any journal entry, and shows what was recorded. [`Run::assert_resumable`] repeats a run with a crash after
//! each entry in turn: use it for each tool with [`OnCrash::Resume`].
//!
//! ```
//! use std::time::Duration;
//!
//! use longhaul::{Ctx, Form, FormAnswer, JsonSchema, NoArgs, OnCrash, Tool};
//! use serde_json::json;
//!
//! #[derive(serde::Deserialize, JsonSchema)]
//! struct Approval {
//!     go_on: bool,
//! }
//!
//! fn deploy() -> Tool {
//!     Tool::new("deploy", |mut ctx: Ctx, _: NoArgs| async move {
//!         let build: u32 = ctx.step("build", || async { Ok::<_, std::io::Error>(7) }).await?;
//!         let answer = ctx.ask("approve", Form::<Approval>::new("Deploy it?")).await?;
//!         let FormAnswer::Accepted(Approval { go_on: true }) = answer else { return Ok("stopped".into()) };
//!         ctx.sleep("cool down", Duration::from_secs(3600)).await?;
//!         Ok(format!("build {build} is out"))
//!     })
//!     .on_crash(OnCrash::Resume)
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let mut run = longhaul::testing::run(deploy(), json!({})).await;
//! run.answer("approve", json!({ "go_on": true })).await;
//! assert_eq!(run.result().await.text().unwrap(), "build 7 is out");
//! run.assert_resumable().await;
//! # }
//! ```
//!
//! # Time
//!
//! The clock of the store stands still while a handler works, and jumps to the next timer, deadline or retry when every
//! handler waits for its context: a `ctx.sleep` of a day takes no time. `tokio::time::sleep` in a handler takes real time.
//!
//! # What a crash is here
//!
//! The process is a thread with a runtime of its own. A crash drops the runtime with everything that runs on it, and the next
//! process starts on the same tables. What your functions hold (an `Arc` of a counter, a connection to another process) outlives
//! the crash, as the world outside of a server does.

#![allow(clippy::missing_panics_doc, reason = "the functions are assertions; the type says so once")]

mod process;
mod resumable;
mod run;

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;

use longhaul_engine::EngineTool;
pub use longhaul_engine::{HistoryEvent, HistoryItem};
use longhaul_task::Json;
pub use longhaul_task::{AttemptEnd, EntryState, JournalPosition};
use serde::Serialize;
use serde_json::value::RawValue;

pub use self::run::Run;
use crate::{OnCrash, Tool};

/// Runs a tool with these arguments. The run begins when it is first used, so that a test can first set
/// [where it crashes](Run::crash_after).
///
/// The arguments are those of the tool's own function: the function of [`Tool::ask_first`] does not run.
///
/// # Panics
///
/// If the tool's declaration is not valid, or the arguments do not fit it. All functions of a [`Run`] panic, like
/// assertions.
pub fn run(tool: Tool, arguments: impl Serialize) -> RunBuilder {
    let arguments = serde_json::value::to_raw_value(&arguments).expect("the arguments can be written as JSON");
    RunBuilder { tool, arguments, others: Vec::new() }
}

/// A run that is being prepared. Await it to get the [`Run`].
#[must_use = "a run does nothing until it is awaited"]
#[derive(Debug)]
pub struct RunBuilder {
    tool: Tool,
    arguments: Box<RawValue>,
    others: Vec<Tool>,
}

impl RunBuilder {
    /// Adds a tool that the run needs for its subtasks.
    pub fn tool(mut self, tool: Tool) -> Self {
        self.others.push(tool);
        self
    }

    /// Adds several tools that the run needs for its subtasks.
    pub fn tools(mut self, tools: impl IntoIterator<Item = Tool>) -> Self {
        self.others.extend(tools);
        self
    }

    fn build(self) -> Run {
        let has_prelude = self.tool.asks_first();
        let (declaration, tool) = self.tool.split().expect("the tool's declaration is valid");
        if !has_prelude && let Err(errors) = declaration.check_arguments(&self.arguments) {
            panic!("{errors}");
        }
        let name = Arc::clone(&tool.tool.name);
        let others = self.others.into_iter().map(|other| other.split().expect("the tool's declaration is valid").1);
        let mut tools: Vec<EngineTool> = std::iter::once(tool).chain(others).collect();
        for tool in tools.iter_mut().filter(|tool| tool.policy.on_crash == OnCrash::Resume) {
            // A server drops a handler that waits for long, and the time without a handler does not count towards this limit.
            // Here the clock jumps before the handler is dropped, so the limit is lifted.
            tool.policy.running_ms_max = u64::MAX;
        }
        Run::new(Arc::new(RunSetup { tool: name, tools, input: Json::from_text(self.arguments.get()) }))
    }
}

impl IntoFuture for RunBuilder {
    type Output = Run;
    type IntoFuture = Pin<Box<dyn Future<Output = Run> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.build() })
    }
}

/// The tool and its input, kept so that the run can be repeated.
#[derive(Debug)]
struct RunSetup {
    tool: Arc<str>,
    /// The tool itself is the first.
    tools: Vec<EngineTool>,
    input: Json,
}

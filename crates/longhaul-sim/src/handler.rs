//! Handlers that run scripts with the real `Ctx`.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use longhaul_engine::{Ask, Ctx, CtxError, EngineTool, Handler, Severity};
use longhaul_store::{Embedded, Store};
use longhaul_task::{JournalPosition, Json, OnCrash, Outcome, QuestionKind, TaskKey};
use parking_lot::Mutex;

use crate::ledger::Fact;
use crate::setup::{Op, Script, ScriptEnd, ToolSetup};
use crate::world::World;

/// The tool with this index, for the engine with this index.
pub(crate) fn tool(world: &World, store: &Embedded, engine: usize, tool_index: usize) -> EngineTool {
    let ToolSetup { tool, policy, retention, limits, .. } = &world.setup().tools[tool_index];
    let handler = ScriptedHandler { world: world.clone(), store: store.clone(), engine, tool_index };
    EngineTool {
        tool: tool.clone(),
        policy: policy.clone(),
        retention: *retention,
        limits: limits.clone(),
        handler: Arc::new(handler),
        prelude: None,
    }
}

/// Runs a script. The input is the number of the script.
struct ScriptedHandler {
    world: World,
    store: Embedded,
    engine: usize,
    tool_index: usize,
}

impl Handler for ScriptedHandler {
    fn run(&self, ctx: Ctx, input: Json) -> BoxFuture<'static, Result<Outcome, CtxError>> {
        let script = self.world.script(input.as_str().parse().unwrap_or(0));
        let id = ctx.task_id().cloned();
        let Some(id) = id else { return std::future::ready(Err(CtxError::Cancelled)).boxed() };
        let run = ScriptRun {
            key: TaskKey { owner: script.owner.clone(), id },
            attempt: ctx.attempt(),
            resumes: self.world.setup().tools[self.tool_index].policy.on_crash == OnCrash::Resume,
            work: HandlerActivity::begin(&self.world, self.engine, self.tool_index),
            world: self.world.clone(),
            store: self.store.clone(),
            script,
        };
        Box::pin(run.run(ctx))
    }
}

/// One run of a script.
struct ScriptRun {
    world: World,
    store: Embedded,
    key: TaskKey,
    attempt: u32,
    resumes: bool,
    script: Arc<Script>,
    work: HandlerActivity,
}

impl ScriptRun {
    async fn run(self, ctx: Ctx) -> Result<Outcome, CtxError> {
        self.world.note(Fact::Started { key: self.key.clone(), attempt: self.attempt });
        let ended = self.branch(ctx, "", &self.script.ops).await;
        if ended == Err(CtxError::Cancelled) && self.script.stubborn {
            self.world.count_other("stubborn handler");
            std::future::pending::<()>().await;
        }
        ended?;
        let answer = |text: String, is_error| Ok(Outcome::Result { body: Json::from_text(text), is_error });
        match self.script.end {
            ScriptEnd::Answer => answer("1".into(), false),
            ScriptEnd::ToolError => answer("0".into(), true),
            ScriptEnd::TooLarge => answer(format!("\"{}\"", "x".repeat(100)), false),
            ScriptEnd::Error => Err(CtxError::BadAnswer("simulated".into())),
            // Without the panic hook, which would write to the terminal.
            ScriptEnd::Panic => std::panic::resume_unwind(Box::new("simulated")),
        }
    }

    fn branch<'a>(&'a self, mut ctx: Ctx, path: &'a str, ops: &'a [Op]) -> BoxFuture<'a, Result<(), CtxError>> {
        Box::pin(async move {
            let mut asked = 0;
            for (number, op) in ops.iter().enumerate() {
                match op {
                    Op::Work(ms) => tokio::time::sleep(Duration::from_millis(*ms)).await,
                    Op::Report => ctx.report(&format!("at {number}")).await?,
                    Op::Progress => ctx.progress(1, None, &format!("attempt {}", self.attempt)).await?,
                    Op::Log => ctx.log(Severity::Info, "at work"),
                    Op::Ask => {
                        let position = JournalPosition { fork: path.into(), seq: asked };
                        asked += 1;
                        self.ask(&mut ctx, position).await?;
                    }
                    Op::Fork(left, right) => self.fork(&mut ctx, path, number, [left, right]).await?,
                    Op::Hang => self.hang(&ctx).await?,
                }
            }
            Ok(())
        })
    }

    async fn ask(&self, ctx: &mut Ctx, position: JournalPosition) -> Result<(), CtxError> {
        self.work.asks(true);
        let answer = ctx.ask("q", ScriptQuestion).await;
        if answer.is_err() {
            // The attempt may have lost its task and so its worker.
            self.work.stop();
        }
        self.work.asks(false);
        let epoch = if self.resumes { 0 } else { self.attempt };
        self.world.note(Fact::Got { key: self.key.clone(), epoch, position, output: answer? });
        Ok(())
    }

    async fn fork(&self, ctx: &mut Ctx, path: &str, number: usize, ops: [&[Op]; 2]) -> Result<(), CtxError> {
        let keys = ["l", "r"].map(|side| format!("{number}{side}"));
        let paths = keys.each_ref().map(|key| if path.is_empty() { key.clone() } else { format!("{path}/{key}") });
        self.work.forks();
        let branches = [0, 1].map(|side| {
            let branch = ctx.fork(&keys[side], |ctx| self.branch(ctx, &paths[side], ops[side]));
            branch.inspect(|_| self.work.joins())
        });
        let [left, right] = branches;
        let (left, right) = tokio::join!(left, right);
        left.and(right)
    }

    /// Runs until it is cancelled, or until the calm phase. If the attempt has lost its task by then, it waits for the
    /// cancellation.
    async fn hang(&self, ctx: &Ctx) -> Result<(), CtxError> {
        tokio::select! {
            biased;
            () = ctx.cancelled() => return Err(CtxError::Cancelled),
            () = self.world.calm() => {}
        }
        let found = self.store.read(&self.key).await;
        if found.is_ok_and(|found| found.task.attempt == self.attempt && found.task.phase.active_attempt().is_some()) {
            return Ok(());
        }
        ctx.cancelled().await;
        Err(CtxError::Cancelled)
    }
}

struct ScriptQuestion;

impl Ask for ScriptQuestion {
    type Answer = Json;

    fn kind(&self) -> QuestionKind {
        QuestionKind::Elicitation
    }

    fn params(&self) -> Json {
        Json::from_text("{}")
    }

    fn read(&self, answer: &Json) -> Result<Json, CtxError> {
        Ok(answer.clone())
    }
}

/// Counts a handler as working while at least one of its branches does not wait for an answer.
struct HandlerActivity {
    world: World,
    engine: usize,
    tool_index: usize,
    state: Mutex<ActivityState>,
}

struct ActivityState {
    /// Branches that have not forked.
    leaves: usize,
    /// Branches that wait for an answer.
    asking: usize,
    stopped: bool,
    counted: bool,
    /// 1 while one branch of a fork has ended and the other has not.
    half_joined: usize,
}

impl HandlerActivity {
    fn begin(world: &World, engine: usize, tool_index: usize) -> Self {
        world.state().handlers += 1;
        let state = ActivityState { leaves: 1, asking: 0, stopped: false, counted: false, half_joined: 0 };
        let work = Self { world: world.clone(), engine, tool_index, state: Mutex::new(state) };
        work.change(|_| ());
        work
    }

    fn asks(&self, begins: bool) {
        self.change(|state| if begins { state.asking += 1 } else { state.asking -= 1 });
    }

    fn forks(&self) {
        self.change(|state| state.leaves += 1);
    }

    /// A branch has ended. After the first branch of a fork there is one leaf less; after the second the fork itself
    /// is a leaf.
    fn joins(&self) {
        self.change(|state| {
            if state.half_joined == 0 {
                state.half_joined = 1;
                state.leaves -= 1;
            } else {
                state.half_joined = 0;
            }
        });
    }

    fn stop(&self) {
        self.change(|state| state.stopped = true);
    }

    fn change(&self, change: impl FnOnce(&mut ActivityState)) {
        let mut state = self.state.lock();
        change(&mut state);
        let works = !state.stopped && state.asking < state.leaves;
        if works == state.counted {
            return;
        }
        state.counted = works;
        let handlers = {
            let mut world = self.world.state();
            if world.crashed.is_some() {
                return;
            }
            let count = world.working.entry((self.engine, self.tool_index)).or_default();
            *count = if works { *count + 1 } else { count.saturating_sub(1) };
            *count
        };
        if works && handlers > 1 {
            let tool = self.world.setup().tools[self.tool_index].tool.clone();
            self.world.note(Fact::Working { tool, handlers });
        }
    }
}

impl Drop for HandlerActivity {
    fn drop(&mut self) {
        self.stop();
        let mut world = self.world.state();
        if world.crashed.is_none() {
            world.handlers = world.handlers.saturating_sub(1);
        }
    }
}

//! Handlers that run scripts with the real `Ctx`.

mod forks;

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use longhaul_engine::{Ask, Ctx, CtxError, EngineTool, Failure, Handler, Retry, Severity, SubtaskRequest};
use longhaul_store::{Embedded, Store};
use longhaul_task::{JournalPosition, Json, OnCrash, Outcome, QuestionKind, TaskKey};
use parking_lot::Mutex;

use crate::activity::{BranchWait, HandlerActivity, Leaf};
use crate::ledger::{Fact, failed};
use crate::setup::{AwaitedSubtasks, Op, Script, ScriptEnd, StepPlan, SubtaskPlan, ToolSetup};
use crate::world::World;

/// The tool with this index, for the engine with this index.
pub(crate) fn tool(world: &World, store: &Embedded, engine: usize, tool_index: usize) -> EngineTool {
    let ToolSetup { tool, policy, retention, limits, retries_failures, .. } = &world.setup().tools[tool_index];
    let handler = ScriptedHandler { world: world.clone(), store: store.clone(), engine, tool_index };
    EngineTool {
        tool: tool.clone(),
        policy: policy.clone(),
        result_kind: "tool",
        retention: *retention,
        limits: limits.clone(),
        handler: Arc::new(handler),
        prelude: None,
        check_answer: |_, _, _| Ok(()),
        error_text: |body| body.as_str().to_owned(),
        retries_failures: *retries_failures,
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
            asking: Mutex::default(),
            spawning: Mutex::default(),
        };
        let stop = StopOnDrop(Arc::clone(&run.work));
        Box::pin(ScriptedHandlerFuture { _stop: stop, run: Box::pin(run.run(ctx)) })
    }
}

/// The future of a handler. When it is dropped, the handler first stops counting as working, because its branches are dropped
/// one by one.
struct ScriptedHandlerFuture {
    /// Dropped first.
    _stop: StopOnDrop,
    run: BoxFuture<'static, Result<Outcome, CtxError>>,
}

impl Future for ScriptedHandlerFuture {
    type Output = Result<Outcome, CtxError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.run.as_mut().poll(cx)
    }
}

struct StopOnDrop(Arc<HandlerActivity>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
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
    work: Arc<HandlerActivity>,
    /// The branches that wait for an answer, and those that wait for subtasks. A branch that is dropped stays in the set.
    asking: Mutex<BTreeSet<String>>,
    spawning: Mutex<BTreeSet<String>>,
}

impl ScriptRun {
    async fn run(self, ctx: Ctx) -> Result<Outcome, CtxError> {
        self.world.note(Fact::Started { key: self.key.clone(), attempt: self.attempt });
        let ended = self.branch(ctx, String::new(), &self.script.ops, None).await;
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

    /// Runs operations one after the other. `leaf` counts the branch until it ends.
    fn branch<'a>(
        &'a self,
        ctx: Ctx,
        path: String,
        ops: &'a [Op],
        leaf: Option<Leaf>,
    ) -> BoxFuture<'a, Result<(), CtxError>> {
        Box::pin(async move {
            let wait = leaf.as_ref().map(|leaf| Arc::clone(&leaf.wait)).unwrap_or_default();
            let mut branch = Branch { run: self, ctx, path, seq: 0, wait };
            for (number, op) in ops.iter().enumerate() {
                if let Err(error) = branch.perform(number, op).await {
                    // The attempt may have lost its task and so its worker.
                    self.work.stop();
                    return Err(error);
                }
            }
            drop(leaf);
            Ok(())
        })
    }

    /// Counts the branch as waiting during an operation. After an error the attempt may have lost its task and so its worker.
    async fn waiting<T>(
        &self,
        branch: &BranchWait,
        operation: impl Future<Output = Result<T, CtxError>>,
    ) -> Result<T, CtxError> {
        self.work.set_waiting(branch, true);
        let ended = operation.await;
        if ended.is_err() {
            self.work.stop();
        }
        self.work.set_waiting(branch, false);
        ended
    }

    fn epoch(&self) -> u32 {
        if self.resumes { 0 } else { self.attempt }
    }
}

/// One branch of a handler.
struct Branch<'a> {
    run: &'a ScriptRun,
    ctx: Ctx,
    path: String,
    /// Position of the next recorded operation.
    seq: u32,
    wait: Arc<BranchWait>,
}

impl Branch<'_> {
    async fn perform(&mut self, number: usize, op: &Op) -> Result<(), CtxError> {
        let run = self.run;
        match op {
            Op::Work(ms) => tokio::time::sleep(Duration::from_millis(*ms)).await,
            Op::Report => self.ctx.report(&format!("attempt {}", run.attempt)).await?,
            Op::Progress => self.ctx.progress(1, None, &format!("attempt {}", run.attempt)).await?,
            Op::Log => self.ctx.log(Severity::Info, "at work"),
            Op::Ask => self.ask(None).await?,
            Op::AskWithin(ms) => self.ask(Some(Duration::from_millis(*ms))).await?,
            Op::Step(plan) => self.step(*plan).await?,
            Op::Sleep(ms) => self.sleep(*ms).await?,
            Op::Now => {
                let position = self.next_position();
                let now = self.ctx.now().await?;
                self.note_recorded_output(position, Json::from_text(now.as_ms().to_string()));
            }
            Op::Random => {
                let position = self.next_position();
                let bits = self.ctx.random().await?;
                self.note_recorded_output(position, Json::from_text(format!("{bits:?}").replace(' ', "")));
            }
            Op::Subtasks(awaited, plans) => self.subtasks(*awaited, plans).await?,
            Op::Fork { left, right, is_renamed } => self.fork(number, [left, right], *is_renamed).await?,
            Op::LeaveQuestion(ms) => self.leave_question(number, *ms).await?,
            Op::Race(first, second) => self.race(first, second).await?,
            Op::TimeLimit(ms, ops) => self.time_limit(*ms, ops).await?,
            Op::Hang => self.hang().await?,
        }
        Ok(())
    }

    /// The position of the next operation.
    fn next_position(&mut self) -> JournalPosition {
        let position = JournalPosition { fork: self.path.as_str().into(), seq: self.seq };
        self.seq += 1;
        position
    }

    fn note_output(&self, position: JournalPosition, output: Json) {
        let (key, attempt, epoch) = (self.run.key.clone(), self.run.attempt, self.run.epoch());
        self.run.world.note(Fact::Got { key, attempt, epoch, position, output });
    }

    /// Notes the output of an operation that only a tool that resumes records.
    fn note_recorded_output(&self, position: JournalPosition, output: Json) {
        if self.run.resumes {
            self.note_output(position, output);
        }
    }

    fn count(&self, what: &'static str) {
        self.run.world.count_other(what);
    }

    async fn ask(&mut self, limit: Option<Duration>) -> Result<(), CtxError> {
        let position = self.next_position();
        let run = self.run;
        if run.script.depth > 0 {
            self.count("child asked");
        }
        run.asking.lock().insert(self.path.clone());
        let ctx = &mut self.ctx;
        let output = run
            .waiting(&self.wait, async {
                if let Some(limit) = limit {
                    return ctx.ask_within("q", ScriptQuestion, limit).await;
                }
                match ctx.ask("q", ScriptQuestion).await {
                    Err(CtxError::NotAnswered(reason)) => Ok(Some(failed(&reason))),
                    answer => answer.map(Some),
                }
            })
            .await?;
        run.asking.lock().remove(&self.path);
        // The handler does not learn why there is no answer, so there is nothing to compare.
        let Some(output) = output else {
            self.count("no answer in time");
            return Ok(());
        };
        if output.as_str().starts_with("failed") {
            self.count("answer not given");
        }
        self.note_output(position, output);
        Ok(())
    }

    async fn step(&mut self, plan: StepPlan) -> Result<(), CtxError> {
        let position = self.next_position();
        let run = self.run;
        let done = AtomicU32::new(0);
        let wait = &*self.wait;
        let work = || async {
            run.work.set_waiting(wait, false);
            let worked = run.work_of_step(&position, plan, done.fetch_add(1, Ordering::Relaxed)).await;
            run.work.set_waiting(wait, true);
            worked
        };
        let ctx = &mut self.ctx;
        let ended = async {
            let ended = match plan.retry {
                None => ctx.step("step", work).await,
                Some((tries, pause_ms)) => {
                    let retry = Retry::times(tries).backoff(Duration::from_millis(pause_ms));
                    ctx.step("step", work).retry(retry).await
                }
            };
            match ended {
                Ok(output) => Ok(Json::from_text(format!("\"{output}\""))),
                Err(CtxError::StepFailed { message, .. }) => {
                    run.world.count_other("step failed for good");
                    Ok(failed(&message))
                }
                Err(error) => Err(error),
            }
        };
        let output = run.waiting(&self.wait, ended).await?;
        if done.load(Ordering::Relaxed) == 0 {
            self.count("step replayed");
        }
        self.note_recorded_output(position, output);
        Ok(())
    }

    async fn sleep(&mut self, ms: u64) -> Result<(), CtxError> {
        let position = self.next_position();
        let run = self.run;
        let of = (run.key.clone(), run.epoch(), position.clone());
        let now = { (run.attempt, run.world.state().processes) };
        let (attempt, process) = *run.world.state().sleep_starts.entry(of).or_insert(now);
        run.waiting(&self.wait, self.ctx.sleep("sleep", Duration::from_millis(ms))).await?;
        match (attempt != run.attempt, process != now.1) {
            (true, true) => self.count("sleep across a restart"),
            (true, false) => self.count("sleep without a handler"),
            (false, _) => {}
        }
        if run.resumes {
            run.world.note(Fact::Slept { key: run.key.clone(), attempt: run.attempt, position });
        }
        Ok(())
    }

    async fn subtasks(&mut self, awaited: AwaitedSubtasks, plans: &[SubtaskPlan]) -> Result<(), CtxError> {
        let positions: Vec<_> = plans.iter().map(|_| self.next_position()).collect();
        let run = self.run;
        run.spawning.lock().insert(self.path.clone());
        let requests = plans.iter().cloned().map(ScriptSubtask);
        let ctx = &mut self.ctx;
        let outcomes = run
            .waiting(&self.wait, async {
                if awaited == AwaitedSubtasks::All {
                    return ctx.subtasks("part", requests).await;
                }
                let mut started = ctx.start_subtasks("part", requests).await?;
                let mut outcomes = Vec::new();
                while let Some(outcome) = started.next(ctx).await? {
                    outcomes.push(outcome);
                    if awaited == AwaitedSubtasks::First {
                        break;
                    }
                }
                Ok(outcomes)
            })
            .await?;
        run.spawning.lock().remove(&self.path);
        match awaited {
            AwaitedSubtasks::OneByOne => self.count("children taken one by one"),
            AwaitedSubtasks::First if plans.len() > 1 => self.count("children not waited for"),
            AwaitedSubtasks::All | AwaitedSubtasks::First => {}
        }
        for (position, outcome) in positions.into_iter().zip(outcomes) {
            match outcome {
                Outcome::Cancelled => self.count("child cancelled"),
                Outcome::Error(_) => self.count("child failed"),
                Outcome::Result { .. } => {}
            }
            run.world.note(Fact::ChildEnded { key: run.key.clone(), epoch: run.epoch(), position, outcome });
        }
        Ok(())
    }

    /// Runs until it is cancelled, or until the calm phase. If the attempt has lost its task by then, it waits for the
    /// cancellation.
    async fn hang(&self) -> Result<(), CtxError> {
        let run = self.run;
        tokio::select! {
            biased;
            () = self.ctx.cancelled() => return Err(CtxError::Cancelled),
            () = run.world.calm() => {}
        }
        let found = run.store.read(&run.key).await;
        if found.is_ok_and(|found| found.task.attempt == run.attempt && found.task.phase.active_attempt().is_some()) {
            return Ok(());
        }
        self.ctx.cancelled().await;
        Err(CtxError::Cancelled)
    }
}

impl ScriptRun {
    /// The work of a step. It fails as often as planned. `done` is the number of earlier tries in this attempt.
    async fn work_of_step(&self, position: &JournalPosition, plan: StepPlan, done: u32) -> Result<String, Failure> {
        let (before, output) = {
            let mut state = self.world.state();
            let bits = state.random.bits();
            let tries = state.tries.entry((self.key.clone(), self.epoch(), position.clone())).or_default();
            let before = *tries;
            *tries += 1;
            (before, format!("{:x}", u128::from_be_bytes(bits)))
        };
        let succeeds = before >= plan.failures;
        match (done, before) {
            (0, 0) => {}
            (0, before) if before > plan.failures || plan.retry.is_none() => self.world.count_other("step done again"),
            (0, _) => self.world.count_other("step tried again after a restart"),
            _ => self.world.count_other("step tried again"),
        }
        let (key, attempt, epoch) = (self.key.clone(), self.attempt, self.epoch());
        self.world.note(Fact::Effect { key, attempt, epoch, position: position.clone(), succeeds });
        tokio::time::sleep(Duration::from_millis(plan.ms)).await;
        match (succeeds, plan.permanent) {
            (true, _) => Ok(output),
            (false, true) => Err(Failure::permanent(output)),
            (false, false) => Err(Failure::tool(output)),
        }
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

struct ScriptSubtask(SubtaskPlan);

impl SubtaskRequest for ScriptSubtask {
    type Result = Outcome;

    fn tool(&self) -> &str {
        &self.0.tool
    }

    fn input(&self) -> Result<Json, CtxError> {
        Ok(Json::from_text(self.0.script.to_string()))
    }

    fn read(&self, outcome: Outcome) -> Result<Outcome, CtxError> {
        Ok(outcome)
    }
}

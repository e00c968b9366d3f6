//! Tools for the tests: a store whose calls can be made to fail, handlers that wait for the test, and an engine with both.
//!
//! Most tests run on paused time: it jumps to the next timer when all tasks of the runtime are idle. The store's writer
//! is a thread of its own, of which the runtime knows nothing, so every request to it goes through `spawn_blocking`,
//! and time stands still until it is answered.

mod machine;
mod store;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use longhaul_engine::{
    Ask, BudgetUse, CallOptions, Ctx, CtxError, Engine, EngineError, EngineLimits, EngineTool, Handler, NewCall,
    Requestor, SystemRandom, ToolLimits,
};
use longhaul_store::Store;
use longhaul_task::{
    Json, OnCrash, Outcome, Owner, Phase, PhaseName, Policy, QuestionKey, QuestionKind, Retention, Task, TaskError,
    TaskKey, Timestamp, ToolRef,
};
use tokio::sync::{Semaphore, watch};

pub(crate) use self::machine::Machine;
pub(crate) use self::store::TestStore;

/// How long a test waits for something that must come. It is no measure: it only turns a hang into a failure.
const HANG: Duration = Duration::from_secs(600);

/// When every store begins.
pub(crate) const START: Timestamp = Timestamp::from_ms(1_700_000_000_000);

/// An engine on a store whose calls can be made to fail.
pub(crate) struct Lab {
    pub engine: Engine,
    pub store: Arc<TestStore>,
}

impl Lab {
    pub(crate) async fn start(tools: Vec<EngineTool>) -> Self {
        Self::with(tools, EngineLimits::default()).await
    }

    pub(crate) async fn with(tools: Vec<EngineTool>, limits: EngineLimits) -> Self {
        Self::on(&TestStore::empty(), tools, limits).await
    }

    /// An engine with the tool `work`, which has one worker, and whose handler waits at that door.
    pub(crate) async fn with_one_worker() -> (Self, Door, HandlerLog) {
        let (door, log) = (Door::shut(), HandlerLog::new());
        let lab = Self::start(vec![one_worker("work", waits_at(&door, &log))]).await;
        (lab, door, log)
    }

    pub(crate) async fn on(store: &Arc<TestStore>, tools: Vec<EngineTool>, limits: EngineLimits) -> Self {
        let shared: Arc<dyn Store> = Arc::<TestStore>::clone(store);
        let engine = Engine::start(shared, tools, limits, Arc::new(SystemRandom)).await.unwrap();
        Self { engine, store: Arc::clone(store) }
    }

    pub(crate) async fn create(&self, tool: &str) -> TaskKey {
        self.create_on(tool, "{}").await
    }

    pub(crate) async fn create_on(&self, tool: &str, input: &str) -> TaskKey {
        self.try_create(tool, input).await.unwrap().key.clone()
    }

    /// Makes a task of Ada's and waits until it has asked its question.
    pub(crate) async fn create_until_asked(&self, tool: &str) -> (TaskKey, QuestionKey) {
        self.create_on_until_asked(tool, "{}").await
    }

    pub(crate) async fn create_on_until_asked(&self, tool: &str, input: &str) -> (TaskKey, QuestionKey) {
        let key = self.create_on(tool, input).await;
        let question = self.question(&key).await;
        (key, question)
    }

    pub(crate) async fn try_create(&self, tool: &str, input: &str) -> Result<Arc<Task>, EngineError> {
        self.engine.create(call_with(tool, input)).await.map(|created| created.task)
    }

    pub(crate) async fn try_create_for(&self, owner: Owner, tool: &str, input: &str) -> Result<Arc<Task>, EngineError> {
        self.engine.create(NewCall { owner, ..call_with(tool, input) }).await.map(|created| created.task)
    }

    pub(crate) async fn create_for(&self, owner: Owner, tool: &str, input: &str) -> TaskKey {
        self.try_create_for(owner, tool, input).await.unwrap().key.clone()
    }

    pub(crate) async fn read(&self, key: &TaskKey) -> Arc<Task> {
        self.engine.read(key).await.unwrap().task
    }

    /// Waits until the task is as described.
    pub(crate) async fn until(&self, key: &TaskKey, what: &str, is: impl Fn(&Task) -> bool) -> Arc<Task> {
        must_come(what, async {
            let mut watch = self.engine.watch(key);
            loop {
                let task = self.read(key).await;
                if is(&task) {
                    return task;
                }
                watch.changed().await;
            }
        })
        .await
    }

    pub(crate) async fn end(&self, key: &TaskKey) -> Outcome {
        let task = self.until(key, "the end of the task", Task::is_settled).await;
        task.phase.outcome().unwrap().clone()
    }

    /// Waits until the task has exactly so many open questions, and names them.
    pub(crate) async fn asks(&self, key: &TaskKey, count: usize) -> Vec<QuestionKey> {
        let open = |task: &Task| task.phase.questions().map_or(0, longhaul_task::Questions::count);
        let task = self.until(key, "the questions", |task| open(task) == count).await;
        task.phase.questions().into_iter().flatten().map(|question| question.key.clone()).collect()
    }

    pub(crate) async fn question(&self, key: &TaskKey) -> QuestionKey {
        self.asks(key, 1).await.remove(0)
    }

    pub(crate) async fn answer(&self, key: &TaskKey, question: &QuestionKey, body: &str) {
        self.engine.answer(key, question.clone(), longhaul_task::Answer::Given(Json::from_text(body))).await.unwrap();
    }

    pub(crate) async fn cancel(&self, key: &TaskKey) {
        self.engine.cancel(key, None).await.unwrap();
    }

    pub(crate) fn budget(&self, resource: &str) -> BudgetUse {
        self.engine.budgets().into_iter().find(|budget| budget.resource == resource).unwrap()
    }

    /// How many tasks of a tool run, and how many are queued, as the engine counts.
    pub(crate) fn load(&self, tool: &str) -> (usize, usize) {
        let load = self.engine.load();
        load.iter().find(|(of, ..)| &*of.name == tool).map(|(_, running, queued)| (*running, *queued)).unwrap()
    }

    /// Polls until the journal of a task has so many entries. A step is written after its handler has gone on.
    pub(crate) async fn has_entries(&self, key: &TaskKey, count: usize) {
        must_come("the entries", async {
            while self.engine.history(key).await.unwrap().entries.len() != count {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await;
    }

    /// Polls until the engine holds no attempt, and no worker or place for one.
    pub(crate) async fn holds_nothing(&self, tool: &str) {
        self.counts(tool, (0, 0)).await;
        let released = async {
            while (self.engine.attempts(), self.budget("attempts").used) != ((0, 0), 0) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        assert!(tokio::time::timeout(HANG, released).await.is_ok(), "it holds {:?}", self.engine.attempts());
    }

    /// Polls until the engine counts this many running and queued tasks. The counts change after the commit, without a
    /// notification.
    pub(crate) async fn counts(&self, tool: &str, load: (usize, usize)) {
        let counts = async {
            while self.load(tool) != load {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let counted = tokio::time::timeout(HANG, counts).await;
        assert!(counted.is_ok(), "not {load:?} running and queued, but {:?}", self.load(tool));
    }
}

/// Ada's request for a task.
pub(crate) fn call(tool: &str) -> NewCall {
    call_with(tool, "{}")
}

pub(crate) fn call_with(tool: &str, input: &str) -> NewCall {
    let input = Json::from_text(input);
    NewCall {
        owner: ada(),
        tool: tool.into(),
        input,
        origin: "test".into(),
        id: None,
        retention: None,
        idempotency: None,
    }
}

pub(crate) fn ada() -> Owner {
    Owner::parse("ada").unwrap()
}

pub(crate) fn bob() -> Owner {
    Owner::parse("bob").unwrap()
}

/// A tool with every default, whose results are kept for good.
pub(crate) fn tool(name: &str, handler: Arc<dyn Handler>) -> EngineTool {
    EngineTool {
        tool: ToolRef::new(name, "1"),
        policy: Policy::default(),
        result_kind: "tool",
        retention: Retention::Unlimited,
        limits: ToolLimits::default(),
        check_answer: |_, _, _| Ok(()),
        error_text: |body| format!("it said {}", body.as_str()),
        retries_failures: false,
        handler,
        prelude: None,
    }
}

/// The same with one worker.
pub(crate) fn one_worker(name: &str, handler: Arc<dyn Handler>) -> EngineTool {
    let limits = ToolLimits::default().running_max(1);
    EngineTool { limits, ..tool(name, handler) }
}

/// The same with another policy for crashes.
pub(crate) fn on_crash(on_crash: OnCrash, tool: EngineTool) -> EngineTool {
    EngineTool { policy: Policy { on_crash, ..tool.policy.clone() }, ..tool }
}

/// A tool that resumes.
pub(crate) fn resumes(name: &str, handler: Arc<dyn Handler>) -> EngineTool {
    on_crash(OnCrash::Resume, tool(name, handler))
}

pub(crate) fn handler<F, Fut>(run: F) -> Arc<dyn Handler>
where
    F: Fn(Ctx, Json) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Outcome, CtxError>> + Send + 'static,
{
    Arc::new(move |ctx, input| -> BoxFuture<'static, _> { Box::pin(run(ctx, input)) })
}

/// A handler that gets a clone of what is shared with it.
pub(crate) fn handler_with<S, F, Fut>(shared: S, run: F) -> Arc<dyn Handler>
where
    S: Clone + Send + Sync + 'static,
    F: Fn(S, Ctx, Json) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Outcome, CtxError>> + Send + 'static,
{
    handler(move |ctx, input| run(shared.clone(), ctx, input))
}

pub(crate) fn echo() -> Arc<dyn Handler> {
    handler(|_ctx, input| async { Ok(Outcome::Result { body: input, is_error: false }) })
}

/// A handler that says `start`, waits for the door, says `done` and returns.
pub(crate) fn waits_at(door: &Door, log: &HandlerLog) -> Arc<dyn Handler> {
    handler_with((door.clone(), log.clone()), |(door, log), _ctx, input| async move {
        log.say(format!("start {}", input.as_str()));
        door.pass().await;
        log.say(format!("done {}", input.as_str()));
        answer("done")
    })
}

/// A handler that says `start`, does not end, and says `dropped` when it is dropped.
pub(crate) fn hangs(log: &HandlerLog) -> Arc<dyn Handler> {
    handler_with(log.clone(), |log, _ctx, _input| async move {
        let _dropped = log.on_drop("dropped");
        log.say("start");
        std::future::pending().await
    })
}

/// A handler that asks once and returns the answer.
pub(crate) fn asks() -> Arc<dyn Handler> {
    handler(|mut ctx: Ctx, _input| async move {
        let said = ctx.ask("approve", Approve).await?;
        answer(&said)
    })
}

/// A handler that asks on two branches at once and returns both answers.
pub(crate) fn asks_left_and_right() -> Arc<dyn Handler> {
    handler(|mut ctx: Ctx, _input| async move {
        let left = ctx.fork("left", |mut ctx| async move { ctx.ask("left", Approve).await });
        let right = ctx.fork("right", |mut ctx| async move { ctx.ask("right", Approve).await });
        let (left, right) = tokio::join!(left, right);
        answer(&format!("{} and {}", left?, right?))
    })
}

#[allow(clippy::unnecessary_wraps, reason = "it is what a handler returns")]
pub(crate) fn answer(text: &str) -> Result<Outcome, CtxError> {
    Ok(text_of(text))
}

pub(crate) fn text_of(text: &str) -> Outcome {
    Outcome::Result { body: Json::from_text(format!("{text:?}")), is_error: false }
}

#[track_caller]
pub(crate) fn code(outcome: &Outcome) -> &str {
    match outcome {
        Outcome::Error(TaskError { data: Some(data), .. }) => {
            data.as_str().trim_start_matches("{\"code\":\"").trim_end_matches("\"}")
        }
        other => panic!("not a refusal with a code: {other:?}"),
    }
}

#[track_caller]
pub(crate) fn phase(task: &Task) -> PhaseName {
    task.phase.name()
}

pub(crate) fn is_waiting(task: &Task) -> bool {
    matches!(task.phase, Phase::Waiting { .. })
}

/// A client that answers elicitations, and takes any answer but a number for one.
pub(crate) struct Client {
    pub elicitation: bool,
}

impl Requestor for Client {
    fn can_answer(&self, kind: QuestionKind, _params: &Json) -> bool {
        self.elicitation && kind == QuestionKind::Elicitation
    }

    fn fits(&self, _kind: QuestionKind, _params: &Json, answer: &Json) -> Result<(), String> {
        if answer.as_str().parse::<f64>().is_ok() { Err("a number".into()) } else { Ok(()) }
    }
}

pub(crate) fn call_options(answers: &[(&str, &str)]) -> CallOptions {
    call_options_of(ada(), answers)
}

pub(crate) fn call_options_of(owner: Owner, answers: &[(&str, &str)]) -> CallOptions {
    let answers: HashMap<String, Json> =
        answers.iter().map(|(key, text)| ((*key).to_owned(), Json::from_text(*text))).collect();
    CallOptions {
        owner,
        id: "a call".into(),
        answers,
        requestor: Arc::new(Client { elicitation: true }),
        progress: None,
    }
}

/// A question whose answer is any text.
pub(crate) struct Approve;

impl Ask for Approve {
    type Answer = String;

    fn kind(&self) -> QuestionKind {
        QuestionKind::Elicitation
    }

    fn params(&self) -> Json {
        Json::from_text("{\"message\":\"Go on?\"}")
    }

    fn read(&self, answer: &Json) -> Result<String, CtxError> {
        match answer.as_str() {
            "null" => Err(CtxError::BadAnswer("nothing was answered".into())),
            text => Ok(text.trim_matches('"').to_owned()),
        }
    }
}

pub(crate) async fn must_come<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(HANG, future).await.unwrap_or_else(|_| panic!("this never came: {what}"))
}

/// A door in a handler's way: each opening lets one through.
#[derive(Clone)]
pub(crate) struct Door(Arc<Semaphore>);

impl Door {
    pub(crate) fn shut() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }

    pub(crate) fn open(&self) {
        self.0.add_permits(1);
    }

    pub(crate) fn open_wide(&self) {
        self.0.add_permits(100_000);
    }

    pub(crate) async fn pass(&self) {
        self.0.acquire().await.unwrap().forget();
    }
}

#[derive(Clone)]
pub(crate) struct HandlerLog(Arc<watch::Sender<Vec<String>>>);

impl HandlerLog {
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::channel(Vec::new()).0))
    }

    pub(crate) fn say(&self, word: impl Into<String>) {
        self.0.send_modify(|said| said.push(word.into()));
    }

    pub(crate) fn said(&self) -> Vec<String> {
        self.0.borrow().clone()
    }

    pub(crate) async fn hears_times(&self, word: &str, times: usize) {
        let mut said = self.0.subscribe();
        let heard = said.wait_for(|said| said.iter().filter(|said| *said == word).count() >= times);
        must_come(&format!("{word:?}, {times} times"), heard).await.unwrap();
    }

    pub(crate) async fn hears(&self, word: &str) {
        self.hears_times(word, 1).await;
    }

    /// Says so when it is dropped.
    pub(crate) fn on_drop(&self, word: &'static str) -> SaysOnDrop {
        SaysOnDrop(self.clone(), word)
    }
}

pub(crate) struct SaysOnDrop(HandlerLog, &'static str);

impl Drop for SaysOnDrop {
    fn drop(&mut self) {
        self.0.say(self.1);
    }
}

//! What the claims are made with: a store that can be disturbed, handlers that wait for the test, an engine on both.
//!
//! Most tests run on paused time: it jumps to the next timer when all tasks of the runtime are idle. The store's writer
//! is a thread of its own, of which the runtime knows nothing, so every request to it goes through `spawn_blocking`,
//! and time stands still until it is answered.
#![allow(dead_code, unreachable_pub, unused_imports, reason = "every test file uses a part of this")]

mod machine;
mod store;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use longhaul_engine::{
    Ask, Ctx, CtxError, Engine, EngineError, EngineLimits, EngineTool, Handler, NewCall, SystemRandom, ToolLimits,
};
use longhaul_store::Store;
use longhaul_task::{
    Json, Outcome, Owner, Phase, PhaseName, Policy, QuestionKey, QuestionKind, Retention, Task, TaskError, TaskKey,
    Timestamp, ToolRef,
};
use tokio::sync::{Semaphore, watch};

pub use self::machine::Machine;
pub use self::store::TestStore;

/// How long a test waits for something that must come. It is no measure: it only turns a hang into a failure.
const HANG: Duration = Duration::from_secs(600);

/// When every store begins.
pub const START: Timestamp = Timestamp::from_ms(1_700_000_000_000);

/// An engine on a store that can be disturbed.
pub struct Lab {
    pub engine: Engine,
    pub store: Arc<TestStore>,
}

impl Lab {
    pub async fn start(tools: Vec<EngineTool>) -> Self {
        Self::with(tools, EngineLimits::default()).await
    }

    pub async fn with(tools: Vec<EngineTool>, limits: EngineLimits) -> Self {
        Self::on(&TestStore::empty(), tools, limits).await
    }

    pub async fn on(store: &Arc<TestStore>, tools: Vec<EngineTool>, limits: EngineLimits) -> Self {
        let shared: Arc<dyn Store> = Arc::<TestStore>::clone(store);
        let engine = Engine::start(shared, tools, limits, Arc::new(SystemRandom)).await.unwrap();
        Self { engine, store: Arc::clone(store) }
    }

    /// Makes a task of Ada's.
    pub async fn create(&self, tool: &str) -> TaskKey {
        self.create_on(tool, "{}").await
    }

    /// Makes a task of Ada's with these arguments.
    pub async fn create_on(&self, tool: &str, input: &str) -> TaskKey {
        self.try_create(tool, input).await.unwrap().key.clone()
    }

    pub async fn try_create(&self, tool: &str, input: &str) -> Result<Arc<Task>, EngineError> {
        self.engine.create(call_with(tool, input)).await
    }

    pub async fn read(&self, key: &TaskKey) -> Arc<Task> {
        self.engine.read(key).await.unwrap().task
    }

    /// Waits until the task is as described.
    pub async fn until(&self, key: &TaskKey, what: &str, is: impl Fn(&Task) -> bool) -> Arc<Task> {
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

    /// Waits for the task's end.
    pub async fn end(&self, key: &TaskKey) -> Outcome {
        let task = self.until(key, "the end of the task", Task::is_settled).await;
        task.phase.outcome().unwrap().clone()
    }

    /// Waits until the task has exactly so many open questions, and names them.
    pub async fn asks(&self, key: &TaskKey, count: usize) -> Vec<QuestionKey> {
        let open = |task: &Task| task.phase.questions().map_or(0, longhaul_task::Questions::count);
        let task = self.until(key, "the questions", |task| open(task) == count).await;
        task.phase.questions().into_iter().flatten().map(|question| question.key.clone()).collect()
    }

    pub async fn answer(&self, key: &TaskKey, question: &QuestionKey, body: &str) {
        self.engine.answer(key, question.clone(), Json::from_text(body)).await.unwrap();
    }

    pub async fn cancel(&self, key: &TaskKey) {
        self.engine.cancel(key, None).await.unwrap();
    }

    /// How many tasks of a tool run, and how many are queued, as the engine counts.
    pub fn load(&self, tool: &str) -> (usize, usize) {
        let load = self.engine.load();
        load.iter().find(|(of, ..)| &*of.name == tool).map(|(_, running, queued)| (*running, *queued)).unwrap()
    }

    /// Polls until the engine counts this many running and queued tasks. The counts change after the commit, without a
    /// notification.
    pub async fn counts(&self, tool: &str, load: (usize, usize)) {
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
pub fn call(tool: &str) -> NewCall {
    call_with(tool, "{}")
}

pub fn call_with(tool: &str, input: &str) -> NewCall {
    let input = Json::from_text(input);
    NewCall { owner: ada(), tool: tool.into(), input, origin: "test".into(), id: None, retention: None }
}

pub fn ada() -> Owner {
    Owner::parse("ada").unwrap()
}

/// A tool with every default, whose results are kept for good.
pub fn tool(name: &str, handler: Arc<dyn Handler>) -> EngineTool {
    EngineTool {
        tool: ToolRef::new(name, "1"),
        policy: Policy::default(),
        retention: Retention::Unlimited,
        limits: ToolLimits::default(),
        handler,
        prelude: None,
    }
}

/// The same with one worker.
pub fn one_worker(name: &str, handler: Arc<dyn Handler>) -> EngineTool {
    let limits = ToolLimits::default().running_max(1);
    EngineTool { limits, ..tool(name, handler) }
}

pub fn handler<F, Fut>(run: F) -> Arc<dyn Handler>
where
    F: Fn(Ctx, Json) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Outcome, CtxError>> + Send + 'static,
{
    Arc::new(move |ctx, input| -> BoxFuture<'static, _> { Box::pin(run(ctx, input)) })
}

/// A handler that returns its arguments.
pub fn echo() -> Arc<dyn Handler> {
    handler(|_ctx, input| async { Ok(Outcome::Result { body: input, is_error: false }) })
}

/// A handler that says `start`, waits for the door, says `done` and returns.
pub fn waits_at(door: &Door, log: &HandlerLog) -> Arc<dyn Handler> {
    let (door, log) = (door.clone(), log.clone());
    handler(move |_ctx, input| {
        let (door, log) = (door.clone(), log.clone());
        async move {
            log.say(format!("start {}", input.as_str()));
            door.pass().await;
            log.say(format!("done {}", input.as_str()));
            answer("done")
        }
    })
}

#[allow(clippy::unnecessary_wraps, reason = "it is what a handler returns")]
pub fn answer(text: &str) -> Result<Outcome, CtxError> {
    Ok(text_of(text))
}

pub fn text_of(text: &str) -> Outcome {
    Outcome::Result { body: Json::from_text(format!("{text:?}")), is_error: false }
}

/// The stable code of a refusal.
#[track_caller]
pub fn code(outcome: &Outcome) -> &str {
    match outcome {
        Outcome::Error(TaskError { data: Some(data), .. }) => {
            data.as_str().trim_start_matches("{\"code\":\"").trim_end_matches("\"}")
        }
        other => panic!("not a refusal with a code: {other:?}"),
    }
}

#[track_caller]
pub fn phase(task: &Task) -> PhaseName {
    task.phase.name()
}

pub fn is_waiting(task: &Task) -> bool {
    matches!(task.phase, Phase::Waiting { .. })
}

/// A question whose answer is any text.
pub struct Approve;

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

/// Waits for something that must come.
pub async fn must_come<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(HANG, future).await.unwrap_or_else(|_| panic!("this never came: {what}"))
}

/// A door in a handler's way: each opening lets one through.
#[derive(Clone)]
pub struct Door(Arc<Semaphore>);

impl Door {
    pub fn shut() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }

    pub fn open(&self) {
        self.0.add_permits(1);
    }

    pub fn open_wide(&self) {
        self.0.add_permits(100_000);
    }

    pub async fn pass(&self) {
        self.0.acquire().await.unwrap().forget();
    }
}

/// What handlers said, in order.
#[derive(Clone)]
pub struct HandlerLog(Arc<watch::Sender<Vec<String>>>);

impl HandlerLog {
    pub fn new() -> Self {
        Self(Arc::new(watch::channel(Vec::new()).0))
    }

    pub fn say(&self, word: impl Into<String>) {
        self.0.send_modify(|said| said.push(word.into()));
    }

    pub fn said(&self) -> Vec<String> {
        self.0.borrow().clone()
    }

    /// Waits until the word was said so many times.
    pub async fn hears_times(&self, word: &str, times: usize) {
        let mut said = self.0.subscribe();
        let heard = said.wait_for(|said| said.iter().filter(|said| *said == word).count() >= times);
        must_come(&format!("{word:?}, {times} times"), heard).await.unwrap();
    }

    pub async fn hears(&self, word: &str) {
        self.hears_times(word, 1).await;
    }

    /// Says so when it is dropped.
    pub fn on_drop(&self, word: &'static str) -> SaysOnDrop {
        SaysOnDrop(self.clone(), word)
    }
}

pub struct SaysOnDrop(HandlerLog, &'static str);

impl Drop for SaysOnDrop {
    fn drop(&mut self) {
        self.0.say(self.1);
    }
}

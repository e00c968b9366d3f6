//! Simulated clients. They perform random operations and record in the ledger what they were answered.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use longhaul_engine::{Engine, EngineError, NewCall};
use longhaul_store::{CreateResult, IdempotencyKey, ListQuery, StoreError};
use longhaul_task::transition::{Delete, Release, Report, Settle};
use longhaul_task::{Answer, Event, Json, Outcome, Owner, QuestionKey, Task, TaskId, TaskKey};

use crate::fault::Fault;
use crate::ledger::{Ack, Fact, KeyedResponse};
use crate::setup::ScriptWriter;
use crate::world::World;

/// One client of one engine.
#[derive(Clone)]
pub(crate) struct SimClient {
    pub(crate) world: World,
    pub(crate) engine: Engine,
}

/// A request under an idempotency key, which clients repeat.
#[derive(Debug, Clone)]
pub(crate) struct KeyedRequest {
    owner: Owner,
    tool: Arc<str>,
    /// The number of its script, which is its only argument.
    script: usize,
    key: Arc<str>,
}

impl KeyedRequest {
    fn idempotency(&self) -> IdempotencyKey {
        let digest = u8::try_from(self.script % 256).unwrap_or_default();
        IdempotencyKey { key: Arc::clone(&self.key), digest: [digest; 32] }
    }
}

/// The number of keys. It is small, so that different requests get the same key.
const KEYS: usize = 6;

#[derive(Clone, Copy)]
enum ClientAction {
    Create,
    CreateKeyed,
    Read,
    List,
    Cancel,
    Answer,
    Delete,
    Foreign,
    Late,
    Burst,
}

/// Each action with its weight.
const ACTIONS: [(u32, ClientAction); 10] = [
    (12, ClientAction::Create),
    (4, ClientAction::CreateKeyed),
    (7, ClientAction::Read),
    (1, ClientAction::List),
    (3, ClientAction::Cancel),
    (10, ClientAction::Answer),
    (2, ClientAction::Delete),
    (1, ClientAction::Foreign),
    (2, ClientAction::Late),
    (3, ClientAction::Burst),
];

impl SimClient {
    /// Performs a random action, and sometimes goes away before it is answered.
    pub(crate) async fn act(self) {
        let (action, patience_ms) = self.world.random(|random| {
            let action = random.weighted(&ACTIONS).unwrap_or(ClientAction::Create);
            (action, random.permille(60).then(|| random.between(0, 10)))
        });
        match patience_ms {
            None => self.perform(action).await,
            Some(ms) => {
                let answered = tokio::time::timeout(Duration::from_millis(ms), self.perform(action)).await;
                if answered.is_err() {
                    self.world.count_fault(Fault::ClientGone);
                }
            }
        }
    }

    async fn perform(&self, action: ClientAction) {
        match action {
            ClientAction::Create => return self.create().await,
            ClientAction::CreateKeyed => return self.create_keyed().await,
            ClientAction::Late => return self.write_late().await,
            ClientAction::Burst => return self.burst().await,
            _ => {}
        }
        let Some(key) = self.world.state().pick_known() else { return };
        match action {
            ClientAction::Create | ClientAction::CreateKeyed | ClientAction::Late | ClientAction::Burst => {}
            ClientAction::Read => drop(self.read(&key).await),
            ClientAction::List => self.list(&key.owner).await,
            ClientAction::Cancel => self.cancel(&key).await,
            ClientAction::Answer => self.answer_something(&key).await,
            ClientAction::Delete => {
                let began = self.world.line();
                let deleted = self.engine.store().apply(&key, Event::Delete(Delete)).await;
                self.note_answer("delete", began, &key, Ack::Deleted, deleted.map(|applied| applied.task));
            }
            ClientAction::Foreign => self.use_foreign_id(key.id).await,
        }
    }

    async fn create(&self) {
        let (tool_index, owner) = self.choose_tool();
        let chooses_id = self.world.random(|random| random.below(4) == 0);
        let id = if chooses_id { self.choose_id(&owner).await } else { None };
        let script = self.write_script(tool_index, &owner);
        let tool = self.tool_name(tool_index);
        let began = self.world.line();
        let key = id.clone().map(|id| TaskKey { owner: owner.clone(), id });
        match (self.engine.create(NewCall { id, ..new_call(owner, tool, script) }).await, key) {
            (Ok(created), _) => self.created(&created),
            (Err(EngineError::Store(error)), Some(key)) => self.deny("create", began, &key, error),
            (Err(error), _) => self.not_created(&error),
        }
    }

    /// Half of the tasks are of the tool that resumes, which is the first.
    fn choose_tool(&self) -> (usize, Owner) {
        self.world.random(|random| {
            let setup = self.world.setup();
            let index = if random.below(2) == 0 { 0 } else { random.below(setup.tools.len()) };
            (index, setup.owners[random.below(setup.owners.len())].clone())
        })
    }

    fn tool_name(&self, tool_index: usize) -> Arc<str> {
        Arc::clone(&self.world.setup().tools[tool_index].tool.name)
    }

    /// Writes a script for a task of this tool. Returns its number.
    fn write_script(&self, tool_index: usize, owner: &Owner) -> usize {
        let setup = self.world.setup();
        let mut state = self.world.state();
        let mut random = state.random.split();
        let scripts = &mut state.scripts;
        ScriptWriter { random: &mut random, setup, owner, scripts }.write(tool_index)
    }

    fn created(&self, created: &CreateResult) {
        let task = &created.task;
        if !created.existed {
            let mut state = self.world.state();
            state.known.push(task.key.clone());
            state.chosen.insert(task.key.clone());
        }
        self.acknowledge(Ack::Created, task);
    }

    fn not_created(&self, error: &EngineError) {
        self.world.count_other(match error {
            EngineError::QueueFull { .. } => "queue full",
            EngineError::TooManyOpen { .. } => "too many open",
            EngineError::Draining => "draining",
            EngineError::NoSuchTool(_) => "no such tool",
            _ => "not created",
        });
    }

    /// Creates a task under an idempotency key, or repeats such a request; sometimes twice at once.
    async fn create_keyed(&self) {
        let (repeats, twice) = self.world.random(|random| (random.below(3) > 0, random.below(3) == 0));
        let earlier = {
            let state = &mut *self.world.state();
            state.random.pick(&state.requests).filter(|_| repeats).cloned()
        };
        let request = earlier.unwrap_or_else(|| {
            let (tool_index, owner) = self.choose_tool();
            let script = self.write_script(tool_index, &owner);
            let tool = self.tool_name(tool_index);
            let mut state = self.world.state();
            let key = format!("key {}", state.random.below(KEYS)).into();
            let request = KeyedRequest { owner, tool, script, key };
            state.requests.push(request.clone());
            request
        });
        let times = if twice { 2 } else { 1 };
        join_all((0..times).map(|_| self.send_keyed(&request))).await;
    }

    async fn send_keyed(&self, request: &KeyedRequest) {
        let began = self.world.line();
        let KeyedRequest { owner, tool, script, .. } = request.clone();
        let idempotency = request.idempotency();
        let call =
            NewCall { idempotency: Some(Box::new(idempotency.clone())), ..new_call(owner.clone(), tool, script) };
        let response = match self.engine.create(call).await {
            Ok(created) => {
                self.created(&created);
                let key = created.task.key.clone();
                self.world.count_other(if created.existed { "creation repeated" } else { "creation under a key" });
                if created.existed { KeyedResponse::Existed(key) } else { KeyedResponse::Created(key) }
            }
            Err(EngineError::Store(StoreError::IdempotencyKeyUsed)) => {
                self.world.count_other("key of another request");
                KeyedResponse::Refused
            }
            Err(error) => return self.not_created(&error),
        };
        self.world.note(Fact::KeyedCreation { began, owner, request: idempotency, response });
    }

    /// An ID for a task of this owner: a new one, one that a task has (of this or another owner), or one whose task was
    /// deleted. An attempt of a deleted task may still be running.
    async fn choose_id(&self, owner: &Owner) -> Option<TaskId> {
        let known = self.world.state().pick_known()?;
        let key = TaskKey { owner: owner.clone(), id: known.id };
        let found = self.engine.read(&key).await.ok();
        let is_settled = found.as_ref().is_some_and(|found| found.task.is_settled());
        let mut state = self.world.state();
        if !is_settled && state.random.below(3) > 0 {
            if found.is_none() && state.chosen.contains(&key) {
                state.coverage.count_other("ID used again");
            }
            return Some(key.id);
        }
        state.own_ids += 1;
        TaskId::parse(&format!("own-{}", state.own_ids)).ok()
    }

    /// Reads a task. `None` if it does not exist.
    pub(crate) async fn read(&self, key: &TaskKey) -> Result<Option<Arc<Task>>, EngineError> {
        let began = self.world.line();
        let found = match self.engine.read(key).await {
            Ok(found) => Some(found),
            Err(EngineError::Store(StoreError::NotFound)) => None,
            Err(error) => return Err(error),
        };
        let task = found.as_ref().map(|found| Arc::clone(&found.task));
        self.world.note(Fact::Read { began, key: key.clone(), found });
        Ok(task)
    }

    async fn list(&self, owner: &Owner) {
        let began = self.world.line();
        let listing = ListQuery { owner: Some(owner.clone()), after: None, limit: 3 };
        let Ok(page) = self.engine.store().list(&listing).await else { return };
        for found in page.tasks {
            self.world.note(Fact::Read { began, key: found.task.key.clone(), found: Some(found) });
        }
    }

    pub(crate) async fn cancel(&self, key: &TaskKey) {
        let began = self.world.line();
        let cancelled = self.engine.cancel(key, None).await;
        self.note_answer("cancel", began, key, Ack::Cancelled, with_store_error(cancelled));
    }

    async fn answer_something(&self, key: &TaskKey) {
        let Ok(Some(task)) = self.read(key).await else { return };
        let open = task.phase.questions().into_iter().flatten().last().map(|question| question.key.clone());
        let asked = {
            let state = &mut *self.world.state();
            let open = open.map(|question| (key.clone(), question));
            state.asked.extend(open.clone());
            // If no question is open, the client answers an earlier one: too late, or twice.
            open.or_else(|| state.random.pick(&state.asked).cloned())
        };
        if let Some((key, question)) = asked {
            self.answer(&key, question).await;
        }
    }

    pub(crate) async fn answer(&self, key: &TaskKey, question: QuestionKey) {
        let began = self.world.line();
        let text = format!("\"{question} at {began}\"");
        let given = self.world.random(|random| random.below(8) > 0);
        let answer = if given { Answer::Given(Json::from_text(text)) } else { Answer::NotGiven(text.into()) };
        let answered = self.engine.answer(key, question.clone(), answer.clone()).await;
        self.note_answer("answer", began, key, Ack::Answered { question, answer }, with_store_error(answered));
    }

    /// Acts on up to three tasks at once: answers a task that asks, and cancels one that is queued.
    async fn burst(&self) {
        let keys: Vec<_> = (0..3).filter_map(|_| self.world.state().pick_known()).collect();
        join_all(keys.iter().map(async |key| {
            let Ok(Some(task)) = self.read(key).await else { return };
            let question = task.phase.questions().into_iter().flatten().next().map(|question| question.key.clone());
            match question {
                Some(question) => self.answer(key, question).await,
                None if task.phase.not_before().is_some() => self.cancel(key).await,
                None => {}
            }
        }))
        .await;
    }

    /// Uses the ID of a known task as an owner that it may not belong to.
    async fn use_foreign_id(&self, id: TaskId) {
        let (owner, operation) = self.world.random(|random| {
            let owners = self.world.setup().owners.as_slice();
            (owners[random.below(owners.len())].clone(), random.below(3))
        });
        let key = TaskKey { owner, id };
        match operation {
            0 => drop(self.read(&key).await),
            1 => self.cancel(&key).await,
            _ => self.answer(&key, QuestionKey::from_text("q-1")).await,
        }
    }

    /// Writes as an attempt that has lost its task and does not know it yet.
    async fn write_late(&self) {
        let (key, fence, kind) = {
            let state = &mut *self.world.state();
            let Some((key, fence)) = state.random.pick(&state.outdated_attempts).cloned() else { return };
            (key, fence, state.random.below(3))
        };
        let event = match kind {
            0 => Event::Report(Report { fence, message: "too late".into() }),
            1 => Event::Release(Release { fence, wait_ms: 0, reason: "too late".into() }),
            _ => Event::Settle(Settle { fence, outcome: Outcome::Cancelled, entries: Vec::new() }),
        };
        let name = event.name();
        self.world.count_other("late write");
        if self.engine.store().apply(&key, event).await.is_ok() {
            self.world.note(Fact::WroteLate { key, fence, event: name });
        }
    }

    /// Follows a task for as long as the process lives. `seen` is called with each revision that is read.
    pub(crate) async fn follow(self, key: TaskKey, seen: impl Fn(Option<u64>) + Send) {
        // The watch begins before the first read, so that no change is missed.
        let mut watch = self.engine.watch(&key);
        loop {
            if let Ok(task) = self.read(&key).await {
                seen(task.map(|task| task.revision));
                watch.changed().await;
            } else {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }

    fn note_answer(
        &self,
        what: &'static str,
        began: usize,
        key: &TaskKey,
        ack: Ack,
        answer: Result<Arc<Task>, StoreError>,
    ) {
        match answer {
            Ok(task) => self.acknowledge(ack, &task),
            Err(error) => self.deny(what, began, key, error),
        }
    }

    fn acknowledge(&self, what: Ack, task: &Task) {
        self.world.note(Fact::Acknowledged { what, key: task.key.clone(), revision: task.revision });
    }

    fn deny(&self, what: &'static str, began: usize, key: &TaskKey, error: StoreError) {
        self.world.note(Fact::Denied { began, key: key.clone(), what, error });
    }
}

fn new_call(owner: Owner, tool: Arc<str>, script: usize) -> NewCall {
    let input = Json::from_text(script.to_string());
    NewCall { owner, tool, input, origin: "sim".into(), id: None, retention: None, idempotency: None }
}

fn with_store_error(answer: Result<Arc<Task>, EngineError>) -> Result<Arc<Task>, StoreError> {
    answer.map_err(|error| match error {
        EngineError::Store(error) => error,
        other => StoreError::Unavailable(other.to_string()),
    })
}

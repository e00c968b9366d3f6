//! The engine as others see it.

use std::fmt;
use std::sync::Arc;

use longhaul_store::{CreateResult, IdempotencyKey, NewTask, Snapshot, Store, TaskHistory, Watch};
use longhaul_task::transition::{AnswerQuestion, Cancel, Create, Delete};
use longhaul_task::{Answer, Event, Json, Owner, QuestionKey, Retention, Task, TaskId, TaskKey, Timestamp, ToolRef};

use crate::call::{self, CallEnd, CallLink, CallOptions};
use crate::core::{Admission, Input, limit_result};
use crate::registry::RegisteredTool;
use crate::service::{self, Activity};
use crate::shell::{EngineInner, run_to_end};
use crate::sorted::sorted;
use crate::{BudgetUse, EngineError, EngineLimits, EngineTool, LogTail, RandomSource};

/// The engine: takes tasks, runs them, ends them. Clones are handles on the same one.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<EngineInner>,
}

/// A request for a task.
#[derive(Debug, Clone)]
pub struct NewCall {
    pub owner: Owner,
    pub tool: Arc<str>,
    pub input: Json,
    pub origin: Arc<str>,
    /// Under an ID of the requestor's own choice.
    pub id: Option<TaskId>,
    /// Kept for as long as the requestor wants it, where that may be; as long as the tool says, otherwise.
    pub retention: Option<Retention>,
    /// Lets the requestor repeat the request without creating another task.
    pub idempotency: Option<Box<IdempotencyKey>>,
}

impl Engine {
    /// Starts on a store: first everything that a dead process left behind is dealt with, then work begins. When this
    /// returns, nothing in the store belongs to a dead process.
    pub async fn start(
        store: Arc<dyn Store>,
        tools: Vec<EngineTool>,
        limits: EngineLimits,
        random: Arc<dyn RandomSource>,
    ) -> Result<Self, EngineError> {
        let inner = Arc::new(EngineInner::new(store, tools, limits, random));
        service::recovery::run(&inner).await?;
        service::start(&inner);
        Ok(Self { inner })
    }

    /// Adds a tool while the engine runs, or replaces the one of its name: attempts and calls that begin from now on use
    /// the new one. Limits of a tool that has tasks in this process keep their values. Queued tasks of the tool are run.
    pub async fn add_tool(&self, tool: EngineTool) -> Result<(), EngineError> {
        let inner = &self.inner;
        // Of a tool that this process did not serve until now, it has not counted the queued tasks.
        let has_queued = inner.store.is_shared() || inner.store.unserved().await?.contains(&tool.tool);
        {
            let mut core = inner.core.lock();
            inner.tools.remove_idle(&mut core);
            core.replace(tool.tool.clone(), tool.limits.clone())?;
            inner.tools.insert(tool);
        }
        inner.store.join(inner.node, None, &inner.tools.served()).await?;
        if has_queued {
            inner.recount.notify_one();
        }
        Ok(())
    }

    /// Removes a tool. Its tasks that exist run to their end. Returns false if there is no such tool.
    pub async fn remove_tool(&self, name: &str) -> Result<bool, EngineError> {
        let inner = &self.inner;
        let was_there = inner.tools.withdraw(name);
        if inner.tools.remove_idle(&mut inner.core.lock()) {
            inner.store.join(inner.node, None, &inner.tools.served()).await?;
        }
        Ok(was_there)
    }

    /// Creates a task, or finds the one that the same request has created before under its idempotency key. When this returns,
    /// the task is on stable storage.
    pub async fn create(&self, call: NewCall) -> Result<CreateResult, EngineError> {
        self.create_and(call, |_| ()).await.map(|(created, ())| created)
    }

    /// Like [`create`](Self::create), and also returns the log lines of the task: those of a new task from the first one on.
    pub async fn create_and_listen(&self, call: NewCall) -> Result<(CreateResult, LogTail), EngineError> {
        self.create_and(call, |key| self.listen(key)).await
    }

    async fn create_and<T>(
        &self,
        call: NewCall,
        before_it_starts: impl Fn(&TaskKey) -> T,
    ) -> Result<(CreateResult, T), EngineError> {
        let inner = &self.inner;
        // Looked up before the admission, because a task that exists needs neither a worker nor a place in the queue.
        if let Some(request) = &call.idempotency
            && let Some(Snapshot { task, .. }) = inner.store.find_created(&call.owner, request).await?
        {
            let done = before_it_starts(&task.key);
            return Ok((CreateResult { task, existed: true }, done));
        }
        let admission = inner.core.lock().admit(&call.owner, &call.tool, call.input.bytes())?;
        // From here to the commit the caller may go away; the admission must not be lost with it.
        let mut undo = AdmissionGuard { inner, owner: &call.owner, admission: &admission, armed: true };
        let registered = inner.registered(&call.tool)?;
        let (id, first_fence) = match call.id {
            Some(id) => (id, random_fence(&*inner.random)),
            None => (TaskId::mint(inner.store.now().await?, inner.random.bits()), 0),
        };
        let key = TaskKey { owner: call.owner.clone(), id };
        let create = Create {
            key: key.clone(),
            tool: admission.tool.clone(),
            origin: call.origin,
            policy: registered.tool.policy.clone(),
            retention: call.retention.unwrap_or(registered.tool.retention),
            claimed_by: admission.claimed.then_some(inner.node),
            first_fence,
        };
        let commit = admission.commit;
        let done_before = before_it_starts(&key);
        undo.armed = false;
        let tracker = &inner.tracker;
        let inner = Arc::clone(inner);
        let new = NewTask { create, input: call.input, idempotency: call.idempotency };
        let created = run_to_end(tracker, async move { inner.commit_creation(new, commit).await }).await?;
        let done = if created.existed { before_it_starts(&created.task.key) } else { done_before };
        Ok((created, done))
    }

    /// The task that the same request has created before under its idempotency key.
    pub async fn find_created(&self, owner: &Owner, request: &IdempotencyKey) -> Result<Option<Snapshot>, EngineError> {
        Ok(self.inner.store.find_created(owner, request).await?)
    }

    /// Runs a tool while its client waits.
    pub async fn call(&self, tool: &Arc<str>, input: Json, call: CallOptions) -> Result<CallEnd, EngineError> {
        let (registered, _share) = self.inner.admit_call(tool, &call.owner, &input)?;
        let link = Arc::new(CallLink::new(call, Arc::clone(&self.inner)));
        let input = match self.prelude(&registered, &link, input).await {
            Ok(input) => input,
            Err(end) => return Ok(end),
        };
        let end = call::drive(Arc::clone(&registered.tool.handler), &link, "", input).await;
        Ok(match end {
            CallEnd::Done(outcome) => CallEnd::Done(limit_result(outcome, registered.tool.limits.result_bytes_max)),
            end => end,
        })
    }

    /// Whether a tool asks its requestor [before a task](Self::before_task) is created.
    pub fn asks_before_task(&self, tool: &Arc<str>) -> bool {
        self.inner.registered(tool).is_ok_and(|registered| registered.tool.prelude.is_some())
    }

    /// Asks what a tool wants to know before there is a task. The answer becomes the task's arguments.
    pub async fn before_task(
        &self,
        tool: &Arc<str>,
        input: Json,
        call: CallOptions,
    ) -> Result<Result<Json, CallEnd>, EngineError> {
        let (registered, _share) = self.inner.admit_call(tool, &call.owner, &input)?;
        let link = Arc::new(CallLink::new(call, Arc::clone(&self.inner)));
        Ok(self.prelude(&registered, &link, input).await)
    }

    async fn prelude(&self, registered: &RegisteredTool, link: &Arc<CallLink>, input: Json) -> Result<Json, CallEnd> {
        let Some(prelude) = &registered.tool.prelude else { return Ok(input) };
        match call::drive(Arc::clone(prelude), link, "prelude", input).await {
            CallEnd::Done(longhaul_task::Outcome::Result { body, is_error: false }) => Ok(body),
            end => Err(end),
        }
    }

    /// The task as it stands.
    pub async fn read(&self, key: &TaskKey) -> Result<Snapshot, EngineError> {
        Ok(self.inner.store.read(key).await?)
    }

    /// What happened to a task: its attempts and what they recorded.
    pub async fn history(&self, key: &TaskKey) -> Result<TaskHistory, EngineError> {
        Ok(self.inner.store.history(key).await?)
    }

    /// The time by which everything is counted.
    pub async fn now(&self) -> Result<Timestamp, EngineError> {
        Ok(self.inner.store.now().await?)
    }

    /// Calls a task off. When this returns it is cancelled for good.
    pub async fn cancel(&self, key: &TaskKey, reason: Option<Arc<str>>) -> Result<Arc<Task>, EngineError> {
        let inner = Arc::clone(&self.inner);
        let key = key.clone();
        run_to_end(&self.inner.tracker, async move { Ok(inner.apply(&key, Event::Cancel(Cancel { reason })).await?) })
            .await
    }

    /// Deletes a task that has ended, with its subtasks. Returns what it was.
    pub async fn delete(&self, key: &TaskKey) -> Result<Arc<Task>, EngineError> {
        let inner = Arc::clone(&self.inner);
        let key = key.clone();
        run_to_end(&self.inner.tracker, async move { Ok(inner.apply(&key, Event::Delete(Delete)).await?) }).await
    }

    /// Answers one question of a task. An answer that does not fit is refused, and the question stays open.
    pub async fn answer(&self, key: &TaskKey, question: QuestionKey, answer: Answer) -> Result<Arc<Task>, EngineError> {
        let task = self.read(key).await?.task;
        self.check_answer(&task, &question, &answer)?;
        let inner = Arc::clone(&self.inner);
        let key = key.clone();
        run_to_end(&self.inner.tracker, async move {
            Ok(inner.apply(&key, Event::Answer(AnswerQuestion { key: question, answer })).await?)
        })
        .await
    }

    /// Checks whether an answer fits its open question. Callers with several answers check all of them before they store the
    /// first. An answer to a question that is not open is not checked.
    pub fn check_answer(&self, task: &Task, question: &QuestionKey, answer: &Answer) -> Result<(), EngineError> {
        let open = task.phase.questions().and_then(|open| open.find(question));
        let tool = self.inner.registered(&task.tool.name).ok();
        let (Some(open), Some(tool), Answer::Given(body)) = (open, tool, answer) else { return Ok(()) };
        let bad = |reason| EngineError::BadAnswer { key: question.as_str().into(), reason };
        let bytes_max = tool.tool.limits.step_bytes_max;
        if body.bytes() > bytes_max {
            return Err(bad(format!("it has {} bytes; this tool records at most {bytes_max}", body.bytes())));
        }
        (tool.tool.check_answer)(open.kind, &open.params, body).map_err(bad)
    }

    /// Follows a task: subscribe, then read.
    pub fn watch(&self, key: &TaskKey) -> Watch {
        self.inner.store.watch(key)
    }

    /// Hears what a task logs from now on, while it runs on this node.
    pub fn listen(&self, key: &TaskKey) -> LogTail {
        self.inner.listeners.listen(key)
    }

    /// How long the results of a tool are kept, unless its requestor wants something else.
    pub fn retention(&self, tool: &Arc<str>) -> Result<Retention, EngineError> {
        Ok(self.inner.registered(tool)?.tool.retention)
    }

    /// The store it runs on.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.inner.store
    }

    /// The one source of randomness.
    pub fn random(&self) -> &Arc<dyn RandomSource> {
        &self.inner.random
    }

    /// How many attempts this node holds: by its decisions, and by what it runs. The simulator compares them.
    #[doc(hidden)]
    pub fn attempts(&self) -> (usize, usize) {
        (self.inner.core.lock().attempts(), self.inner.held().len())
    }

    /// How many open tasks of an owner this node counts.
    #[doc(hidden)]
    pub fn open(&self, owner: &Owner) -> usize {
        self.inner.core.lock().open(owner)
    }

    /// Whether anything can happen without an answer, a cancellation or the passing of time. For tests that move the clock.
    #[doc(hidden)]
    pub async fn activity(&self) -> Result<Activity, EngineError> {
        Ok(service::activity::look(&self.inner).await?)
    }

    /// Must be called after the store's clock was set to a later time: wakes everything that sleeps by that clock. For tests.
    #[doc(hidden)]
    pub fn clock_moved(&self) {
        self.inner.clock_moved.notify_waiters();
        self.inner.due.check_now();
        self.inner.queue.notify_one();
    }

    /// Running and queued tasks by tool, as far as this node knows.
    pub fn load(&self) -> Vec<(ToolRef, usize, usize)> {
        let core = self.inner.core.lock();
        sorted(core.load().map(|(tool, running, queued)| (tool.clone(), running, queued)))
    }

    /// Ordinary calls that run now, by tool. Calls and [tasks](Self::load) do not share workers.
    pub fn running_calls(&self) -> Vec<(Arc<str>, usize)> {
        self.inner.tools.running_calls()
    }

    /// The use of the resources of this engine that owners share: the queues, the places of attempts in memory and the
    /// ordinary calls, each over all tools.
    pub fn budgets(&self) -> Vec<BudgetUse> {
        self.inner.budgets()
    }

    /// Takes nothing new from here on. What is under way goes on.
    pub fn drain(&self) {
        self.inner.drain();
    }

    /// Says that no client can answer any more, as before a [shutdown](Self::shut_down): tasks
    /// that do nothing but wait for an answer end as they would after a crash, or go back to the queue.
    pub async fn give_up_waiting_tasks(&self) {
        service::shutdown::give_up_waiting_tasks(&self.inner).await;
    }

    /// Takes nothing new, waits for handlers to end by themselves, and hands back or fails what is left. Returns the number
    /// of tasks whose end or last steps could not be stored: the next process treats them like tasks that were running, and does
    /// these steps again.
    pub async fn shut_down(&self) -> usize {
        service::shutdown::run(&self.inner).await
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("node", &self.inner.node).finish_non_exhaustive()
    }
}

/// Where the fences of a task begin whose ID its requestor chose, perhaps for the second time. 47 bits: a database needs
/// no more than six bytes for it, and two of them are never near each other.
fn random_fence(random: &dyn RandomSource) -> u64 {
    let bits = u128::from_be_bytes(random.bits());
    u64::try_from(bits >> (u128::BITS - 47)).unwrap_or_default()
}

/// Takes an admission back if its creation is given up before it began.
struct AdmissionGuard<'a> {
    inner: &'a Arc<EngineInner>,
    owner: &'a Owner,
    admission: &'a Admission,
    armed: bool,
}

impl Drop for AdmissionGuard<'_> {
    fn drop(&mut self) {
        if self.armed {
            let Admission { tool, claimed, commit } = self.admission.clone();
            self.inner.step(Input::NotCreated { owner: self.owner.clone(), tool, claimed, commit });
        }
    }
}

//! The store of a simulated process: the real store behind a network that delays calls and loses responses.

use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use async_trait::async_trait;
use longhaul_store::{
    ClaimRequest, ClaimedTask, CommitResult, CreateResult, DueTasks, Embedded, HeldAttempt, IdempotencyKey, ListQuery,
    NewTask, Snapshot, Store, StoreError, TaskCount, TaskHistory, TaskPage, Watch,
};
use longhaul_task::{Event, JournalEntry, NodeId, Owner, Progress, QuestionKey, TaskId, TaskKey, Timestamp, ToolRef};

use crate::fault::Fault;
use crate::ledger::Fact;
use crate::world::World;
use crate::writer::SimWriter;

#[derive(Debug)]
pub(crate) struct SimStore {
    world: World,
    inner: Embedded,
    writer: Arc<SimWriter>,
}

impl SimStore {
    pub(crate) fn new(world: &World, inner: Embedded, writer: Arc<SimWriter>) -> Self {
        Self { world: world.clone(), inner, writer }
    }

    /// A call that commits nothing: a read, `join` or `progress`.
    async fn read_call<T>(&self, call: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        self.network_delay().await;
        let fails = {
            let mut state = self.world.state();
            let permille = state.fault_rates.read_failure;
            state.random.permille(permille)
        };
        if fails {
            self.world.count_fault(Fault::Unavailable);
            return Err(StoreError::Unavailable("simulated".into()));
        }
        let answer = call.await;
        self.network_delay().await;
        answer
    }

    /// A call that commits. `event` names it in the ledger and in the coverage.
    async fn write_call<T>(
        &self,
        event: &'static str,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        self.network_delay().await;
        let (is_lost, comes_through, wait_ms) = {
            let state = &mut *self.world.state();
            let is_slow = event == "claim" && state.random.permille(state.fault_rates.slow_claim);
            let wait_ms = if is_slow { state.random.between(20, 400) } else { 0 };
            (state.random.permille(state.fault_rates.in_doubt), state.random.below(2) == 0, wait_ms)
        };
        if wait_ms > 0 {
            tokio::time::sleep(Duration::from_millis(wait_ms)).await;
        }
        if is_lost && !comes_through {
            self.world.count_fault(Fault::InDoubtNotWritten);
            self.world.note(Fact::InDoubt { event, written: false });
            return Err(in_doubt());
        }
        let mut call = pin!(call);
        let answer = std::future::poll_fn(|cx| {
            let poll = call.as_mut().poll(cx);
            if poll.is_pending() {
                self.writer.requests.notify_one();
            }
            poll
        })
        .await;
        if answer.is_err() {
            self.network_delay().await;
            return answer;
        }
        let number = {
            let mut state = self.world.state();
            let number = state.calls;
            state.unanswered.insert(number, event);
            number
        };
        self.network_delay().await;
        self.world.state().unanswered.remove(&number);
        if is_lost {
            self.world.count_fault(Fault::InDoubtWritten);
            self.world.note(Fact::InDoubt { event, written: true });
            return Err(in_doubt());
        }
        answer
    }

    /// Waits as long as the network delays one message. A call of a crashed process never returns.
    async fn network_delay(&self) {
        let delay_ms = self.world.call();
        if delay_ms > 0 {
            tokio::time::sleep(Duration::from_millis(delay_ms)).await;
        }
        if self.world.is_dead() {
            std::future::pending::<()>().await;
        }
    }
}

fn in_doubt() -> StoreError {
    StoreError::InDoubt("simulated".into())
}

/// The fence under which an attempt sends an event; `None` for events that no attempt sends.
fn fence_of(event: &Event) -> Option<u64> {
    Some(match event {
        Event::Report(event) => event.fence,
        Event::Ask(event) => event.fence,
        Event::Abandon(event) => event.fence,
        Event::Spawn(event) => event.fence,
        Event::Park(event) => event.fence,
        Event::Release(event) => event.fence,
        Event::Settle(event) => event.fence,
        _ => return None,
    })
}

#[async_trait]
impl Store for SimStore {
    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.read_call(self.inner.now()).await
    }

    async fn create(&self, new: NewTask) -> Result<CreateResult, StoreError> {
        self.write_call("create", self.inner.create(new)).await
    }

    async fn find_created(&self, owner: &Owner, key: &IdempotencyKey) -> Result<Option<Snapshot>, StoreError> {
        self.read_call(self.inner.find_created(owner, key)).await
    }

    async fn read(&self, key: &TaskKey) -> Result<Snapshot, StoreError> {
        self.read_call(self.inner.read(key)).await
    }

    async fn apply(&self, key: &TaskKey, event: Event) -> Result<CommitResult, StoreError> {
        let (name, fence) = (event.name(), fence_of(&event));
        let applied = self.write_call(name, self.inner.apply(key, event)).await?;
        if let Some(fence) = fence {
            let revision = applied.task.revision;
            self.world.note(Fact::Wrote { key: key.clone(), fence, event: name, revision });
        }
        Ok(applied)
    }

    async fn claim(&self, claim: ClaimRequest) -> Result<Vec<ClaimedTask>, StoreError> {
        self.write_call("claim", self.inner.claim(claim)).await
    }

    async fn list(&self, of: &ListQuery) -> Result<TaskPage, StoreError> {
        self.read_call(self.inner.list(of)).await
    }

    async fn children(&self, key: &TaskKey) -> Result<Vec<TaskId>, StoreError> {
        self.read_call(self.inner.children(key)).await
    }

    async fn asking_child(&self, key: &TaskKey) -> Result<Option<TaskId>, StoreError> {
        self.read_call(self.inner.asking_child(key)).await
    }

    async fn due(&self, limit: usize) -> Result<DueTasks, StoreError> {
        self.read_call(self.inner.due(limit)).await
    }

    async fn next_queued(&self, tools: &[ToolRef]) -> Result<Option<Timestamp>, StoreError> {
        self.read_call(self.inner.next_queued(tools)).await
    }

    async fn count_open_tasks(&self) -> Result<Vec<TaskCount>, StoreError> {
        self.read_call(self.inner.count_open_tasks()).await
    }

    /// True if the process has several engines. Then each of them watches the queue for tasks of the others.
    fn is_shared(&self) -> bool {
        self.world.setup().engines > 1
    }

    async fn join(&self, node: NodeId, lease_ms: Option<u64>, serves: &[ToolRef]) -> Result<(), StoreError> {
        self.world.state().nodes.push(node);
        self.read_call(self.inner.join(node, lease_ms, serves)).await
    }

    async fn unserved(&self) -> Result<Vec<ToolRef>, StoreError> {
        self.read_call(self.inner.unserved()).await
    }

    async fn ahead_of_clock(&self, limit: usize) -> Result<Vec<TaskKey>, StoreError> {
        self.read_call(self.inner.ahead_of_clock(limit)).await
    }

    async fn orphans(&self, limit: usize) -> Result<Vec<HeldAttempt>, StoreError> {
        self.read_call(self.inner.orphans(limit)).await
    }

    async fn held(&self, node: NodeId, after: Option<&TaskKey>, limit: usize) -> Result<Vec<HeldAttempt>, StoreError> {
        self.read_call(self.inner.held(node, after, limit)).await
    }

    async fn record(&self, key: &TaskKey, fence: u64, entries: Vec<JournalEntry>) -> Result<(), StoreError> {
        self.write_call("record", self.inner.record(key, fence, entries)).await
    }

    async fn journal(&self, key: &TaskKey, epoch: u32) -> Result<Vec<JournalEntry>, StoreError> {
        self.read_call(self.inner.journal(key, epoch)).await
    }

    async fn question(&self, key: &TaskKey, question: &QuestionKey) -> Result<Option<JournalEntry>, StoreError> {
        self.read_call(self.inner.question(key, question)).await
    }

    async fn history(&self, key: &TaskKey) -> Result<TaskHistory, StoreError> {
        self.read_call(self.inner.history(key)).await
    }

    async fn progress(&self, key: &TaskKey, fence: u64, progress: Progress) -> Result<(), StoreError> {
        self.read_call(self.inner.progress(key, fence, progress)).await
    }

    fn watch(&self, key: &TaskKey) -> Watch {
        self.inner.watch(key)
    }

    fn watch_queue(&self) -> Watch {
        self.inner.watch_queue()
    }

    async fn secret(&self, name: &str, fresh: [u8; 32]) -> Result<[u8; 32], StoreError> {
        self.write_call("secret", self.inner.secret(name, fresh)).await
    }

    async fn stopped(&self) -> String {
        self.inner.stopped().await
    }

    async fn close(&self) {
        let mut close = pin!(self.inner.close());
        std::future::poll_fn(|cx| {
            let poll = close.as_mut().poll(cx);
            self.writer.requests.notify_one();
            poll
        })
        .await;
    }
}

/// The output of a future that is ready at the first poll.
pub(crate) fn at_once<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut std::task::Context::from_waker(std::task::Waker::noop())) {
        Poll::Ready(result) => Some(result),
        Poll::Pending => None,
    }
}

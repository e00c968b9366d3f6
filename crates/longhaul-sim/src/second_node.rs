//! A node that calls the store directly. `Ctx` has no steps, sleeps and subtasks yet; this node tests the transitions
//! that they will need.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use longhaul_store::{ClaimRequest, NewTask, Store, StoreError, ToolClaim};
use longhaul_task::transition::{AskQuestion, Create, Park, Release, Report, Settle, Spawn};
use longhaul_task::{
    Event, JournalEntry, JournalPosition, Json, NodeId, Outcome, Progress, QuestionKind, Task, TaskId, TaskKey,
    Timestamp,
};
use parking_lot::Mutex;

use crate::ledger::Fact;
use crate::random::SeededRandom;
use crate::world::World;

/// The longest sleep while nothing enters the queue.
const SLEEP: Duration = Duration::from_secs(4);

/// The depth of its families, and the most children of one task.
const DEPTH_MAX: u16 = 2;
const CHILDREN_MAX: u32 = 3;

#[derive(Clone)]
struct SecondNode {
    world: World,
    store: Arc<dyn Store>,
    node: NodeId,
    running: Arc<Mutex<BTreeSet<(TaskKey, u64)>>>,
}

pub(crate) async fn run(world: World, store: Arc<dyn Store>) {
    let node = NodeId::mint(world.random(SeededRandom::bits));
    let node = SecondNode { world, store, node, running: Arc::default() };
    let tools = node.world.setup().other_tools.each_ref().map(|setup| setup.tool.clone());
    while node.store.join(node.node, None, &tools).await.is_err() {
        tokio::time::sleep(SLEEP).await;
    }
    let requested: Vec<_> = tools.into_iter().map(|tool| ToolClaim::new(tool, 3)).collect();
    let mut queue = node.store.watch_queue();
    loop {
        match node.world.random(|random| random.below(3)) {
            0 => node.create().await,
            1 => node.adopt().await,
            _ => {}
        }
        // The claimed tasks are read from the store, so that those of a claim in doubt are included.
        let _ = node.store.claim(ClaimRequest { node: node.node, tools: requested.clone() }).await;
        for attempt in node.store.held(node.node, None, 100).await.unwrap_or_default() {
            if node.running.lock().insert((attempt.key.clone(), attempt.fence)) {
                tokio::spawn(node.clone().attempt(attempt.key, attempt.fence));
            }
        }
        tokio::select! {
            biased;
            () = queue.changed() => {}
            () = tokio::time::sleep(SLEEP) => {}
        }
    }
}

impl SecondNode {
    /// A new task of the second node's tools, claimed or queued.
    fn new_task(&self) -> Create {
        let (tool, claimed, bits) = self.world.random(|random| (random.below(2), random.below(2) == 0, random.bits()));
        let setup = self.world.setup();
        let tool = &setup.other_tools[tool];
        Create {
            key: TaskKey { owner: setup.second_node_owner().clone(), id: TaskId::mint(Timestamp::ZERO, bits) },
            tool: tool.tool.clone(),
            origin: "sim".into(),
            policy: tool.policy.clone(),
            retention: tool.retention,
            claimed_by: claimed.then_some(self.node),
            first_fence: 0,
        }
    }

    /// Whether the second node makes another task.
    fn makes_more(&self) -> bool {
        let mut state = self.world.state();
        let more = state.second_node_tasks_left > 0;
        state.second_node_tasks_left = state.second_node_tasks_left.saturating_sub(1);
        more
    }

    async fn create(&self) {
        if !self.makes_more() {
            return;
        }
        let create = self.new_task();
        let key = create.key.clone();
        if self.store.create(NewTask { create, input: Json::from_text("{}") }).await.is_ok() {
            self.world.state().known.push(key);
        }
    }

    /// Spawns a child of a task that an engine runs, as its handler would.
    async fn adopt(&self) {
        let Some(key) =
            self.world.state().pick_known().filter(|key| key.owner == *self.world.setup().second_node_owner())
        else {
            return;
        };
        let Ok(found) = self.store.read(&key).await else { return };
        if found.task.phase.active_attempt().is_some() && found.task.family.children < CHILDREN_MAX && self.makes_more()
        {
            let _ = self.store.apply(&key, self.spawn(found.task.fence)).await;
        }
    }

    fn spawn(&self, fence: u64) -> Event {
        Event::Spawn(Box::new(Spawn { fence, child: self.new_task(), input: Json::from_text("{}") }))
    }

    /// Runs one attempt until it has ended or lost its task.
    async fn attempt(self, key: TaskKey, fence: u64) {
        loop {
            let ms = self.world.random(|random| random.between(1, 200));
            tokio::time::sleep(Duration::from_millis(ms)).await;
            let task = match self.store.read(&key).await {
                Ok(found) => found.task,
                Err(StoreError::NotFound) => return,
                Err(_) => continue,
            };
            if task.fence != fence || task.is_settled() {
                return;
            }
            let Ok(open_children) = self.open_children(&task).await else { continue };
            if let Some(event) = self.next(&task, open_children) {
                let ends = matches!(event, Event::Park(_) | Event::Release(_) | Event::Settle(_));
                if self.store.apply(&key, event).await.is_ok() && ends {
                    return;
                }
            } else if self.world.is_calm() {
                tokio::time::sleep(SLEEP).await;
            } else if self.world.random(|random| random.below(2) == 0) {
                self.progress(&task).await;
            } else {
                self.record(&task).await;
            }
        }
    }

    async fn open_children(&self, task: &Task) -> Result<u32, StoreError> {
        let mut open = 0;
        if task.family.children > 0 {
            for id in self.store.children(&task.key).await? {
                let child = TaskKey { owner: task.key.owner.clone(), id };
                open += u32::from(!self.store.read(&child).await?.task.is_settled());
            }
        }
        Ok(open)
    }

    /// The next event of an attempt; `None` for a recorded step.
    fn next(&self, task: &Task, open_children: u32) -> Option<Event> {
        let (fence, resumes) = (task.fence, task.resumes());
        let open_questions = task.phase.questions().map_or(0, longhaul_task::Questions::count);
        let park = |wait_ms, open_children, open_questions| {
            Some(Event::Park(Park { fence, wait_ms, open_children, open_questions }))
        };
        let settle = || {
            let outcome = Outcome::Result { body: Json::from_text("1"), is_error: false };
            Some(Event::Settle(Settle { fence, outcome }))
        };
        if self.world.is_calm() {
            return match open_children {
                0 => settle(),
                _ if resumes => park(None, open_children, 0),
                _ => None,
            };
        }
        let (choice, ms) = self.world.random(|random| (random.below(12), random.between(0, 2_000)));
        match choice {
            0 => Some(Event::Report(Report { fence, message: "at work".into() })),
            1..=3 if task.family.depth < DEPTH_MAX && task.family.children < CHILDREN_MAX && self.makes_more() => {
                Some(self.spawn(fence))
            }
            4 if task.questions_asked < 3 => {
                let position = JournalPosition { fork: "q".into(), seq: task.questions_asked };
                let (kind, params) = (QuestionKind::Elicitation, Json::from_text("{}"));
                Some(Event::Ask(AskQuestion { fence, label: "q".into(), kind, params, position, digest: 0 }))
            }
            5 if resumes => park(Some(ms), 0, 0),
            6 | 7 if resumes && open_questions > 0 => park(None, 0, open_questions),
            6..=8 if resumes && open_children > 0 => park(None, open_children, 0),
            9 => Some(Event::Release(Release { fence, wait_ms: ms / 4 })),
            10 | 11 => settle(),
            _ => None,
        }
    }

    async fn progress(&self, task: &Task) {
        let message = Some(format!("attempt {}", task.attempt).into());
        let progress = Progress { done: 1.0, total: None, message, at: task.updated_at };
        let _ = self.store.progress(&task.key, task.fence, progress).await;
    }

    /// Runs one of a few steps and records its output.
    async fn record(&self, task: &Task) {
        let (seq, bits) = self.world.random(|random| (random.between(0, 2), random.bits()));
        let position = JournalPosition { fork: "".into(), seq: u32::try_from(seq).unwrap_or(0) };
        let output = Some(Json::from_text(format!("\"{:x}\"", u128::from_be_bytes(bits))));
        let record = JournalEntry { position: position.clone(), key: "step".into(), digest: 0, output };
        if let Ok(entry) = self.store.record(&task.key, task.fence, record).await
            && let Some(output) = entry.output
        {
            self.world.note(Fact::Got { key: task.key.clone(), epoch: task.epoch(), position, output });
        }
    }
}

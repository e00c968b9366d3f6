//! Builds ledgers for the tests of the laws.

use std::sync::Arc;

use longhaul_store::{IdempotencyKey, Snapshot};
use longhaul_task::transition::{self, AskQuestion, Cancel, Create, NewChild, Park, Release, Settle, Spawn};
use longhaul_task::{
    ChildRange, EntryKind, EntryState, Event, JournalEntry, JournalPosition, Json, NodeId, OnCrash, Outcome, Owner,
    Policy, QuestionKey, QuestionKind, Retention, Surroundings, Task, TaskId, TaskKey, Timestamp, ToolRef,
};

use super::check;
use crate::ledger::{
    Ack, Commit, EndStage, Entry, Fact, IdleCounts, KeyedResponse, Rules, ToolRules, WrittenEntry, WrittenTask,
};

/// A ledger built from real transitions, so that only the part that a test changes is wrong.
pub(super) struct TestLedger {
    pub(super) now: Timestamp,
    pub(super) lines: Vec<Entry>,
}

impl TestLedger {
    pub(super) fn new() -> Self {
        let tools = vec![ToolRules { tool: tool(), running_max: 1, idle_max: 1, queued_max: 1 }];
        let mut ledger = Self { now: Timestamp::from_ms(1_000_000), lines: Vec::new() };
        ledger.note(Fact::Rules(Rules { engines: 1, owners: vec![owner()], open_per_owner_max: 2, tools }));
        ledger
    }

    /// A ledger with one task, `a`.
    pub(super) fn with_task() -> (Self, Task) {
        let mut ledger = Self::new();
        let task = ledger.create("a");
        (ledger, task)
    }

    pub(super) fn note(&mut self, fact: Fact) {
        self.lines.push(Entry { at: self.now, fact });
    }

    pub(super) fn commit(&mut self, event: &'static str, key: &TaskKey, after: Option<Task>) {
        let written = vec![WrittenTask { event, key: key.clone(), after: after.map(Arc::new), idempotency: None }];
        self.note(Fact::Committed(Commit { now: self.now, written, recorded: Vec::new(), ended: Vec::new() }));
    }

    pub(super) fn create(&mut self, id: &str) -> Task {
        let task = transition::create(&new(id), self.now);
        self.commit("create", &task.key, Some(task.clone()));
        task
    }

    /// Creates a task under the idempotency key `k`.
    pub(super) fn create_keyed(&mut self, id: &str, digest: u8) -> Task {
        let task = transition::create(&new(id), self.now);
        let after = Some(Arc::new(task.clone()));
        let idempotency = Some(request(digest));
        let written = vec![WrittenTask { event: "create", key: task.key.clone(), after, idempotency }];
        self.note(Fact::Committed(Commit { now: self.now, written, recorded: Vec::new(), ended: Vec::new() }));
        task
    }

    pub(super) fn answer_keyed(&mut self, began: usize, digest: u8, response: KeyedResponse) {
        self.note(Fact::KeyedCreation { began, owner: owner(), request: request(digest), response });
    }

    pub(super) fn apply(&mut self, task: &Task, event: &Event) -> Task {
        let change = transition::apply(task, event, &Surroundings::default(), self.now).unwrap();
        let after = (!change.deletes_family()).then(|| Arc::new(change.task.clone()));
        let written = vec![WrittenTask { event: event.name(), key: task.key.clone(), after, idempotency: None }];
        let ended = change.ended_attempt.into_iter().map(|record| (task.key.clone(), record)).collect();
        self.note(Fact::Committed(Commit { now: self.now, written, recorded: Vec::new(), ended }));
        change.task
    }

    /// What an event would make of a task, without a commit.
    pub(super) fn after(&self, task: &Task, event: &Event) -> Task {
        transition::apply(task, event, &Surroundings::default(), self.now).unwrap().task
    }

    pub(super) fn acknowledge(&mut self, what: Ack, task: &Task) {
        self.note(Fact::Acknowledged { what, key: task.key.clone(), revision: task.revision });
    }

    pub(super) fn read(&mut self, key: &TaskKey, task: Option<&Task>) {
        let found = task.map(|task| Snapshot { task: Arc::new(task.clone()), progress: None });
        let began = self.lines.len();
        self.note(Fact::Read { began, key: key.clone(), found });
    }

    pub(super) fn record(&mut self, key: &TaskKey, question: Option<&str>, output: &str) {
        let kind = if question.is_some() { EntryKind::Question } else { EntryKind::Step };
        let state = EntryState::Done(Json::from_text(output));
        let entry = JournalEntry { question: question.map(QuestionKey::from_text), ..entry(kind, 0, state) };
        self.record_entry(key, 1, entry);
    }

    pub(super) fn record_entry(&mut self, key: &TaskKey, epoch: u32, entry: JournalEntry) {
        let recorded = vec![WrittenEntry { key: key.clone(), life: 1, epoch, entry, replaces: false }];
        self.note(Fact::Committed(Commit { now: self.now, written: Vec::new(), recorded, ended: Vec::new() }));
    }

    pub(super) fn got(&mut self, id: &str, epoch: u32, output: &str) {
        let (key, output) = (key(id), Json::from_text(output));
        self.note(Fact::Got { key, attempt: 1, epoch, position: position(), output });
    }

    pub(super) fn effect(&mut self, id: &str, seq: u32, succeeds: bool) {
        let position = JournalPosition { fork: "".into(), seq };
        self.note(Fact::Effect { key: key(id), attempt: 1, epoch: 0, position, succeeds });
    }

    pub(super) fn quiet(&mut self, stage: EndStage, open: usize, busy: usize) {
        let open = vec![(owner(), open)];
        let load = vec![(tool(), busy, 0)];
        let (attempts, places, running, handlers) = (0, 0, 0, 0);
        self.note(Fact::Quiet(IdleCounts { stage, load, open, attempts, places, running, handlers }));
    }

    /// The last line breaks `law`, and no earlier line does.
    pub(super) fn assert_breaks(&self, law: &str) {
        let broken = check(&self.lines).expect_err("no law is broken");
        assert_eq!(broken.law, law, "{broken}");
        assert_eq!(broken.line, self.lines.len() - 1, "the last line breaks it: {broken}");
    }

    pub(super) fn assert_holds(&self) {
        assert_eq!(check(&self.lines), Ok(()));
    }
}

pub(super) fn node() -> NodeId {
    NodeId::mint([0; 16])
}

pub(super) fn owner() -> Owner {
    Owner::parse("ada").unwrap()
}

pub(super) fn tool() -> ToolRef {
    ToolRef::new("tool", "1")
}

pub(super) fn key(id: &str) -> TaskKey {
    TaskKey { owner: owner(), id: TaskId::parse(id).unwrap() }
}

pub(super) fn position() -> JournalPosition {
    JournalPosition { fork: "".into(), seq: 0 }
}

/// An entry of the first attempt.
pub(super) fn entry(kind: EntryKind, seq: u32, state: EntryState) -> JournalEntry {
    let position = JournalPosition { fork: "".into(), seq };
    JournalEntry { attempt: 1, ..JournalEntry::new(position, kind, "name".into(), 0, state) }
}

pub(super) fn done(output: &str) -> EntryState {
    EntryState::Done(Json::from_text(output))
}

/// A task of a tool that resumes.
pub(super) fn resuming(id: &str) -> Create {
    Create { policy: Policy { on_crash: OnCrash::Resume, ..Policy::default() }, ..new(id) }
}

pub(super) fn new(id: &str) -> Create {
    Create {
        key: key(id),
        tool: tool(),
        origin: "test".into(),
        policy: Policy::default(),
        retention: Retention::FromEnd(1_000),
        claimed_by: Some(node()),
        first_fence: 0,
    }
}

pub(super) fn ask(fence: u64) -> Event {
    let (kind, params) = (QuestionKind::Elicitation, Json::from_text("{}"));
    Event::Ask(AskQuestion {
        fence,
        label: "q".into(),
        kind,
        params,
        position: position(),
        digest: 0,
        time_limit: None,
    })
}

pub(super) fn settle(fence: u64) -> Event {
    let outcome = Outcome::Result { body: Json::from_text("1"), is_error: false };
    Event::Settle(Settle { fence, outcome, entries: Vec::new() })
}

pub(super) fn release(fence: u64) -> Event {
    Event::Release(Release { fence, wait_ms: 0, reason: "busy".into() })
}

pub(super) fn request(digest: u8) -> IdempotencyKey {
    IdempotencyKey { key: "k".into(), digest: [digest; 32] }
}

pub(super) fn cancel() -> Event {
    Event::Cancel(Cancel::default())
}

/// A parent and its child, both open.
pub(super) fn family() -> (TestLedger, Task, Task) {
    let mut ledger = TestLedger::new();
    let parent = transition::create(&resuming("a"), ledger.now);
    ledger.commit("create", &parent.key, Some(parent.clone()));
    let (parent, child) = spawn(&mut ledger, &parent, true);
    (ledger, parent, child)
}

pub(super) fn spawn(ledger: &mut TestLedger, parent: &Task, is_recorded: bool) -> (Task, Task) {
    let children = vec![NewChild { create: new("b"), input: Json::from_text("{}") }];
    let event = Event::Spawn(Box::new(Spawn { fence: 1, children, entries: Vec::new() }));
    let mut change = transition::apply(parent, &event, &Surroundings::default(), ledger.now).unwrap();
    let (child, _) = change.children.remove(0);
    let written = |task: &Task| WrittenTask {
        event: "spawn",
        key: task.key.clone(),
        after: Some(Arc::new(task.clone())),
        idempotency: None,
    };
    let written = [&change.task, &child].map(written).into();
    let entry = entry(EntryKind::Subtask, 0, done("\"b\""));
    let recorded = vec![WrittenEntry { key: parent.key.clone(), life: 1, epoch: 0, entry, replaces: false }];
    let recorded = if is_recorded { recorded } else { Vec::new() };
    ledger.note(Fact::Committed(Commit { now: ledger.now, written, recorded, ended: Vec::new() }));
    (change.task, child)
}

/// The parent waits for its child without a handler in memory.
pub(super) fn parked() -> (TestLedger, Task, Task) {
    let (mut ledger, parent, child) = family();
    let range = ChildRange { first: 0, last: 0 };
    let park = Event::Park(Park { fence: 1, wait_ms: None, children: vec![range], ..Park::default() });
    let surroundings = Surroundings { open_children: vec![range], ..Surroundings::default() };
    let change = transition::apply(&parent, &park, &surroundings, ledger.now).unwrap();
    let written = vec![WrittenTask {
        event: "park",
        key: key("a"),
        after: Some(Arc::new(change.task.clone())),
        idempotency: None,
    }];
    let ended = vec![(key("a"), change.ended_attempt.unwrap())];
    ledger.note(Fact::Committed(Commit { now: ledger.now, written, recorded: Vec::new(), ended }));
    ledger.assert_holds();
    (ledger, change.task, child)
}

/// A task whose handler resumes and runs.
pub(super) fn resumed() -> (TestLedger, Task) {
    let mut ledger = TestLedger::new();
    let task = transition::create(&resuming("a"), ledger.now);
    ledger.commit("create", &task.key, Some(task.clone()));
    (ledger, task)
}

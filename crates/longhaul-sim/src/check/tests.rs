//! Handwritten ledgers: one that violates no law, and for each law one that violates it.

use std::sync::Arc;

use longhaul_store::{Snapshot, StoreError};
use longhaul_task::transition::{
    self, AnswerQuestion, AskQuestion, Cancel, Claim, Create, Delete, Release, Settle, Spawn,
};
use longhaul_task::{
    Event, JournalPosition, Json, NodeId, Outcome, Owner, Policy, Progress, QuestionKey, QuestionKind, Retention,
    Surroundings, Task, TaskId, TaskKey, Timestamp, ToolRef, TransitionError,
};

use super::check;
use crate::ledger::{Ack, Commit, EndStage, Entry, Fact, IdleCounts, Rules, ToolRules, WrittenEntry, WrittenTask};

/// A ledger built from real transitions, so that only the part that a test changes is wrong.
struct Book {
    now: Timestamp,
    lines: Vec<Entry>,
}

impl Book {
    fn new() -> Self {
        let tools = vec![ToolRules { tool: tool(), running_max: 1, idle_max: 1, queued_max: 1 }];
        let mut book = Self { now: Timestamp::from_ms(1_000_000), lines: Vec::new() };
        book.note(Fact::Rules(Rules { engines: 1, owners: vec![owner()], open_per_owner_max: 2, tools }));
        book
    }

    /// A ledger with one task, `a`.
    fn with_task() -> (Self, Task) {
        let mut book = Self::new();
        let task = book.create("a");
        (book, task)
    }

    fn note(&mut self, fact: Fact) {
        self.lines.push(Entry { at: self.now, fact });
    }

    fn commit(&mut self, event: &'static str, key: &TaskKey, after: Option<Task>) {
        let written = vec![WrittenTask { event, key: key.clone(), after: after.map(Arc::new) }];
        self.note(Fact::Committed(Commit { now: self.now, written, recorded: Vec::new() }));
    }

    fn create(&mut self, id: &str) -> Task {
        let task = transition::create(&new(id), self.now);
        self.commit("create", &task.key, Some(task.clone()));
        task
    }

    fn apply(&mut self, task: &Task, event: &Event) -> Task {
        let change = transition::apply(task, event, &Surroundings::default(), self.now).unwrap();
        let after = (!change.deletes_family()).then(|| change.task.clone());
        self.commit(event.name(), &task.key, after);
        change.task
    }

    /// What an event would make of a task, without a commit.
    fn after(&self, task: &Task, event: &Event) -> Task {
        transition::apply(task, event, &Surroundings::default(), self.now).unwrap().task
    }

    fn acknowledge(&mut self, what: Ack, task: &Task) {
        self.note(Fact::Acknowledged { what, key: task.key.clone(), revision: task.revision });
    }

    fn read(&mut self, key: &TaskKey, task: Option<&Task>) {
        let found = task.map(|task| Snapshot { task: Arc::new(task.clone()), progress: None });
        let began = self.lines.len();
        self.note(Fact::Read { began, key: key.clone(), found });
    }

    fn record(&mut self, key: &TaskKey, question: Option<&str>, output: &str) {
        let question = question.map(QuestionKey::from_text);
        let output = Some(Json::from_text(output));
        let recorded =
            vec![WrittenEntry { key: key.clone(), life: 1, epoch: 1, position: position(), question, output }];
        self.note(Fact::Committed(Commit { now: self.now, written: Vec::new(), recorded }));
    }

    fn quiet(&mut self, stage: EndStage, open: usize, busy: usize) {
        let open = vec![(owner(), open)];
        let load = vec![(tool(), busy, 0)];
        let others = Vec::new();
        let (attempts, places, running, handlers) = (0, 0, 0, 0);
        self.note(Fact::Quiet(IdleCounts { stage, others, load, open, attempts, places, running, handlers }));
    }

    fn breaks(&self, law: &str) {
        let broken = check(&self.lines).expect_err("no law is broken");
        assert_eq!(broken.law, law, "{broken}");
        assert_eq!(broken.line, self.lines.len() - 1, "the last line breaks it: {broken}");
    }

    fn holds(&self) {
        assert_eq!(check(&self.lines), Ok(()));
    }
}

fn node() -> NodeId {
    NodeId::mint([0; 16])
}

fn owner() -> Owner {
    Owner::parse("ada").unwrap()
}

fn tool() -> ToolRef {
    ToolRef::new("tool", "1")
}

fn key(id: &str) -> TaskKey {
    TaskKey { owner: owner(), id: TaskId::parse(id).unwrap() }
}

fn position() -> JournalPosition {
    JournalPosition { fork: "".into(), seq: 0 }
}

fn new(id: &str) -> Create {
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

fn ask(fence: u64) -> Event {
    let (kind, params) = (QuestionKind::Elicitation, Json::from_text("{}"));
    Event::Ask(AskQuestion { fence, label: "q".into(), kind, params, position: position(), digest: 0 })
}

fn settle(fence: u64) -> Event {
    Event::Settle(Settle { fence, outcome: Outcome::Result { body: Json::from_text("1"), is_error: false } })
}

fn cancel() -> Event {
    Event::Cancel(Cancel::default())
}

#[test]
fn an_honest_ledger_breaks_no_law() {
    let (mut book, created) = Book::with_task();
    book.acknowledge(Ack::Created, &created);
    book.read(&created.key, Some(&created));
    let asked = book.apply(&created, &ask(1));
    let (question, body) = (QuestionKey::from_text("q-1"), Json::from_text("\"yes\""));
    let answered = book.apply(&asked, &Event::Answer(AnswerQuestion { key: question.clone(), body: body.clone() }));
    book.record(&created.key, Some("q-1"), "\"yes\"");
    book.acknowledge(Ack::Answered { question, body }, &answered);
    let settled = book.apply(&answered, &settle(1));
    book.note(Fact::Wrote { key: key("a"), fence: 1, event: "settle", revision: settled.revision });
    book.quiet(EndStage::Settled, 0, 0);
    book.now = book.now.plus_ms(1_000);
    book.commit("expire", &created.key, None);
    book.read(&created.key, None);
    book.holds();
}

#[test]
fn a_creation_acknowledged_before_its_commit_is_caught() {
    let mut book = Book::new();
    book.acknowledge(Ack::Created, &transition::create(&new("a"), book.now));
    book.breaks("acknowledged is durable");
}

#[test]
fn a_cancellation_that_was_acknowledged_and_is_not_there_is_caught() {
    let (mut book, created) = Book::with_task();
    book.acknowledge(Ack::Cancelled, &created);
    book.breaks("acknowledged is durable");
}

#[test]
fn a_task_that_is_denied_while_it_is_there_is_caught() {
    let (mut book, created) = Book::with_task();
    let began = book.lines.len();
    book.note(Fact::Denied { began, key: created.key, what: "cancel", error: StoreError::NotFound });
    book.breaks("acknowledged is durable");
}

#[test]
fn a_settled_task_that_changes_is_caught() {
    let (mut book, created) = Book::with_task();
    let mut settled = book.apply(&created, &settle(1));
    settled.revision += 1;
    book.commit("report", &key("a"), Some(settled));
    book.breaks("terminal is final");
}

#[test]
fn a_write_under_an_old_fence_is_caught() {
    let (mut book, created) = Book::with_task();
    let released = book.apply(&created, &Event::Release(Release { fence: 1, wait_ms: 0 }));
    let claimed = book.apply(&released, &Event::Claim(Claim { node: node() }));
    let settled = book.apply(&claimed, &settle(claimed.fence));
    book.note(Fact::Wrote { key: key("a"), fence: 1, event: "settle", revision: settled.revision });
    book.breaks("one attempt wins");
}

#[test]
fn an_attempt_that_loses_its_task_without_a_higher_fence_is_caught() {
    let (mut book, created) = Book::with_task();
    let mut released = book.after(&created, &Event::Release(Release { fence: 1, wait_ms: 0 }));
    released.fence = created.fence;
    book.commit("release", &key("a"), Some(released));
    book.breaks("one attempt wins");
}

#[test]
fn a_revision_that_is_skipped_is_caught() {
    let (mut book, mut created) = Book::with_task();
    created.revision = 3;
    book.commit("report", &key("a"), Some(created));
    book.breaks("every change is counted");
}

#[test]
fn a_question_key_that_is_used_again_is_caught() {
    let (mut book, created) = Book::with_task();
    let asked = book.apply(&created, &ask(1));
    let answer = Event::Answer(AnswerQuestion { key: QuestionKey::from_text("q-1"), body: Json::from_text("1") });
    let mut answered = book.apply(&asked, &answer);
    answered.questions_asked = 0;
    book.apply(&answered, &ask(1));
    book.breaks("a question is asked once and answered once");
}

#[test]
fn an_answer_that_was_acknowledged_and_not_kept_is_caught() {
    let (mut book, created) = Book::with_task();
    let asked = book.apply(&created, &ask(1));
    let (question, body) = (QuestionKey::from_text("q-1"), Json::from_text("1"));
    let answered = book.apply(&asked, &Event::Answer(AnswerQuestion { key: question.clone(), body: body.clone() }));
    book.acknowledge(Ack::Answered { question, body }, &answered);
    book.breaks("a question is asked once and answered once");
}

#[test]
fn a_record_that_changes_is_caught() {
    let (mut book, _) = Book::with_task();
    book.record(&key("a"), None, "1");
    book.record(&key("a"), None, "2");
    book.breaks("a recorded step is done");
}

#[test]
fn a_handler_that_gets_something_else_than_is_on_record_is_caught() {
    let (mut book, _) = Book::with_task();
    book.record(&key("a"), None, "1");
    book.note(Fact::Got { key: key("a"), epoch: 1, position: position(), output: Json::from_text("2") });
    book.breaks("a recorded step is done");
}

#[test]
fn a_handler_may_hear_of_its_record_when_its_task_is_deleted_and_another_has_the_id() {
    let (mut book, task) = Book::with_task();
    book.record(&key("a"), None, "1");
    let cancelled = book.apply(&task, &cancel());
    book.commit("delete", &cancelled.key, None);
    let again = transition::create(&Create { first_fence: 1 << 40, ..new("a") }, book.now);
    book.commit("create", &again.key, Some(again.clone()));
    book.note(Fact::Got { key: key("a"), epoch: 1, position: position(), output: Json::from_text("1") });
    book.holds();
}

/// A parent and its child, both open.
fn family() -> (Book, Task, Task) {
    let (mut book, parent) = Book::with_task();
    let spawn = Spawn { fence: 1, child: new("b"), input: Json::from_text("{}") };
    let event = Event::Spawn(Box::new(spawn));
    let change = transition::apply(&parent, &event, &Surroundings::default(), book.now).unwrap();
    let (child, _) = change.child.unwrap();
    let written =
        |task: &Task| WrittenTask { event: "spawn", key: task.key.clone(), after: Some(Arc::new(task.clone())) };
    let written = [&change.task, &child].map(written);
    book.note(Fact::Committed(Commit { now: book.now, written: written.into(), recorded: Vec::new() }));
    (book, change.task, child)
}

#[test]
fn a_parent_that_ends_before_its_child_is_caught() {
    let (mut book, parent, _) = family();
    book.holds();
    book.apply(&parent, &cancel());
    book.breaks("families live and die together");
}

#[test]
fn a_child_that_outlives_its_family_is_caught() {
    let (mut book, parent, child) = family();
    book.apply(&child, &cancel());
    let ended = book.apply(&parent, &cancel());
    book.holds();
    book.apply(&ended, &Event::Delete(Delete));
    book.breaks("families live and die together");
}

#[test]
fn a_stranger_who_is_told_more_than_that_there_is_nothing_is_caught() {
    let mut book = Book::new();
    let error = StoreError::Refused(TransitionError::Settled);
    book.note(Fact::Denied { began: 0, key: key("theirs"), what: "cancel", error });
    book.breaks("not yours is not there");
}

#[test]
fn more_handlers_than_workers_are_caught() {
    let mut book = Book::new();
    book.note(Fact::Working { tool: tool(), handlers: 2 });
    book.breaks("everything has a limit");
}

#[test]
fn more_open_tasks_than_an_owner_may_have_are_caught() {
    let (mut book, _) = Book::with_task();
    book.create("b");
    book.holds();
    book.create("c");
    book.breaks("everything has a limit");
}

#[test]
fn a_queue_past_its_limit_is_caught() {
    let mut book = Book::new();
    for id in ["a", "b"] {
        let queued = transition::create(&Create { claimed_by: None, ..new(id) }, book.now);
        book.commit("create", &key(id), Some(queued));
    }
    book.breaks("everything has a limit");
}

#[test]
fn a_time_that_is_not_that_of_the_change_is_caught() {
    let (mut book, created) = Book::with_task();
    book.now = book.now.plus_ms(5);
    let mut ended = book.after(&created, &cancel());
    ended.updated_at = created.updated_at;
    book.commit("cancel", &key("a"), Some(ended));
    book.breaks("times follow the clock and nothing expires early");
}

#[test]
fn a_task_that_expires_too_early_is_caught() {
    let (mut book, created) = Book::with_task();
    book.apply(&created, &settle(1));
    book.now = book.now.plus_ms(999);
    book.commit("expire", &key("a"), None);
    book.breaks("times follow the clock and nothing expires early");
}

#[test]
fn a_read_of_what_was_never_committed_is_caught() {
    let (mut book, created) = Book::with_task();
    let ended = book.after(&created, &cancel());
    book.read(&key("a"), Some(&ended));
    book.breaks("readers see what is committed, in order");
}

#[test]
fn a_reader_who_sees_a_task_go_back_is_caught() {
    let (mut book, created) = Book::with_task();
    let ended = book.apply(&created, &cancel());
    book.read(&key("a"), Some(&ended));
    book.read(&key("a"), Some(&created));
    book.breaks("readers see what is committed, in order");
}

#[test]
fn a_reader_who_began_before_the_change_may_see_what_was_before_it() {
    let (mut book, created) = Book::with_task();
    let began = book.lines.len();
    let ended = book.apply(&created, &cancel());
    book.read(&key("a"), Some(&ended));
    let found = Some(Snapshot { task: Arc::new(created), progress: None });
    book.note(Fact::Read { began, key: key("a"), found });
    book.holds();
}

#[test]
fn an_acknowledged_task_that_cannot_be_read_is_caught() {
    let (mut book, created) = Book::with_task();
    book.acknowledge(Ack::Created, &created);
    book.read(&key("a"), None);
    book.breaks("readers see what is committed, in order");
}

#[test]
fn a_deleted_task_that_comes_back_is_caught() {
    let (mut book, created) = Book::with_task();
    let ended = book.apply(&created, &cancel());
    book.apply(&ended, &Event::Delete(Delete));
    book.read(&key("a"), None);
    book.read(&key("a"), Some(&ended));
    book.breaks("readers see what is committed, in order");
}

#[test]
fn the_progress_of_another_attempt_is_caught() {
    let (mut book, created) = Book::with_task();
    let progress = Progress { done: 1.0, total: None, message: Some("attempt 7".into()), at: book.now };
    let found = Some(Snapshot { task: Arc::new(created), progress: Some(Arc::new(progress)) });
    book.note(Fact::Read { began: book.lines.len(), key: key("a"), found });
    book.breaks("readers see what is committed, in order");
}

#[test]
fn an_attempt_of_a_dead_process_after_recovery_is_caught() {
    let mut book = Book::new();
    let held = vec![longhaul_store::HeldAttempt { key: key("a"), node: node(), fence: 1 }];
    book.note(Fact::Recovered { nodes: vec![NodeId::mint([1; 16])], held });
    book.breaks("after recovery no attempt belongs to a dead process");
}

#[test]
fn a_watcher_that_was_not_woken_is_caught() {
    let (mut book, created) = Book::with_task();
    book.apply(&created, &cancel());
    book.note(Fact::Followed { key: key("a"), seen: Some(created.revision) });
    book.breaks("a watcher is woken for every change");
}

#[test]
fn a_task_that_is_stuck_is_caught() {
    let (mut book, _) = Book::with_task();
    book.quiet(EndStage::LeftAlone, 1, 0);
    book.breaks("nothing is stuck and nothing leaks");
}

#[test]
fn a_worker_that_did_not_come_back_is_caught() {
    let mut book = Book::new();
    book.quiet(EndStage::Settled, 0, 1);
    book.breaks("nothing is stuck and nothing leaks");
}

#[test]
fn a_count_that_did_not_come_back_is_caught() {
    let mut book = Book::new();
    book.quiet(EndStage::Settled, 1, 0);
    book.breaks("nothing is stuck and nothing leaks");
}

//! Handwritten ledgers: one that violates no law, and for each law one that violates it.

use std::sync::Arc;

use longhaul_store::{IdempotencyKey, Snapshot, StoreError};
use longhaul_task::transition::{
    self, AnswerQuestion, AskQuestion, Cancel, Claim, Create, Delete, Lose, NewChild, Park, Release, Settle, Spawn,
};
use longhaul_task::{
    Answer, ChildRange, EntryKind, EntryState, Event, JournalEntry, JournalPosition, Json, NodeId, OnCrash, Outcome,
    Owner, Policy, Progress, QuestionKey, QuestionKind, Retention, Surroundings, Task, TaskId, TaskKey, Timestamp,
    ToolRef, TransitionError,
};

use super::check;
use crate::ledger::{
    Ack, Commit, EndStage, Entry, Fact, IdleCounts, KeyedResponse, Rules, ToolRules, WrittenEntry, WrittenTask,
};

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
        let written = vec![WrittenTask { event, key: key.clone(), after: after.map(Arc::new), idempotency: None }];
        self.note(Fact::Committed(Commit { now: self.now, written, recorded: Vec::new(), ended: Vec::new() }));
    }

    fn create(&mut self, id: &str) -> Task {
        let task = transition::create(&new(id), self.now);
        self.commit("create", &task.key, Some(task.clone()));
        task
    }

    /// Creates a task under the idempotency key `k`.
    fn create_keyed(&mut self, id: &str, digest: u8) -> Task {
        let task = transition::create(&new(id), self.now);
        let after = Some(Arc::new(task.clone()));
        let idempotency = Some(request(digest));
        let written = vec![WrittenTask { event: "create", key: task.key.clone(), after, idempotency }];
        self.note(Fact::Committed(Commit { now: self.now, written, recorded: Vec::new(), ended: Vec::new() }));
        task
    }

    fn answer_keyed(&mut self, began: usize, digest: u8, response: KeyedResponse) {
        self.note(Fact::KeyedCreation { began, owner: owner(), request: request(digest), response });
    }

    fn apply(&mut self, task: &Task, event: &Event) -> Task {
        let change = transition::apply(task, event, &Surroundings::default(), self.now).unwrap();
        let after = (!change.deletes_family()).then(|| Arc::new(change.task.clone()));
        let written = vec![WrittenTask { event: event.name(), key: task.key.clone(), after, idempotency: None }];
        let ended = change.ended_attempt.into_iter().map(|record| (task.key.clone(), record)).collect();
        self.note(Fact::Committed(Commit { now: self.now, written, recorded: Vec::new(), ended }));
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
        let kind = if question.is_some() { EntryKind::Question } else { EntryKind::Step };
        let state = EntryState::Done(Json::from_text(output));
        let entry = JournalEntry { question: question.map(QuestionKey::from_text), ..entry(kind, 0, state) };
        self.record_entry(key, 1, entry);
    }

    fn record_entry(&mut self, key: &TaskKey, epoch: u32, entry: JournalEntry) {
        let recorded = vec![WrittenEntry { key: key.clone(), life: 1, epoch, entry, replaces: false }];
        self.note(Fact::Committed(Commit { now: self.now, written: Vec::new(), recorded, ended: Vec::new() }));
    }

    fn got(&mut self, id: &str, epoch: u32, output: &str) {
        let (key, output) = (key(id), Json::from_text(output));
        self.note(Fact::Got { key, attempt: 1, epoch, position: position(), output });
    }

    fn effect(&mut self, id: &str, seq: u32, succeeds: bool) {
        let position = JournalPosition { fork: "".into(), seq };
        self.note(Fact::Effect { key: key(id), attempt: 1, epoch: 0, position, succeeds });
    }

    fn quiet(&mut self, stage: EndStage, open: usize, busy: usize) {
        let open = vec![(owner(), open)];
        let load = vec![(tool(), busy, 0)];
        let (attempts, places, running, handlers) = (0, 0, 0, 0);
        self.note(Fact::Quiet(IdleCounts { stage, load, open, attempts, places, running, handlers }));
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

/// An entry of the first attempt.
fn entry(kind: EntryKind, seq: u32, state: EntryState) -> JournalEntry {
    let position = JournalPosition { fork: "".into(), seq };
    JournalEntry { attempt: 1, ..JournalEntry::new(position, kind, "name".into(), 0, state) }
}

fn done(output: &str) -> EntryState {
    EntryState::Done(Json::from_text(output))
}

/// A task of a tool that resumes.
fn resuming(id: &str) -> Create {
    Create { policy: Policy { on_crash: OnCrash::Resume, ..Policy::default() }, ..new(id) }
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

fn settle(fence: u64) -> Event {
    let outcome = Outcome::Result { body: Json::from_text("1"), is_error: false };
    Event::Settle(Settle { fence, outcome, entries: Vec::new() })
}

fn release(fence: u64) -> Event {
    Event::Release(Release { fence, wait_ms: 0, reason: "busy".into() })
}

fn request(digest: u8) -> IdempotencyKey {
    IdempotencyKey { key: "k".into(), digest: [digest; 32] }
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
    let (question, answer) = (QuestionKey::from_text("q-1"), Answer::Given(Json::from_text("\"yes\"")));
    let answered = book.apply(&asked, &Event::Answer(AnswerQuestion { key: question.clone(), answer: answer.clone() }));
    book.record(&created.key, Some("q-1"), "\"yes\"");
    book.acknowledge(Ack::Answered { question, answer }, &answered);
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
    let released = book.apply(&created, &release(1));
    let claimed = book.apply(&released, &Event::Claim(Claim { node: node() }));
    let settled = book.apply(&claimed, &settle(claimed.fence));
    book.note(Fact::Wrote { key: key("a"), fence: 1, event: "settle", revision: settled.revision });
    book.breaks("one attempt wins");
}

#[test]
fn an_attempt_that_loses_its_task_without_a_higher_fence_is_caught() {
    let (mut book, created) = Book::with_task();
    let mut released = book.after(&created, &release(1));
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
    let answer = Event::Answer(AnswerQuestion {
        key: QuestionKey::from_text("q-1"),
        answer: Answer::Given(Json::from_text("1")),
    });
    let mut answered = book.apply(&asked, &answer);
    answered.questions_asked = 0;
    book.apply(&answered, &ask(1));
    book.breaks("a question is asked once and answered once");
}

#[test]
fn an_answer_that_was_acknowledged_and_not_kept_is_caught() {
    let (mut book, created) = Book::with_task();
    let asked = book.apply(&created, &ask(1));
    let (question, answer) = (QuestionKey::from_text("q-1"), Answer::Given(Json::from_text("1")));
    let answered = book.apply(&asked, &Event::Answer(AnswerQuestion { key: question.clone(), answer: answer.clone() }));
    book.acknowledge(Ack::Answered { question, answer }, &answered);
    book.breaks("a question is asked once and answered once");
}

#[test]
fn a_record_that_changes_is_caught() {
    let (mut book, _) = Book::with_task();
    book.record(&key("a"), None, "1");
    book.record(&key("a"), None, "2");
    book.breaks("a recorded output does not change");
}

#[test]
fn a_handler_that_gets_something_else_than_is_on_record_is_caught() {
    let (mut book, _) = Book::with_task();
    book.record(&key("a"), None, "1");
    book.got("a", 1, "2");
    book.breaks("a recorded output does not change");
}

#[test]
fn a_handler_may_hear_of_its_record_when_its_task_is_deleted_and_another_has_the_id() {
    let (mut book, task) = Book::with_task();
    book.record(&key("a"), None, "1");
    let cancelled = book.apply(&task, &cancel());
    book.commit("delete", &cancelled.key, None);
    let again = transition::create(&Create { first_fence: 1 << 40, ..new("a") }, book.now);
    book.commit("create", &again.key, Some(again.clone()));
    book.got("a", 1, "1");
    book.holds();
}

/// A parent and its child, both open.
fn family() -> (Book, Task, Task) {
    let mut book = Book::new();
    let parent = transition::create(&resuming("a"), book.now);
    book.commit("create", &parent.key, Some(parent.clone()));
    let (parent, child) = spawn(&mut book, &parent, true);
    (book, parent, child)
}

fn spawn(book: &mut Book, parent: &Task, is_recorded: bool) -> (Task, Task) {
    let children = vec![NewChild { create: new("b"), input: Json::from_text("{}") }];
    let event = Event::Spawn(Box::new(Spawn { fence: 1, children, entries: Vec::new() }));
    let mut change = transition::apply(parent, &event, &Surroundings::default(), book.now).unwrap();
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
    book.note(Fact::Committed(Commit { now: book.now, written, recorded, ended: Vec::new() }));
    (change.task, child)
}

/// The parent waits for its child without a handler in memory.
fn parked() -> (Book, Task, Task) {
    let (mut book, parent, child) = family();
    let range = ChildRange { first: 0, last: 0 };
    let park = Event::Park(Park { fence: 1, wait_ms: None, children: vec![range], ..Park::default() });
    let surroundings = Surroundings { open_children: vec![range], ..Surroundings::default() };
    let change = transition::apply(&parent, &park, &surroundings, book.now).unwrap();
    let written = vec![WrittenTask {
        event: "park",
        key: key("a"),
        after: Some(Arc::new(change.task.clone())),
        idempotency: None,
    }];
    let ended = vec![(key("a"), change.ended_attempt.unwrap())];
    book.note(Fact::Committed(Commit { now: book.now, written, recorded: Vec::new(), ended }));
    book.holds();
    (book, change.task, child)
}

#[test]
fn a_child_that_is_in_no_journal_is_caught() {
    let (mut book, parent) = Book::with_task();
    spawn(&mut book, &parent, false);
    book.breaks("families live and die together");
}

#[test]
fn a_parent_that_is_not_woken_by_its_last_child_is_caught() {
    let (mut book, _, child) = parked();
    book.apply(&child, &cancel());
    book.breaks("a parked task wakes when what it waits for has happened");
}

#[test]
fn a_parent_that_is_woken_too_early_is_caught() {
    let (mut book, parent, _) = parked();
    let mut woken = parent.clone();
    woken.revision += 1;
    woken.phase = longhaul_task::Phase::Queued { wait: longhaul_task::Wait::until(book.now, book.now) };
    book.commit("wake", &parent.key, Some(woken));
    book.breaks("a parked task wakes when what it waits for has happened");
}

/// A task whose handler resumes and runs.
fn resumed() -> (Book, Task) {
    let mut book = Book::new();
    let task = transition::create(&resuming("a"), book.now);
    book.commit("create", &task.key, Some(task.clone()));
    (book, task)
}

#[test]
fn a_recorded_step_that_is_done_again_is_caught() {
    let (mut book, _) = resumed();
    book.effect("a", 0, true);
    book.record_entry(&key("a"), 0, entry(EntryKind::Step, 0, done("1")));
    book.holds();
    book.effect("a", 0, true);
    book.breaks("a step is done once unless a crash comes before its record");
}

#[test]
fn a_step_that_begins_before_the_last_one_is_recorded_is_caught() {
    let (mut book, _) = resumed();
    book.effect("a", 0, true);
    book.effect("a", 1, true);
    book.breaks("a step is done once unless a crash comes before its record");
}

#[test]
fn a_try_that_begins_before_the_failure_is_recorded_is_caught() {
    let (mut book, _) = resumed();
    book.effect("a", 0, false);
    book.effect("a", 0, true);
    book.breaks("a step is done once unless a crash comes before its record");
}

#[test]
fn an_output_that_is_missing_when_the_task_settles_is_caught() {
    let (mut book, task) = resumed();
    book.effect("a", 0, true);
    book.got("a", 0, "1");
    book.apply(&task, &settle(1));
    book.breaks("a recorded output does not change");
}

#[test]
fn an_attempt_without_a_record_is_caught() {
    let (mut book, created) = Book::with_task();
    let released = book.after(&created, &release(1));
    book.commit("release", &key("a"), Some(released));
    book.breaks("every attempt is counted and recorded");
}

#[test]
fn a_count_of_failed_attempts_that_does_not_begin_again_is_caught() {
    let (mut book, task) = resumed();
    book.record_entry(&key("a"), 0, entry(EntryKind::Step, 0, done("1")));
    let mut task = task;
    task.failed_attempts = 1;
    task.revision = 2;
    let lose = Event::Lose(Lose { node: node(), fence: 1, is_stop: false });
    let change = transition::apply(&task, &lose, &Surroundings::default(), book.now).unwrap();
    let after = Task { revision: 2, failed_attempts: 2, ..change.task };
    let written = vec![WrittenTask { event: "lose", key: key("a"), after: Some(Arc::new(after)), idempotency: None }];
    let ended = vec![(key("a"), change.ended_attempt.unwrap())];
    book.note(Fact::Committed(Commit { now: book.now, written, recorded: Vec::new(), ended }));
    book.breaks("every attempt is counted and recorded");
}

#[test]
fn a_sleep_that_ends_before_its_time_is_caught() {
    let (mut book, _) = resumed();
    let since = book.now.as_ms();
    let wait = format!("{{\"since\":{since},\"until\":{}}}", since + 10);
    book.record_entry(&key("a"), 0, entry(EntryKind::Timer, 0, done(&wait)));
    book.now = book.now.plus_ms(9);
    book.note(Fact::Slept { key: key("a"), attempt: 1, position: position() });
    book.breaks("times follow the clock and nothing expires early");
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
fn a_second_task_under_an_idempotency_key_is_caught() {
    let mut book = Book::new();
    let first = book.create_keyed("a", 1);
    book.answer_keyed(0, 1, KeyedResponse::Created(first.key.clone()));
    book.answer_keyed(0, 1, KeyedResponse::Existed(first.key.clone()));
    book.answer_keyed(0, 2, KeyedResponse::Refused);
    let ended = book.apply(&first, &cancel());
    book.apply(&ended, &Event::Delete(Delete));
    book.create_keyed("b", 2);
    book.holds();
    book.create_keyed("c", 2);
    book.breaks("an idempotency key names one task");
}

#[test]
fn a_wrong_answer_under_an_idempotency_key_is_caught() {
    let answers = [
        (1, KeyedResponse::Created(key("a"))),
        (1, KeyedResponse::Existed(key("b"))),
        (2, KeyedResponse::Existed(key("a"))),
        (1, KeyedResponse::Refused),
    ];
    for (digest, response) in answers {
        let mut book = Book::new();
        book.create_keyed("a", 1);
        book.answer_keyed(0, 1, KeyedResponse::Created(key("a")));
        book.holds();
        let began = book.lines.len();
        book.answer_keyed(began, digest, response);
        book.breaks("an idempotency key names one task");
    }
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

#[test]
fn a_handler_that_runs_again_after_it_has_returned_is_caught() {
    let (mut book, _, _) = parked();
    let outcome = serde_json::to_string(&longhaul_task::Outcome::Cancelled).unwrap();
    let entry = entry(EntryKind::Return, 7, done(&outcome));
    let recorded = vec![WrittenEntry { key: key("a"), life: 1, epoch: 0, entry, replaces: false }];
    book.note(Fact::Committed(Commit { now: book.now, written: Vec::new(), recorded, ended: Vec::new() }));
    book.holds();
    book.note(Fact::Started { key: key("a"), attempt: 2 });
    book.breaks("what a handler returned before its children is kept");
}

#[test]
fn a_result_of_a_handler_with_renamed_forks_is_caught() {
    // An entry of an earlier attempt in a renamed fork, of the same attempt, and in another fork.
    for (fork, attempt, is_changed) in [("0-0l", 1, true), ("0-0l/1-0r", 1, true), ("0-0l", 2, false), ("", 1, false)] {
        let (mut book, _) = Book::with_task();
        let position = JournalPosition { fork: fork.into(), seq: 0 };
        let recorded = JournalEntry { position, attempt, ..entry(EntryKind::Step, 0, done("1")) };
        book.record_entry(&key("a"), 0, recorded);
        book.note(Fact::Renamed { key: key("a"), attempt: 2, forks: ["0-0l".to_owned(), "0-0r".to_owned()] });
        let outcome = Outcome::Result { body: Json::from_text("1"), is_error: false };
        let output = serde_json::to_string(&outcome).unwrap();
        let returned = JournalEntry { attempt: 2, ..entry(EntryKind::Return, 7, done(&output)) };
        book.record_entry(&key("a"), 0, returned);
        if is_changed {
            book.breaks("a handler that has changed returns no result");
        } else {
            let broken = check(&book.lines).err();
            assert!(broken.is_none_or(|broken| broken.law != "a handler that has changed returns no result"), "{fork}");
        }
    }
}

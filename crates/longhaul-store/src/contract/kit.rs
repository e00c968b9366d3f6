//! Helpers for the tests of the suite.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use longhaul_task::transition::{
    AnswerQuestion, AskQuestion, Cancel, Create, Lose, NewChild, Park, Release, Report, Settle, Spawn,
};
use longhaul_task::{
    Answer, ChildRange, EntryKind, EntryState, Event, JournalEntry, JournalPosition, Json, NodeId, OnCrash, Outcome,
    Owner, Policy, Progress, QuestionKey, QuestionKind, Retention, Task, TaskId, TaskKey, Timestamp, ToolRef,
};

use super::Subject;
use crate::{ClaimRequest, NewTask, Store, StoreError, ToolClaim, Watch};

/// The time that the clock of every store shows at first.
pub const START: Timestamp = Timestamp::from_ms(1_700_000_000_000);

/// The longest time to wait for an event. It is long because its only purpose is that a hanging test fails.
const HANG: Duration = Duration::from_secs(120);

/// An empty store and one handle on it.
pub(super) async fn empty<S: Subject>() -> (S, Arc<dyn Store>) {
    let subject = S::empty(super::CacheSize::Default).await;
    let store = subject.handle().await;
    (subject, store)
}

pub(super) async fn reopened<S: Subject>(subject: S, store: Arc<dyn Store>) -> (S, Arc<dyn Store>) {
    drop(store);
    let subject = subject.reopen().await;
    let store = subject.handle().await;
    (subject, store)
}

pub(super) fn owner(name: &str) -> Owner {
    Owner::parse(name).unwrap()
}

/// The key of the task number `n` of the owner `ada`. A higher number gives a later ID.
pub(super) fn key(n: u32) -> TaskKey {
    key_of("ada", n)
}

pub(super) fn key_of(name: &str, n: u32) -> TaskKey {
    TaskKey { owner: owner(name), id: id(n) }
}

pub(super) fn id(n: u32) -> TaskId {
    TaskId::mint(START.plus_ms(n.into()), [7; 16])
}

pub(super) fn node(n: u8) -> NodeId {
    NodeId::mint([n; 16])
}

pub(super) fn tool() -> ToolRef {
    ToolRef::new("generate_report", "1")
}

pub(super) fn json(text: &str) -> Json {
    Json::from_text(text)
}

/// A new task for the queue, kept for an hour.
pub(super) fn queued(key: TaskKey) -> NewTask {
    let input = json(&format!("{{\"of\":\"{}\"}}", key.id));
    let create = Create {
        key,
        tool: tool(),
        origin: "contract".into(),
        policy: Policy::default(),
        retention: Retention::FromCreation(3_600_000),
        claimed_by: None,
        first_fence: 0,
    };
    NewTask { create, input, idempotency: None }
}

/// A new task that node 1 claims in the same commit.
pub(super) fn claimed(key: TaskKey) -> NewTask {
    let mut new = queued(key);
    new.create.claimed_by = Some(node(1));
    new
}

/// A new task of a tool that resumes, claimed by node 1.
pub(super) fn resuming(key: TaskKey) -> NewTask {
    let mut new = claimed(key);
    new.create.policy.on_crash = OnCrash::Resume;
    new
}

pub(super) async fn create(store: &dyn Store, new: NewTask) -> Arc<Task> {
    store.create(new).await.unwrap().task
}

pub(super) async fn apply(store: &dyn Store, key: &TaskKey, event: Event) -> Arc<Task> {
    store.apply(key, event).await.unwrap().task
}

pub(super) async fn read(store: &dyn Store, key: &TaskKey) -> Arc<Task> {
    store.read(key).await.unwrap().task
}

/// Claims tasks of the suite's tool for a node.
pub(super) async fn claim(store: &dyn Store, node: NodeId, limit: usize) -> Vec<Arc<Task>> {
    store.claim(claim_request(node, tool(), limit)).await.unwrap().into_iter().map(|claimed| claimed.task).collect()
}

pub(super) fn claim_request(node: NodeId, tool: ToolRef, limit: usize) -> ClaimRequest {
    ClaimRequest { node, tools: vec![ToolClaim::new(tool, limit)] }
}

/// The time at which the next task of the suite's tool may be claimed.
pub(super) async fn next_queued(store: &dyn Store) -> Option<Timestamp> {
    store.next_queued(&[tool()]).await.unwrap()
}

pub(super) async fn due_keys(store: &dyn Store) -> Vec<TaskKey> {
    store.due(10).await.unwrap().tasks.iter().map(|task| task.key.clone()).collect()
}

/// A lease that does not end during a test. A store that is not shared needs none.
pub(super) fn lasting_lease(store: &dyn Store) -> Option<u64> {
    store.is_shared().then_some(365 * 24 * 3_600_000)
}

pub(super) fn answer(body: &str) -> Outcome {
    Outcome::Result { body: json(body), is_error: false }
}

pub(super) fn settle(fence: u64, body: &str) -> Event {
    Event::Settle(Settle { fence, outcome: answer(body), entries: Vec::new() })
}

pub(super) fn cancel() -> Event {
    Event::Cancel(Cancel::default())
}

pub(super) fn report(fence: u64, message: &str) -> Event {
    Event::Report(Report { fence, message: message.into() })
}

pub(super) fn park(fence: u64, wait_ms: Option<u64>) -> Event {
    Event::Park(Park { fence, wait_ms, ..Park::default() })
}

/// Parks a task that waits for the children from `first` to `last`.
pub(super) fn park_for(fence: u64, first: u32, last: u32) -> Event {
    Event::Park(Park { fence, wait_ms: None, children: vec![ChildRange { first, last }], ..Park::default() })
}

/// Parks a task that waits for an answer.
pub(super) fn park_for_answer(fence: u64, question: &QuestionKey) -> Event {
    Event::Park(Park { fence, wait_ms: None, questions: vec![question.clone()], ..Park::default() })
}

pub(super) fn given(key: &QuestionKey, body: &str) -> Event {
    Event::Answer(AnswerQuestion { key: key.clone(), answer: Answer::Given(json(body)) })
}

pub(super) fn lose(node: NodeId, fence: u64) -> Event {
    Event::Lose(Lose { node, fence, is_stop: false })
}

pub(super) fn release(fence: u64, wait_ms: u64) -> Event {
    Event::Release(Release { fence, wait_ms, reason: "the disk was full".into() })
}

pub(super) fn ask(fence: u64, seq: u32) -> Event {
    Event::Ask(AskQuestion {
        fence,
        label: "approve".into(),
        kind: QuestionKind::Elicitation,
        params: json("{\"message\":\"Go on, \\\"now\\\"?\"}"),
        position: position("", seq),
        digest: 7,
        time_limit: None,
    })
}

/// A question that is closed after this many milliseconds.
pub(super) fn ask_within(fence: u64, limit_ms: u64) -> Event {
    let Event::Ask(question) = ask(fence, 0) else { unreachable!() };
    let time_limit = Some((limit_ms, Answer::NotGiven("too late".into())));
    Event::Ask(AskQuestion { time_limit, ..question })
}

pub(super) fn spawn(fence: u64, child: NewTask) -> Event {
    spawn_all(fence, [child])
}

pub(super) fn spawn_all(fence: u64, children: impl IntoIterator<Item = NewTask>) -> Event {
    let children = children.into_iter().map(|child| NewChild { create: child.create, input: child.input }).collect();
    Event::Spawn(Box::new(Spawn { fence, children, entries: Vec::new() }))
}

pub(super) fn position(fork: &str, seq: u32) -> JournalPosition {
    JournalPosition { fork: fork.into(), seq }
}

/// A step that is done.
pub(super) fn step(fork: &str, seq: u32, output: &str) -> JournalEntry {
    let state = EntryState::Done(json(output));
    JournalEntry::new(position(fork, seq), EntryKind::Step, "step".into(), u64::MAX, state)
}

/// The entry as the attempt with this number writes it at the start.
pub(super) fn written(entry: JournalEntry, attempt: u32) -> JournalEntry {
    JournalEntry { attempt, at: START, ..entry }
}

/// Records one entry of the task.
pub(super) async fn record(
    store: &dyn Store,
    key: &TaskKey,
    fence: u64,
    entry: JournalEntry,
) -> Result<(), StoreError> {
    store.record(key, fence, vec![entry]).await
}

pub(super) fn progress(done: f64) -> Progress {
    Progress { done, total: Some(10.0), message: Some("counting".into()), at: START }
}

/// The outputs of concurrent calls.
pub(super) async fn all<F>(calls: impl IntoIterator<Item = F>) -> Vec<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    let tasks: Vec<_> = calls.into_iter().map(tokio::spawn).collect();
    let mut outputs = Vec::with_capacity(tasks.len());
    for task in tasks {
        outputs.push(task.await.unwrap());
    }
    outputs
}

/// Waits for an event, and panics if it does not come.
pub(super) async fn wait_for<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(HANG, future).await.unwrap_or_else(|_| panic!("this did not happen: {what}"))
}

/// Whether the watch reports a change without waiting.
pub(super) fn has_changed(watch: &mut Watch) -> bool {
    let changed = pin!(watch.changed());
    matches!(changed.poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(()))
}

/// The reason of the refusal. Panics if the call was not refused.
pub(super) fn refused<T>(result: Result<T, StoreError>) -> longhaul_task::TransitionError {
    match result {
        Err(StoreError::Refused(refused)) => refused,
        Err(error) => panic!("expected a refusal, got the error: {error}"),
        Ok(_) => panic!("expected a refusal, but the call succeeded"),
    }
}

pub(super) fn succeeded<T>(results: &[Result<T, StoreError>]) -> usize {
    results.iter().filter(|result| result.is_ok()).count()
}

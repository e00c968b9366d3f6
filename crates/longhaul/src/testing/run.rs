//! One run of a tool.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use longhaul_engine::{Activity, HistoryEvent, NewCall, history_events};
use longhaul_store::ManualClock;
use longhaul_store::embedded::Reader as _;
use longhaul_store::memory::{MemoryDisk, MemoryReader};
use longhaul_task::{Answer, JournalEntry, Json, Owner, Question, QuestionKind, Task, TaskKey, Timestamp};
use serde_json::{Value, json};

use super::RunSetup;
use super::process::Process;
use crate::TaskResult;

/// The time at which every run begins, so that a run can be repeated.
const START: Timestamp = Timestamp::from_ms(1_700_000_000_000);

/// How long to wait before the engine is asked again whether it still works.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// A run of a tool, in memory. [`run`](super::run) makes one.
///
/// All functions wait for what they need, and panic if it cannot happen: for example if the handler waits for an answer that the
/// test has not given.
pub struct Run {
    pub(super) setup: Arc<RunSetup>,
    disk: MemoryDisk,
    clock: ManualClock,
    process: Option<Process>,
    crash_after: Option<usize>,
    task: Option<TaskKey>,
    /// The journal entries that earlier processes have written.
    written: Vec<(TaskKey, JournalEntry)>,
    answers: Vec<GivenAnswer>,
}

/// An answer of the test, to be given again when the run is repeated.
#[derive(Debug, Clone)]
struct GivenAnswer {
    /// The task that asked: the ordinal of the child, the ordinal of its child, and so on. Empty for the root.
    path: Vec<usize>,
    label: String,
    body: Json,
}

/// An open question of a task of the run.
struct FoundQuestion {
    path: Vec<usize>,
    task: TaskKey,
    question: Question,
}

/// A run that waits for something that cannot happen.
#[derive(Debug)]
pub(super) struct StuckRun {
    awaited: String,
    questions: Vec<String>,
}

impl Run {
    pub(super) fn new(setup: Arc<RunSetup>) -> Self {
        Self {
            setup,
            disk: MemoryDisk::default(),
            clock: ManualClock::at(START),
            process: None,
            crash_after: None,
            task: None,
            written: Vec::new(),
            answers: Vec::new(),
        }
    }

    /// Kills the process when this many journal entries have been written, counted from the start of the run. Another process
    /// then goes on. The entries of subtasks count, too; so do each failed try of a step and each answer.
    /// [`entries`](Self::entries) lists them.
    ///
    /// Call this before the run begins, or while it waits for an answer.
    ///
    /// # Panics
    ///
    /// If this many entries have been written already.
    pub fn crash_after(&mut self, entries: usize) -> &mut Self {
        let written = self.journal_writes().len();
        assert!(entries > written, "the run has {written} journal entries already, so it cannot crash after {entries}");
        self.crash_after = Some(entries);
        self.set_crash_trigger();
        self
    }

    /// Begins the run, if it has not begun, and does not wait for anything.
    pub async fn start(&mut self) {
        self.started().await;
    }

    /// Kills the process now. Another one then goes on.
    pub async fn crash(&mut self) {
        self.started().await;
        self.end_process().await;
    }

    /// Waits until a task of the run, or one of its subtasks, asks the question with this label, and answers it. The answer is
    ///
    /// - for a [`Form`](crate::Form): the fields;
    /// - for [`Sampling`](crate::Sampling): the text of the model, or the whole result as an object;
    /// - for [`Roots`](crate::Roots): the array of roots.
    ///
    /// # Panics
    ///
    /// If the question is not asked, or the answer does not fit it.
    pub async fn answer(&mut self, label: &str, answer: impl Into<Value>) {
        let answer = answer.into();
        self.give_answer(label, None, |question| answer_body(question, answer))
            .await
            .unwrap_or_else(|stuck| panic!("{stuck}"));
    }

    /// Like [`answer`](Self::answer), for a user who says no to a form.
    pub async fn decline(&mut self, label: &str) {
        let body = |_: &Question| json!({ "action": "decline" });
        self.give_answer(label, None, body).await.unwrap_or_else(|stuck| panic!("{stuck}"));
    }

    /// Like [`answer`](Self::answer), for a user who closes a form without an answer.
    pub async fn dismiss(&mut self, label: &str) {
        let body = |_: &Question| json!({ "action": "cancel" });
        self.give_answer(label, None, body).await.unwrap_or_else(|stuck| panic!("{stuck}"));
    }

    /// Waits until the question with this label is asked, and returns the parameters of the request to the client, for
    /// example its `message`.
    pub async fn question(&mut self, label: &str) -> Value {
        let asked = self.find_question(label, None).await.unwrap_or_else(|stuck| panic!("{stuck}"));
        serde_json::from_str(asked.question.params.as_str()).unwrap_or_default()
    }

    /// Cancels the task and its subtasks. To cancel it while it waits for an answer, first wait for its
    /// [`question`](Self::question).
    pub async fn cancel(&mut self) {
        loop {
            let key = self.started().await;
            let cancelled = self.process_ref().call(|engine| async move { engine.cancel(&key, None).await }).await;
            match cancelled {
                Some(Ok(_)) => return,
                _ if self.has_crashed() => {}
                Some(Err(error)) => panic!("the run cannot be cancelled: {error}"),
                None => panic!("the process of the run has ended"),
            }
        }
    }

    /// Waits for the end of the task.
    pub async fn result(&mut self) -> TaskResult {
        self.try_result().await.unwrap_or_else(|stuck| panic!("{stuck}"))
    }

    /// What happened to the task so far, oldest first: its attempts, what they recorded, its end. It is what
    /// `longhaul task history` shows.
    pub fn history(&self) -> Vec<HistoryEvent> {
        let reader = self.disk.reader();
        let Some(task) = self.task.as_ref().and_then(|key| read(&reader, key)) else { return Vec::new() };
        history_events(&task, &reader.history(&task.key).unwrap_or_default())
    }

    /// The journal entries of all tasks of the run in the order in which they were written, in words: `step "build"`.
    pub fn entries(&self) -> Vec<String> {
        self.journal_writes().iter().map(|(_, entry)| describe_entry(entry)).collect()
    }

    pub(super) async fn try_result(&mut self) -> Result<TaskResult, StuckRun> {
        let find = |reader: &MemoryReader, task: &TaskKey, _| read(reader, task)?.phase.outcome().cloned();
        let ended = self.until("its end", find).await?;
        Ok(TaskResult::new(&self.setup.tool, ended))
    }

    /// Gives the answers of another run, and waits for the end.
    pub(super) async fn repeat_all(&mut self, other: &Self) -> Result<TaskResult, StuckRun> {
        for given in &other.answers {
            let body = serde_json::from_str(given.body.as_str()).unwrap_or_default();
            self.give_answer(&given.label, Some(&given.path), |_| body).await?;
        }
        self.try_result().await
    }

    async fn give_answer(
        &mut self,
        label: &str,
        path: Option<&[usize]>,
        body: impl FnOnce(&Question) -> Value,
    ) -> Result<(), StuckRun> {
        let FoundQuestion { path, task, question } = self.find_question(label, path).await?;
        let body = Json::from_text(body(&question).to_string());
        self.answers.push(GivenAnswer { path, label: label.to_owned(), body: body.clone() });
        loop {
            self.started().await;
            let is_open = read(&self.disk.reader(), &task)
                .is_some_and(|task| task.phase.questions().is_some_and(|open| open.find(&question.key).is_some()));
            if !is_open {
                // The answer was stored, and the process died before it could confirm it.
                return Ok(());
            }
            let (task, key, answer) = (task.clone(), question.key.clone(), Answer::Given(body.clone()));
            let answered = self.process_ref().call(|engine| async move { engine.answer(&task, key, answer).await });
            match answered.await {
                Some(Ok(_)) => return Ok(()),
                _ if self.has_crashed() => {}
                Some(Err(error)) => panic!("{error}"),
                None => panic!("the process of the run has ended"),
            }
        }
    }

    async fn find_question(&mut self, label: &str, path: Option<&[usize]>) -> Result<FoundQuestion, StuckRun> {
        let is_it = |found: &FoundQuestion| {
            found.question.key.label() == label && path.is_none_or(|path| found.path.as_slice() == path)
        };
        let awaited = format!("the question {label:?}");
        self.until(&awaited, |reader, task, works| {
            // If several subtasks ask, the first of them is answered, not the fastest. So all of them must have asked before.
            let may_be_answered = |found: &FoundQuestion| found.path.is_empty() || !works;
            questions(reader, task).into_iter().find(|found| is_it(found) && may_be_answered(found))
        })
        .await
    }

    /// Calls `find` with the store until it returns something. Its last argument says whether a handler works. When every
    /// handler waits, the clock jumps to the next time that one of them waits for.
    async fn until<T>(
        &mut self,
        awaited: &str,
        find: impl Fn(&MemoryReader, &TaskKey, bool) -> Option<T>,
    ) -> Result<T, StuckRun> {
        loop {
            let task = self.started().await;
            // Asked before the store is read: if everything waits, that remains so until this function changes something.
            let activity = self.process_ref().call(|engine| async move { engine.activity().await }).await;
            let reader = self.disk.reader();
            let works = !matches!(activity, Some(Ok(Activity::Waits { .. })));
            if let Some(found) = find(&reader, &task, works) {
                return Ok(found);
            }
            match activity {
                _ if self.has_crashed() => {}
                Some(Ok(Activity::Waits { until: Some(until) })) => {
                    self.clock.set(until);
                    self.process_ref().call(|engine| async move { engine.clock_moved() }).await;
                }
                Some(Ok(Activity::Waits { until: None })) => {
                    let open = questions(&reader, &task);
                    let questions = open.iter().map(|found| found.question.key.label().to_owned()).collect();
                    return Err(StuckRun { awaited: awaited.to_owned(), questions });
                }
                _ => {
                    self.process_ref().call(|_| tokio::time::sleep(LOOK_AGAIN)).await;
                }
            }
        }
    }

    /// Starts the process if there is none, and the task if it does not exist. Returns the task.
    async fn started(&mut self) -> TaskKey {
        if self.has_crashed() {
            self.end_process().await;
        }
        if self.process.is_none() {
            self.process = Some(Process::start(&self.disk, self.clock.clone(), self.setup.tools.clone()).await);
            self.set_crash_trigger();
        }
        if let Some(task) = &self.task {
            return task.clone();
        }
        let call = NewCall {
            owner: Owner::parse("test").expect("this is a name"),
            tool: Arc::clone(&self.setup.tool),
            input: self.setup.input.clone(),
            origin: "test".into(),
            id: None,
            retention: None,
            idempotency: None,
        };
        let created = self.process_ref().call(|engine| async move { engine.create(call).await }).await;
        let task =
            created.expect("the process has just begun").unwrap_or_else(|error| panic!("{error}")).task.key.clone();
        self.task.insert(task).clone()
    }

    fn process_ref(&self) -> &Process {
        self.process.as_ref().expect("it was started before")
    }

    fn has_crashed(&self) -> bool {
        self.process.as_ref().is_some_and(|process| process.crash_trigger.has_crashed())
    }

    async fn end_process(&mut self) {
        if let Some(process) = self.process.take() {
            let crash_trigger = process.kill().await;
            self.written.extend(crash_trigger.written());
            self.crash_after = self.crash_after.filter(|after| *after > self.written.len());
        }
    }

    fn set_crash_trigger(&self) {
        if let (Some(process), Some(after)) = (&self.process, self.crash_after) {
            process.crash_trigger.crash_after(after - self.written.len());
        }
    }

    /// The journal entries of all processes of the run, in the order in which they were written.
    pub(super) fn journal_writes(&self) -> Vec<(TaskKey, JournalEntry)> {
        let now = self.process.as_ref().map(|process| process.crash_trigger.written());
        self.written.iter().cloned().chain(now.into_iter().flatten()).collect()
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("tool", &self.setup.tool).field("task", &self.task).finish_non_exhaustive()
    }
}

impl fmt::Display for StuckRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { awaited, questions } = self;
        match questions.as_slice() {
            [] => {
                write!(f, "the run does not reach {awaited}: it has ended, or waits for something that cannot happen")
            }
            labels => write!(f, "the run does not reach {awaited}: it waits for the answer to {}", quoted(labels)),
        }
    }
}

fn quoted(labels: &[String]) -> String {
    labels.iter().map(|label| format!("{label:?}")).collect::<Vec<_>>().join(", ")
}

/// An entry as [`Run::entries`] lists it.
pub(super) fn describe_entry(entry: &JournalEntry) -> String {
    use longhaul_task::{EntryKind, EntryState};
    let state = match (&entry.state, entry.kind) {
        (EntryState::Open, _) => ", asked",
        (EntryState::Retrying(_), _) => ", failed and to be tried again",
        (EntryState::Done(_), EntryKind::Question) => ", answered",
        (EntryState::Failed(_), EntryKind::Question) => ", not answered",
        (EntryState::Failed(_), _) => ", failed",
        (EntryState::TooLarge { .. }, _) => ", too large",
        (EntryState::Done(_), _) => "",
    };
    format!("{}{state}", entry.describe())
}

fn read(reader: &MemoryReader, key: &TaskKey) -> Option<Arc<Task>> {
    reader.read(key).ok().flatten().map(|found| found.task)
}

/// The open questions of a task and its subtasks.
fn questions(reader: &MemoryReader, root: &TaskKey) -> Vec<FoundQuestion> {
    let mut found = Vec::new();
    let mut family = vec![(Vec::new(), root.clone())];
    while let Some((path, key)) = family.pop() {
        let Some(task) = read(reader, &key) else { continue };
        found.extend(task.phase.questions().into_iter().flatten().map(|question| FoundQuestion {
            path: path.clone(),
            task: key.clone(),
            question: question.clone(),
        }));
        let children = reader.children(&key).unwrap_or_default().into_iter().enumerate();
        family.extend(children.rev().map(|(index, id)| {
            let path = path.iter().copied().chain([index]).collect();
            (path, TaskKey { owner: key.owner.clone(), id })
        }));
    }
    found
}

/// The body of the answer as a client would send it.
fn answer_body(question: &Question, answer: Value) -> Value {
    let params: Value = serde_json::from_str(question.params.as_str()).unwrap_or_default();
    match question.kind {
        QuestionKind::Elicitation if params["mode"] == "url" => json!({ "action": "accept" }),
        QuestionKind::Elicitation => json!({ "action": "accept", "content": answer }),
        QuestionKind::Sampling if answer.is_string() => {
            let content = json!({ "type": "text", "text": answer });
            json!({ "role": "assistant", "model": "test", "content": content, "stopReason": "endTurn" })
        }
        QuestionKind::Roots if answer.is_array() => json!({ "roots": answer }),
        QuestionKind::Sampling | QuestionKind::Roots => answer,
    }
}

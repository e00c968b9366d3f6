//! The connection of a context to its task.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use longhaul_store::StoreError;
use longhaul_task::transition::{AskQuestion, Park, Report};
use longhaul_task::{
    Answer, ChildRange, EntryKind, EntryState, Event, JournalEntry, JournalPosition, Progress, QuestionKey, Task,
    TaskId, TaskKey, Timestamp, TransitionError, Wait,
};
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::ctx::HandlerQuestion;
use crate::journal::Journal;
use crate::service::due::SLEEP_MS_MAX;
use crate::shell::EngineInner;
use crate::wait_tracker::{BranchGuard, WaitFor, WaitTracker};
use crate::{CtxError, LogLine, RandomSource, token};

/// The pause before a failed call of the store is repeated. It doubles with each try.
const RETRY_MIN: Duration = Duration::from_millis(100);

/// The longest such pause.
const RETRY_MAX: Duration = Duration::from_secs(5);

/// How long a handler that resumes waits in memory before it is dropped. Dropping it costs two commits and a replay.
pub(crate) const PARK_AFTER: Duration = Duration::from_secs(1);

/// The connection of one attempt to the engine and to its task.
#[derive(Debug)]
pub(crate) struct TaskLink {
    pub(crate) engine: Arc<EngineInner>,
    /// The task when the attempt began.
    pub(crate) task: Arc<Task>,
    pub(crate) journal: Journal,
    /// Held while entries are written, so that their order is kept.
    pub(crate) writing: tokio::sync::Mutex<()>,
    /// Whether a background task writes the entries.
    pub(crate) writes_in_background: AtomicBool,
    /// Held for reading while an event of the handler is applied.
    pub(crate) applying: Arc<tokio::sync::RwLock<()>>,
    /// When the attempt began to run, or when its last answer arrived.
    pub(crate) runs_since: Mutex<Instant>,
    /// The last progress of this attempt.
    pub(crate) last_progress: Mutex<Option<Progress>>,
    pub(crate) stop: CancellationToken,
}

impl TaskLink {
    pub(crate) fn key(&self) -> &TaskKey {
        &self.task.key
    }

    pub(crate) fn fence(&self) -> u64 {
        self.task.fence
    }

    /// Fails if the attempt was told to stop. Every operation of the context checks this, so that the handler learns of it.
    pub(crate) fn ensure_not_cancelled(&self) -> Result<(), CtxError> {
        if self.stop.is_cancelled() { Err(CtxError::Cancelled) } else { Ok(()) }
    }

    /// Calls the store, and repeats the call while the store is full or unavailable: that must not end a task.
    pub(crate) async fn call_store<T, Fut>(&self, mut call: impl FnMut() -> Fut) -> Result<T, CtxError>
    where
        Fut: Future<Output = Result<T, StoreError>>,
    {
        let mut pause = RETRY_MIN;
        loop {
            self.ensure_not_cancelled()?;
            match call().await {
                Err(StoreError::InDoubt(_) | StoreError::Unavailable(_) | StoreError::Full(_)) => {
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(RETRY_MAX);
                }
                done => return Ok(done?),
            }
        }
    }

    /// Applies an event of the handler. After a commit in doubt the event is applied again: twice has the same effect as once.
    pub(crate) async fn apply(&self, event: Event) -> Result<Arc<Task>, CtxError> {
        self.call_store(|| self.apply_to_end(self.key(), event.clone())).await
    }

    /// Applies an event once. This is completed even if the branch that waits for it is dropped, because the engine must
    /// learn of the effects.
    pub(crate) async fn apply_to_end(&self, key: &TaskKey, event: Event) -> Result<Arc<Task>, StoreError> {
        let under_way = Arc::clone(&self.applying).read_owned().await;
        let (engine, key) = (Arc::clone(&self.engine), key.clone());
        let applied = self.engine.tracker.spawn(async move {
            let _under_way = under_way;
            engine.apply(&key, event).await
        });
        applied.await.unwrap_or_else(|_| Err(StoreError::Unavailable("the runtime is shutting down".into())))
    }

    /// Waits until no event of the handler is being applied, not even one of a branch that was dropped.
    pub(crate) async fn wait_until_applied(&self) {
        drop(self.applying.write().await);
    }

    pub(crate) async fn now(&self) -> Result<Timestamp, CtxError> {
        self.call_store(|| self.engine.store.now()).await
    }

    /// Loads what earlier attempts recorded. The first attempt has nothing to load.
    pub(crate) async fn load_journal(&self) -> Result<(), CtxError> {
        if self.journal.resumes() && self.task.attempt > 1 {
            let epoch = self.task.epoch();
            let recorded = self.call_store(|| self.engine.store.journal(self.key(), epoch)).await?;
            // The journal of a task that was deleted meanwhile is empty, and its steps must not be done again.
            self.read().await?;
            self.journal.load(recorded);
        }
        Ok(())
    }

    /// The entry that an earlier attempt recorded at this position. All entries of this attempt are written when this returns.
    pub(crate) async fn replay(
        &self,
        position: &JournalPosition,
        kind: EntryKind,
        name: &str,
        digest: u64,
    ) -> Result<Option<JournalEntry>, CtxError> {
        self.ensure_not_cancelled()?;
        self.write_entries().await?;
        self.journal.replay(position, kind, name, digest)
    }

    /// Whether there are entries that are not written yet.
    pub(crate) fn has_unwritten(&self) -> bool {
        self.journal.has_unwritten()
    }

    /// Writes the entries that are not written yet. An entry counts as unwritten until its commit is confirmed: another
    /// branch may be writing it, and that branch may be dropped before it is done.
    pub(crate) async fn write_entries(&self) -> Result<(), CtxError> {
        if !self.journal.has_unwritten() {
            return Ok(());
        }
        let _writing = self.writing.lock().await;
        let entries = self.journal.unwritten();
        if entries.is_empty() {
            return Ok(());
        }
        self.call_store(|| self.engine.store.record(self.key(), self.fence(), entries.clone())).await?;
        self.journal.mark_written(entries.len());
        Ok(())
    }

    pub(crate) async fn ask(&self, asked: HandlerQuestion, branch: &BranchGuard) -> Result<Answer, CtxError> {
        let recorded = self.replay(&asked.position, EntryKind::Question, &asked.label, 0).await?;
        // Subscribe before asking: an answer that comes at once is not missed.
        let mut watch = self.engine.store.watch(self.key());
        let key = match recorded {
            Some(entry) => {
                if entry.digest != asked.digest {
                    let note = format!("attempt {} asked this with another text", self.task.attempt);
                    self.journal.note(entry.clone(), note.into());
                }
                match (answer_in(&entry), entry.question) {
                    (Some(answer), _) => return Ok(answer),
                    (None, Some(key)) => key,
                    (None, None) => return Err(CtxError::BadRecord { cause: "a question has no key".into() }),
                }
            }
            None => self.ask_new(asked).await?,
        };
        {
            let _waits = branch.wait(WaitFor::Answer(key.clone()));
            while self.is_open(&key).await? {
                tokio::select! {
                    biased;
                    () = self.stop.cancelled() => return Err(CtxError::Cancelled),
                    () = watch.changed() => {}
                }
            }
        }
        self.work_again().await?;
        *self.runs_since.lock() = Instant::now();
        let entry = self.call_store(|| self.engine.store.question(self.key(), &key)).await?;
        let answer = entry.as_ref().and_then(answer_in).ok_or(CtxError::Cancelled)?;
        if let Answer::Given(body) = &answer {
            self.journal.add_answer(body.bytes());
        }
        Ok(answer)
    }

    /// Asks a question that no earlier attempt has asked. Returns its key.
    async fn ask_new(&self, asked: HandlerQuestion) -> Result<QuestionKey, CtxError> {
        let HandlerQuestion { label, kind, params, position, digest, time_limit } = asked;
        let entry =
            JournalEntry::new(position.clone(), EntryKind::Question, Arc::clone(&label), digest, EntryState::Open);
        self.journal.count(&entry)?;
        let event = AskQuestion {
            fence: self.fence(),
            label,
            kind,
            params,
            position: position.clone(),
            digest,
            time_limit: time_limit.map(|(limit, default)| (ms(limit), default)),
        };
        let key = match self.apply(Event::Ask(event)).await {
            Ok(task) => task.phase.questions().and_then(|open| open.at(&position)).map(|open| open.key.clone()),
            // This attempt has asked it, in a commit whose response was lost.
            Err(CtxError::Refused(TransitionError::AskedAlready(key))) => Some(key),
            Err(stop) => return Err(stop),
        };
        key.ok_or(CtxError::Cancelled)
    }

    async fn is_open(&self, key: &QuestionKey) -> Result<bool, CtxError> {
        let task = self.read().await?;
        Ok(task.phase.questions().is_some_and(|open| open.find(key).is_some()))
    }

    /// The task as it is now, if this attempt still holds it.
    pub(crate) async fn read(&self) -> Result<Arc<Task>, CtxError> {
        let task = self.call_store(|| self.engine.store.read(self.key())).await?.task;
        if task.fence != self.fence() || task.is_settled() { Err(CtxError::Cancelled) } else { Ok(task) }
    }

    /// Waits for a worker after a wait has ended. The wait guard must be dropped before, so that the branch counts as working.
    async fn work_again(&self) -> Result<(), CtxError> {
        self.engine.work_again(self.key(), self.fence(), &self.stop).await
    }

    pub(crate) async fn wait_for_time(&self, wait: Wait, branch: &BranchGuard) -> Result<(), CtxError> {
        let began = self.now().await?;
        let mut wait = self.engine.clock_jumps.shorten(wait, began);
        // By this process's own measurement of time, so that it takes no longer when the clock is set back.
        let (since, length) = (Instant::now(), Duration::from_millis(wait.until.ms_since(began)));
        if length.is_zero() {
            return self.ensure_not_cancelled();
        }
        {
            let _waits = branch.wait(WaitFor::Time(wait));
            loop {
                // Created before the clock is read, so that no later change of the clock is missed.
                let clock_moved = self.engine.clock_moved.notified();
                let now = self.now().await?;
                wait = wait.by_clock(now);
                let rest = Duration::from_millis(wait.until.ms_since(now).min(SLEEP_MS_MAX));
                let rest = rest.min(length.saturating_sub(since.elapsed()));
                if rest.is_zero() {
                    break;
                }
                tokio::select! {
                    biased;
                    () = self.stop.cancelled() => return Err(CtxError::Cancelled),
                    () = clock_moved => {}
                    () = tokio::time::sleep(rest) => {}
                }
            }
        }
        self.work_again().await
    }

    /// Waits until these children have ended. They are all open children of the range.
    pub(crate) async fn wait_for_children(
        &self,
        children: &[TaskKey],
        range: ChildRange,
        branch: &BranchGuard,
    ) -> Result<(), CtxError> {
        {
            let _waits = branch.wait(WaitFor::Children(range));
            for child in children {
                let mut watch = self.engine.store.watch(child);
                while !self.call_store(|| self.engine.store.read(child)).await?.task.is_settled() {
                    tokio::select! {
                        biased;
                        () = self.stop.cancelled() => return Err(CtxError::Cancelled),
                        () = watch.changed() => {}
                    }
                }
            }
        }
        self.work_again().await
    }

    /// Parks the task if every branch waits. Returns whether the task is parked, which ends the attempt.
    pub(crate) async fn park(&self, wait_tracker: &WaitTracker) -> Result<bool, CtxError> {
        self.write_entries().await?;
        let Some(waits) = wait_tracker.waits() else { return Ok(false) };
        let now = self.now().await?;
        let mut park = Park { fence: self.fence(), ..Park::default() };
        for wait in waits {
            match wait {
                WaitFor::Answer(key) => park.questions.push(key),
                WaitFor::Children(range) => park.children.push(range),
                WaitFor::Time(wait) => {
                    let rest_ms = self.engine.clock_jumps.shorten(wait, now).until.ms_since(now);
                    park.wait_ms = Some(park.wait_ms.map_or(rest_ms, |wait_ms: u64| wait_ms.min(rest_ms)));
                }
                WaitFor::NextCall => return Ok(false),
            }
        }
        if park.wait_ms.is_some_and(|wait_ms| wait_ms < ms(PARK_AFTER)) {
            return Ok(false);
        }
        match self.apply(Event::Park(park)).await {
            Ok(_) => Ok(true),
            Err(CtxError::Refused(TransitionError::AlreadyHappened | TransitionError::TooManyWaits)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub(crate) async fn progress(
        &self,
        done: f64,
        total: Option<f64>,
        message: Option<Arc<str>>,
    ) -> Result<(), CtxError> {
        self.ensure_not_cancelled()?;
        let at = self.engine.store.now().await?;
        let progress = Progress { done, total, message, at };
        *self.last_progress.lock() = Some(progress.clone());
        Ok(self.engine.store.progress(self.key(), self.fence(), progress).await?)
    }

    pub(crate) fn log(&self, line: &LogLine) {
        if self.ensure_not_cancelled().is_ok() {
            self.engine.listeners.tell(self.key(), line);
        }
    }

    /// Returns an error of the store to the handler, unlike other operations: the handler may go on without the report.
    pub(crate) async fn report(&self, message: &str) -> Result<(), CtxError> {
        self.ensure_not_cancelled()?;
        // First, so that no reader is shown the older message of the progress once the task has the new one.
        let last = self.last_progress.lock().clone();
        if let Some(last) = last {
            self.progress(last.done, last.total, Some(Progress::message(message))).await?;
        }
        let event = Event::Report(Report { fence: self.fence(), message: message.into() });
        loop {
            self.ensure_not_cancelled()?;
            match self.engine.apply(self.key(), event.clone()).await {
                Err(StoreError::InDoubt(_)) => tokio::time::sleep(RETRY_MIN).await,
                done => return Ok(done.map(|_| ())?),
            }
        }
    }

    pub(crate) async fn cancelled(&self) {
        self.stop.cancelled().await;
    }

    pub(crate) fn token(&self) -> String {
        token::of(&self.task.key.owner, self.task.key.id.as_str())
    }

    pub(crate) fn attempt(&self) -> u32 {
        self.task.attempt
    }

    pub(crate) fn id(&self) -> &TaskId {
        &self.task.key.id
    }

    pub(crate) fn random(&self) -> &dyn RandomSource {
        &*self.engine.random
    }
}

/// The answer in the entry of a question. `None` while it is open.
fn answer_in(entry: &JournalEntry) -> Option<Answer> {
    match &entry.state {
        EntryState::Done(body) => Some(Answer::Given(body.clone())),
        EntryState::Failed(reason) => Some(Answer::NotGiven(Arc::clone(reason))),
        EntryState::Open | EntryState::Retrying(_) | EntryState::TooLarge { .. } => None,
    }
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

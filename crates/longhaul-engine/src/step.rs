//! Steps: work whose output is recorded, so that it is not done again after a crash.

use std::future::{Future, IntoFuture};
use std::time::Duration;

use futures_util::future::BoxFuture;
use longhaul_task::{EntryKind, EntryState, JournalEntry, JournalPosition, Json, StepRetry, describe};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use crate::ctx::Link;
use crate::journal::check_name;
use crate::{Ctx, CtxError, Failure, Retry};

/// How much of an error is kept in the note of a step that succeeded later.
const NOTE_CHARS_MAX: usize = 200;

/// A step of a handler; await it to run it. See [`Ctx::step`].
#[must_use = "a step does nothing until it is awaited"]
#[derive(Debug)]
pub struct Step<'a, F> {
    ctx: &'a mut Ctx,
    name: &'a str,
    work: F,
}

/// A step that is tried again when it fails. See [`Step::retry`].
#[must_use = "a step does nothing until it is awaited"]
#[derive(Debug)]
pub struct RetriedStep<'a, F, G = ()> {
    step: Step<'a, F>,
    retry: Retry,
    gives_up: G,
}

/// Decides after which errors a step is not tried again.
pub trait GiveUp<E> {
    /// Whether the step fails for good with this error.
    fn gives_up(&self, error: &E) -> bool;
}

/// Never gives up.
impl<E> GiveUp<E> for () {
    fn gives_up(&self, _error: &E) -> bool {
        false
    }
}

/// Gives up after the errors for which a function returns true. See [`RetriedStep::give_up_if`].
#[derive(Debug, Clone, Copy)]
pub struct GiveUpIf<P>(P);

impl<E, P: Fn(&E) -> bool> GiveUp<E> for GiveUpIf<P> {
    fn gives_up(&self, error: &E) -> bool {
        (self.0)(error)
    }
}

impl Ctx {
    /// Does some work once. The output is recorded in the task's journal before the next operation begins. After a crash, a
    /// tool with `on_crash = resume` gets the recorded output and does not do the work again. A failure is recorded, too.
    ///
    /// ```no_run
    /// # use longhaul_engine::{Ctx, Failure};
    /// # async fn find(topic: &str) -> Result<Vec<String>, std::io::Error> { Ok(vec![topic.into()]) }
    /// # async fn handler(mut ctx: Ctx, topic: String) -> Result<(), Failure> {
    /// let sources: Vec<String> = ctx.step("find sources", || find(&topic)).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A crash between the work and its record means that the work is done again: give the outside world the
    /// [token](Ctx::token) of the step if that matters. The name must be the same in every attempt.
    pub fn step<'a, F>(&'a mut self, name: &'a str, work: F) -> Step<'a, F> {
        Step { ctx: self, name, work }
    }

    /// A text that identifies the next operation of this context: the same in every attempt and in every try of a step, and
    /// different for every other operation of every task and call. Pass it to services that accept an idempotency key. It
    /// does not reveal the task's ID.
    pub fn token(&self) -> String {
        let origin = match &self.link {
            Link::Task(link) => link.token(),
            Link::Call(link) => link.token(),
        };
        format!("{origin}/{}{}{}", self.path, if self.path.is_empty() { "" } else { "/" }, self.seq)
    }
}

impl<'a, F> Step<'a, F> {
    /// Tries the work again when it fails. The waits between the tries survive a restart of the server. An error that is
    /// [permanent](Failure::permanent) ends the step at once.
    pub fn retry(self, retry: Retry) -> RetriedStep<'a, F> {
        RetriedStep { step: self, retry, gives_up: () }
    }
}

impl<'a, F> RetriedStep<'a, F> {
    /// Does not try again after the errors for which `gives_up` is true.
    pub fn give_up_if<E, P: Fn(&E) -> bool>(self, gives_up: P) -> RetriedStep<'a, F, GiveUpIf<P>> {
        RetriedStep { step: self.step, retry: self.retry, gives_up: GiveUpIf(gives_up) }
    }
}

impl<'a, F, Fut, T, E> IntoFuture for Step<'a, F>
where
    F: FnOnce() -> Fut + Send + 'a,
    Fut: Future<Output = Result<T, E>> + Send + 'a,
    T: Serialize + DeserializeOwned + Send + 'a,
    E: Into<Failure> + Send + 'a,
{
    type Output = Result<T, CtxError>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let Self { ctx, name, work } = self;
            let recorded = match ctx.begin_step(name).await? {
                StepLookup::Ended(end) => return read_end(end),
                StepLookup::Unfinished(recorded) => recorded,
            };
            let since = Instant::now();
            let end = work().await.map_err(Into::into);
            ctx.end_step(entry(&recorded.position, name, since.elapsed(), None), end)
        })
    }
}

impl<'a, F, Fut, T, E, G> IntoFuture for RetriedStep<'a, F, G>
where
    F: FnMut() -> Fut + Send + 'a,
    Fut: Future<Output = Result<T, E>> + Send + 'a,
    T: Serialize + DeserializeOwned + Send + 'a,
    E: Into<Failure> + Send + 'a,
    G: GiveUp<E> + Send + 'a,
{
    type Output = Result<T, CtxError>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let Self { step: Step { ctx, name, mut work }, retry, gives_up } = self;
            let StepTries { position, mut failures, retry: mut last_failure } = match ctx.begin_step(name).await? {
                StepLookup::Ended(end) => return read_end(end),
                StepLookup::Unfinished(recorded) => recorded,
            };
            if let Some(waiting) = &last_failure {
                let wait = ctx.by_clock(waiting.wait).await?;
                if wait != waiting.wait {
                    let state = EntryState::Retrying(StepRetry { wait, ..waiting.clone() });
                    ctx.append(JournalEntry { state, ..entry(&position, name, Duration::ZERO, None) })?;
                }
                ctx.wait_for(wait).await?;
            }
            loop {
                let since = Instant::now();
                let tried = work().await;
                let done = entry(&position, name, since.elapsed(), last_failure.as_ref());
                let error = match tried {
                    Ok(value) => return ctx.end_step(done, Ok(value)),
                    Err(error) => error,
                };
                let gives_up = gives_up.gives_up(&error);
                let failure = error.into();
                failures += 1;
                let again = retry.wait_after(failures, ctx.random_source());
                let (Some(pause), false, Failure::Tool(message)) = (again, gives_up, &failure) else {
                    return ctx.end_step::<T>(done, Err(failure));
                };
                let wait = ctx.wait_from_now(pause).await?;
                let retry = StepRetry { failures, wait, error: message.as_str().into() };
                last_failure = Some(retry.clone());
                ctx.append_end(JournalEntry { state: EntryState::Retrying(retry), ..done })?;
                // A crash during the next try must not repeat this one.
                ctx.write_entries().await?;
                ctx.wait_for(wait).await?;
            }
        })
    }
}

/// The recorded end of a step.
enum StepEnd {
    Done(Json),
    Failed { name: std::sync::Arc<str>, message: std::sync::Arc<str> },
    TooLarge(CtxError),
}

/// What the journal has for a step.
enum StepLookup {
    Ended(StepEnd),
    /// Failed tries, or nothing.
    Unfinished(StepTries),
}

/// The tries of a step so far.
struct StepTries {
    position: JournalPosition,
    failures: u32,
    /// The last failure, and the wait before the next try.
    retry: Option<StepRetry>,
}

impl Ctx {
    /// Finds the record of the step. Everything before it is written when this returns, so that a crash during the step
    /// repeats nothing else.
    async fn begin_step(&mut self, name: &str) -> Result<StepLookup, CtxError> {
        check_name(name)?;
        let position = self.next_position()?;
        let Link::Task(link) = &self.link else {
            return Ok(StepLookup::Unfinished(StepTries { position, failures: 0, retry: None }));
        };
        let recorded = link.replay(&position, EntryKind::Step, name, 0).await?;
        if recorded.is_none() {
            link.journal.check_room()?;
        }
        Ok(match recorded.map(|entry| entry.state) {
            Some(EntryState::Done(output)) => StepLookup::Ended(StepEnd::Done(output)),
            Some(EntryState::Failed(message)) => StepLookup::Ended(StepEnd::Failed { name: name.into(), message }),
            Some(EntryState::Retrying(retry)) => {
                StepLookup::Unfinished(StepTries { position, failures: retry.failures, retry: Some(retry) })
            }
            Some(EntryState::TooLarge { bytes, bytes_max }) => {
                StepLookup::Ended(StepEnd::TooLarge(CtxError::StepTooLarge {
                    operation: describe(EntryKind::Step, name),
                    bytes: usize::try_from(bytes).unwrap_or(usize::MAX),
                    bytes_max: usize::try_from(bytes_max).unwrap_or(usize::MAX),
                }))
            }
            Some(EntryState::Open) | None => StepLookup::Unfinished(StepTries { position, failures: 0, retry: None }),
        })
    }

    /// Appends how a try of a step has ended. A step whose output or error is too large is recorded as such, so that a resumed
    /// handler gets the same error and does not do the work again.
    fn append_end(&self, entry: JournalEntry) -> Result<(), CtxError> {
        let checked = match &self.link {
            Link::Task(link) => link.journal.check_size(&entry),
            Link::Call(_) => Ok(()),
        };
        if let Err(CtxError::StepTooLarge { bytes, bytes_max, .. }) = checked {
            let state = EntryState::TooLarge { bytes: bytes as u64, bytes_max: bytes_max as u64 };
            self.append(JournalEntry { state, ..entry })?;
            return checked;
        }
        self.append(entry)
    }

    fn end_step<T: Serialize>(&self, done: JournalEntry, end: Result<T, Failure>) -> Result<T, CtxError> {
        let name = std::sync::Arc::clone(&done.name);
        match end {
            Ok(value) => {
                let output = serde_json::to_string(&value).map_err(|error| CtxError::StepFailed {
                    name,
                    message: format!("its output cannot be written as JSON: {error}").into(),
                    is_final: true,
                })?;
                self.append_end(JournalEntry { state: EntryState::Done(Json::from_text(output)), ..done })?;
                Ok(value)
            }
            // The task was cancelled, or cannot go on. That is not a failure of the step, so it is not recorded.
            Err(Failure::Stop(stop)) => Err(stop),
            Err(failure) => {
                let message: std::sync::Arc<str> = failure.message().into();
                self.append_end(JournalEntry { state: EntryState::Failed(message.clone()), ..done })?;
                let is_recorded = matches!(&self.link, Link::Task(link) if link.journal.resumes());
                let is_final = is_recorded || matches!(failure, Failure::Permanent(_));
                Err(CtxError::StepFailed { name, message, is_final })
            }
        }
    }
}

/// The entry of a try. Its note keeps the failures of the tries before, whose entry it replaces.
fn entry(position: &JournalPosition, name: &str, took: Duration, before: Option<&StepRetry>) -> JournalEntry {
    let entry = JournalEntry::new(position.clone(), EntryKind::Step, name.into(), 0, EntryState::Open);
    let note = before.map(|retry| {
        let times = if retry.failures == 1 { "once".into() } else { format!("{} times", retry.failures) };
        let error: String = retry.error.chars().take(NOTE_CHARS_MAX).collect();
        format!("failed {times} before, last with: {error}").into()
    });
    JournalEntry { took_ms: Some(u64::try_from(took.as_millis()).unwrap_or(u64::MAX)), note, ..entry }
}

fn read_end<T: DeserializeOwned>(end: StepEnd) -> Result<T, CtxError> {
    match end {
        StepEnd::Done(output) => {
            serde_json::from_str(output.as_str()).map_err(|error| CtxError::BadRecord { cause: error.to_string() })
        }
        StepEnd::TooLarge(error) => Err(error),
        StepEnd::Failed { name, message } => Err(CtxError::StepFailed { name, message, is_final: true }),
    }
}

//! Writing the end of an attempt to the store.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use longhaul_store::StoreError;
use longhaul_task::transition::{Park, Release};
use longhaul_task::{
    ChildRange, EntryKind, EntryState, Event, JournalEntry, JournalPosition, Json, Outcome, TaskKey, TransitionError,
};

use crate::core::Input;
use crate::shell::EngineInner;
use crate::{EngineTool, Retry};

/// The wait before the first retry of writing the end of an attempt. It doubles with each retry.
const WRITE_RETRY_MS_MIN: u64 = 50;

/// The longest such wait.
const WRITE_RETRY_MS_MAX: u64 = 5_000;

impl EngineInner {
    /// Writes the end of an attempt, and retries while the store cannot write: until then the outcome exists only in memory.
    pub(crate) async fn write_end(self: &Arc<Self>, key: TaskKey, fence: u64, event: Event) {
        let mut wait_ms = WRITE_RETRY_MS_MIN;
        loop {
            match self.apply(&key, event.clone()).await {
                Ok(_) => break,
                // A write in doubt may have been committed. Then the retry is refused, and the attempt is over either way.
                Err(error @ (StoreError::Full(_) | StoreError::Unavailable(_) | StoreError::InDoubt(_))) => {
                    // At debug level, because each try of each task logs this line. The store logs its failures itself, at a
                    // limited rate.
                    tracing::debug!(task = %key.id, wait_ms, %error, "could not write the end of a task; trying again");
                    self.unwritten.lock().insert(key.clone(), event.clone());
                    tokio::time::sleep(Duration::from_millis(wait_ms)).await;
                    wait_ms = (wait_ms * 2).min(WRITE_RETRY_MS_MAX);
                }
                // A parent settles after its children. Its handler has returned, so it gives its worker back meanwhile.
                Err(StoreError::Refused(TransitionError::ChildrenOpen)) => {
                    tracing::debug!(task = %key.id, "a handler returned before its children; waiting for them");
                    self.step(Input::Idle { key: key.clone(), fence });
                    // Boxed: otherwise the future of every attempt would reserve room for it.
                    let waited = match Box::pin(self.park_returned(&key, &event)).await {
                        Err(StoreError::Refused(TransitionError::NotResumable)) => {
                            Box::pin(self.wait_for_children(&key)).await
                        }
                        // The children have ended meanwhile.
                        Err(StoreError::Refused(TransitionError::AlreadyHappened)) => Ok(()),
                        // The next attempt settles the task, or this one has lost it.
                        Ok(()) | Err(StoreError::Refused(_) | StoreError::NotFound) => break,
                        Err(error) => Err(error),
                    };
                    if waited.is_err() {
                        tokio::time::sleep(Duration::from_millis(WRITE_RETRY_MS_MIN)).await;
                    }
                }
                Err(error) => {
                    tracing::debug!(task = %key.id, %error, "an attempt ended after its task had ended");
                    break;
                }
            }
        }
        self.unwritten.lock().remove(&key);
        self.step(Input::Written { key: key.clone(), fence });
        self.forget(&key, fence);
    }

    /// Stores the outcome of a handler that returned before its children, and parks the task until they have ended. Refused if
    /// the tool does not resume.
    async fn park_returned(self: &Arc<Self>, key: &TaskKey, event: &Event) -> Result<(), StoreError> {
        let Event::Settle(settle) = event else { return Err(TransitionError::NotResumable.into()) };
        let output = serde_json::to_string(&settle.outcome).map_err(|_| TransitionError::NotResumable)?;
        let state = EntryState::Done(Json::from_text(output));
        let returned = JournalEntry::new(JournalPosition::of_return(), EntryKind::Return, "".into(), 0, state);
        if !settle.entries.is_empty() {
            self.store.record(key, settle.fence, settle.entries.clone()).await?;
        }
        let children = vec![ChildRange::ALL];
        let park = Park { fence: settle.fence, children, returned: Some(Box::new(returned)), ..Park::default() };
        self.apply(key, Event::Park(park)).await.map(|_| ())
    }

    /// Puts a task whose handler has failed back into the queue. Returns false if its attempts are used up: then the caller
    /// writes the end of the task.
    pub(crate) async fn release(
        self: &Arc<Self>,
        key: &TaskKey,
        fence: u64,
        tool: &EngineTool,
        outcome: &Outcome,
        entries: &[JournalEntry],
    ) -> bool {
        let mut wait_ms = WRITE_RETRY_MS_MIN;
        loop {
            match self.try_release(key, fence, tool, outcome, entries).await {
                Err(StoreError::Full(_) | StoreError::Unavailable(_) | StoreError::InDoubt(_)) => {
                    tokio::time::sleep(Duration::from_millis(wait_ms)).await;
                    wait_ms = (wait_ms * 2).min(WRITE_RETRY_MS_MAX);
                }
                Err(StoreError::Refused(TransitionError::AttemptsSpent)) => return false,
                // After one of the other errors there is nothing left to write either: an earlier try in doubt was written, or
                // the attempt has lost its task.
                Ok(()) | Err(_) => return true,
            }
        }
    }

    async fn try_release(
        self: &Arc<Self>,
        key: &TaskKey,
        fence: u64,
        tool: &EngineTool,
        outcome: &Outcome,
        entries: &[JournalEntry],
    ) -> Result<(), StoreError> {
        let task = self.store.read(key).await?.task;
        if !task.has_attempts_left() {
            return Err(TransitionError::AttemptsSpent.into());
        }
        if !entries.is_empty() {
            self.store.record(key, fence, entries.to_vec()).await?;
        }
        // The policy decides how the wait grows with each failure. `Retry` is used for its jitter alone.
        let backoff_ms = task.policy.backoff_after_ms(task.failed_attempts.saturating_add(1));
        let retry = Retry::times(u32::MAX).backoff(Duration::from_millis(backoff_ms));
        let wait = retry.wait_after(1, &*self.random).unwrap_or_default();
        let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        let reason = match outcome {
            Outcome::Result { body, .. } => (tool.error_text)(body).into(),
            Outcome::Error(error) => Arc::clone(&error.message),
            Outcome::Cancelled => "cancelled".into(),
        };
        self.apply(key, Event::Release(Release { fence, wait_ms, reason })).await.map(|_| ())
    }

    /// Tries once more to write the ends that the store could not write so far. Returns their tasks, and how many of the ends
    /// are still not written: these are lost when the process ends.
    pub(crate) async fn write_remaining_ends(self: &Arc<Self>) -> (BTreeSet<TaskKey>, usize) {
        let unwritten = self.unwritten.lock().clone();
        let last_try = |(key, event): (&TaskKey, &Event)| {
            let (engine, key, event) = (Arc::clone(self), key.clone(), event.clone());
            async move { engine.apply(&key, event).await }
        };
        let written = join_all(unwritten.iter().map(last_try)).await;
        // If an end is refused, an earlier try was written, or the task has ended in another way.
        let is_lost = |written: &&Result<_, _>| matches!(written, Err(error) if !matches!(error, StoreError::NotFound | StoreError::Refused(_)));
        let lost = written.iter().filter(is_lost).count();
        (unwritten.into_keys().collect(), lost)
    }

    /// Waits until every child has ended. If the task is cancelled meanwhile, its children are too, so the wait ends.
    async fn wait_for_children(&self, key: &TaskKey) -> Result<(), StoreError> {
        for id in self.store.children(key).await? {
            let child = TaskKey { owner: key.owner.clone(), id };
            let mut watch = self.store.watch(&child);
            loop {
                match self.store.read(&child).await {
                    Ok(snapshot) if !snapshot.task.is_settled() => watch.changed().await,
                    Ok(_) | Err(StoreError::NotFound) => break,
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }
}

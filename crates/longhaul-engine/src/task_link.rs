//! A context's way to its task.

use std::sync::Arc;
use std::time::Duration;

use longhaul_store::{CommitResult, StoreError};
use longhaul_task::transition::{AskQuestion, Report};
use longhaul_task::{Event, Json, Phase, Progress, QuestionKey, TaskId, TaskKey, TransitionError};
use tokio_util::sync::CancellationToken;

use crate::ctx::HandlerQuestion;
use crate::gate::ForkGuard;
use crate::shell::EngineInner;
use crate::{CtxError, LogLine, RandomSource};

/// The pause before something is done again that may have been done.
const DOUBT_RETRY: Duration = Duration::from_millis(100);

/// One attempt's connection to the engine.
#[derive(Debug)]
pub(crate) struct TaskLink {
    pub(crate) engine: Arc<EngineInner>,
    pub(crate) key: TaskKey,
    pub(crate) fence: u64,
    pub(crate) attempt: u32,
    pub(crate) epoch: u32,
    pub(crate) stop: CancellationToken,
}

impl TaskLink {
    /// A context operation is where a handler hears that it was cancelled.
    fn go_on(&self) -> Result<(), CtxError> {
        if self.stop.is_cancelled() { Err(CtxError::Cancelled) } else { Ok(()) }
    }

    /// Applies an event of the handler. Applying it twice changes nothing, so in doubt it is applied again.
    async fn apply(&self, event: Event) -> Result<CommitResult, CtxError> {
        loop {
            self.go_on()?;
            match self.engine.apply(&self.key, event.clone()).await {
                Err(StoreError::InDoubt(_)) => tokio::time::sleep(DOUBT_RETRY).await,
                done => return Ok(done?),
            }
        }
    }

    pub(crate) async fn ask(&self, asked: HandlerQuestion, branch: &ForkGuard) -> Result<Json, CtxError> {
        // Subscribe before asking: an answer that comes at once is not missed.
        let mut watch = self.engine.store.watch(&self.key);
        let HandlerQuestion { label, kind, params, position, digest } = asked;
        let event =
            Event::Ask(AskQuestion { fence: self.fence, label, kind, params, position: position.clone(), digest });
        let key = match self.apply(event).await {
            Ok(applied) => {
                applied.task.phase.questions().and_then(|open| open.at(&position)).map(|open| open.key.clone())
            }
            // By the attempt that this one resumes: it may be open, or the answer is on record.
            Err(CtxError::Refused(TransitionError::AskedAlready(key))) => Some(key),
            Err(stop) => return Err(stop),
        };
        let key = key.ok_or(CtxError::Cancelled)?;
        {
            let _waits = branch.wait();
            while self.is_open(&key).await? {
                tokio::select! {
                    biased;
                    () = self.stop.cancelled() => return Err(CtxError::Cancelled),
                    () = watch.changed() => {}
                }
            }
        }
        // It waits for the engine alone now, so it counts as working before it asks for a worker.
        self.engine.work_again(&self.key, self.fence, &self.stop).await?;
        let records = self.engine.store.records(&self.key, self.epoch).await?;
        let answer = records.into_iter().find(|record| record.position == position).and_then(|record| record.output);
        answer.ok_or(CtxError::Cancelled)
    }

    async fn is_open(&self, key: &QuestionKey) -> Result<bool, CtxError> {
        let task = self.engine.store.read(&self.key).await?.task;
        if task.fence != self.fence || task.is_settled() {
            return Err(CtxError::Cancelled);
        }
        Ok(match &task.phase {
            Phase::Waiting { questions, .. } => questions.find(key).is_some(),
            _ => false,
        })
    }

    pub(crate) async fn progress(
        &self,
        done: f64,
        total: Option<f64>,
        message: Option<Arc<str>>,
    ) -> Result<(), CtxError> {
        self.go_on()?;
        let at = self.engine.store.now().await?;
        let progress = Progress { done, total, message, at };
        Ok(self.engine.store.progress(&self.key, self.fence, progress).await?)
    }

    pub(crate) fn log(&self, line: &LogLine) {
        if self.go_on().is_ok() {
            self.engine.listeners.tell(&self.key, line);
        }
    }

    pub(crate) async fn report(&self, message: &str) -> Result<(), CtxError> {
        let event = Event::Report(Report { fence: self.fence, message: message.into() });
        self.apply(event).await.map(|_| ())
    }

    pub(crate) async fn cancelled(&self) {
        self.stop.cancelled().await;
    }

    pub(crate) fn attempt(&self) -> u32 {
        self.attempt
    }

    pub(crate) fn id(&self) -> &TaskId {
        &self.key.id
    }

    pub(crate) fn random(&self) -> &dyn RandomSource {
        &*self.engine.random
    }
}

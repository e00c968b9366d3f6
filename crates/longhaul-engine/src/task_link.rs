//! A context's way to its task.

use std::sync::Arc;

use longhaul_task::transition::{Ask, Report};
use longhaul_task::{Event, Json, Phase, Progress, QuestionKey, TaskId, TaskKey};
use tokio_util::sync::CancellationToken;

use crate::ctx::Asked;
use crate::gate::Branch;
use crate::shell::Shared;
use crate::{Chance, Stop};

/// One attempt's connection to the engine.
#[derive(Debug)]
pub(crate) struct TaskLink {
    pub(crate) engine: Arc<Shared>,
    pub(crate) key: TaskKey,
    pub(crate) fence: u64,
    pub(crate) attempt: u32,
    pub(crate) epoch: u32,
    pub(crate) stop: CancellationToken,
}

impl TaskLink {
    /// A context operation is where a handler hears that it was cancelled.
    fn go_on(&self) -> Result<(), Stop> {
        if self.stop.is_cancelled() { Err(Stop::Cancelled) } else { Ok(()) }
    }

    pub(crate) async fn ask(&self, asked: Asked, branch: &Branch) -> Result<Json, Stop> {
        self.go_on()?;
        // Subscribe before asking: an answer that comes at once is not missed.
        let mut watch = self.engine.store.watch(&self.key);
        let Asked { label, kind, params, place, digest } = asked;
        let event = Event::Ask(Ask { fence: self.fence, label, kind, params, place: place.clone(), digest });
        let applied = self.engine.apply(&self.key, event).await?;
        let questions = applied.task.phase.questions();
        let key = questions.and_then(|open| open.iter().last()).map(|question| question.key.clone());
        let key = key.ok_or(Stop::Cancelled)?;
        {
            let _waits = branch.wait();
            while self.is_open(&key).await? {
                tokio::select! {
                    () = watch.changed() => {}
                    () = self.stop.cancelled() => return Err(Stop::Cancelled),
                }
            }
        }
        // It waits for nobody but the engine now, so it counts as working before it asks for a worker.
        self.engine.work_again(&self.key, self.fence, &self.stop).await?;
        let records = self.engine.store.records(&self.key, self.epoch).await?;
        let answer = records.into_iter().find(|record| record.place == place).and_then(|record| record.output);
        answer.ok_or(Stop::Cancelled)
    }

    async fn is_open(&self, key: &QuestionKey) -> Result<bool, Stop> {
        let task = self.engine.store.read(&self.key).await?.task;
        if task.fence != self.fence || task.is_settled() {
            return Err(Stop::Cancelled);
        }
        Ok(match &task.phase {
            Phase::Waiting { questions, .. } => questions.find(key).is_some(),
            _ => false,
        })
    }

    pub(crate) async fn progress(&self, done: f64, total: Option<f64>, message: Option<Arc<str>>) -> Result<(), Stop> {
        self.go_on()?;
        let at = self.engine.store.now().await?;
        let progress = Progress { done, total, message, at };
        Ok(self.engine.store.progress(&self.key, self.fence, progress).await?)
    }

    pub(crate) async fn report(&self, message: &str) -> Result<(), Stop> {
        self.go_on()?;
        let event = Event::Report(Report { fence: self.fence, message: message.into() });
        self.engine.apply(&self.key, event).await?;
        Ok(())
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

    pub(crate) fn chance(&self) -> &dyn Chance {
        &*self.engine.chance
    }
}

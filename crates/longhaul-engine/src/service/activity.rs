//! Tells whether the engine works or only waits, for tests that move the clock when nothing else can happen.

use std::collections::BTreeMap;
use std::sync::Arc;

use longhaul_store::{ListQuery, StoreError};
use longhaul_task::{ChildRange, Task, TaskKey, Timestamp};

use crate::shell::EngineInner;
use crate::wait_tracker::WaitFor;

/// How many tasks are read at once.
const PAGE: usize = 256;

/// What an engine does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// A handler works, or something is due.
    Works,
    /// Nothing happens before an answer or a cancellation arrives, or before this time.
    Waits { until: Option<Timestamp> },
}

/// Looks at every attempt in memory and every open task in the store. A task works unless everything that it waits for is
/// still missing. Only a commit can change that, and while all handlers wait, only the caller makes commits.
pub(crate) async fn look(engine: &Arc<EngineInner>) -> Result<Activity, StoreError> {
    let Some(attempts) = engine.waits() else { return Ok(Activity::Works) };
    let now = engine.store.now().await?;
    let mut query = ListQuery { owner: None, after: None, limit: PAGE };
    let mut until: Option<Timestamp> = None;
    loop {
        let page = engine.store.list(&query).await?;
        for task in page.tasks.iter().map(|listed| &listed.task).filter(|task| !task.is_settled()) {
            let Some(times) = times(engine, &attempts, task).await? else { return Ok(Activity::Works) };
            if times.iter().any(|time| *time <= now) {
                return Ok(Activity::Works);
            }
            until = times.into_iter().chain(until).min();
        }
        query.after = page.tasks.last().map(|listed| listed.task.key.clone());
        if !page.has_more {
            break;
        }
    }
    let is_unchanged = engine.waits().is_some_and(|after| after == attempts);
    Ok(if is_unchanged { Activity::Waits { until } } else { Activity::Works })
}

/// The times at which a task goes on by itself. `None` if it does something other than wait.
async fn times(
    engine: &EngineInner,
    attempts: &BTreeMap<(TaskKey, u64), Vec<WaitFor>>,
    task: &Task,
) -> Result<Option<Vec<Timestamp>>, StoreError> {
    let questions = task.phase.questions();
    let mut times: Vec<Timestamp> = questions.and_then(longhaul_task::Questions::deadline).into_iter().collect();
    times.extend(task.phase.not_before());
    times.extend(task.phase.wake_condition().and_then(longhaul_task::WakeCondition::wake_at));
    if task.phase.active_attempt().is_none() {
        return Ok(Some(times));
    }
    let Some(waits) = attempts.get(&(task.key.clone(), task.fence)) else { return Ok(None) };
    for wait in waits {
        let is_missing = match wait {
            WaitFor::Time(wait) => {
                times.push(wait.until);
                true
            }
            WaitFor::Answer(key) => questions.is_some_and(|open| open.find(key).is_some()),
            WaitFor::Children(range) => has_open_child(engine, task, *range).await?,
            WaitFor::NextCall => false,
        };
        if !is_missing {
            return Ok(None);
        }
    }
    Ok(Some(times))
}

async fn has_open_child(engine: &EngineInner, task: &Task, range: ChildRange) -> Result<bool, StoreError> {
    for id in engine.store.children(&task.key).await? {
        let key = TaskKey { owner: task.key.owner.clone(), id };
        let child = engine.store.read(&key).await?.task;
        if !child.is_settled() && range.contains(child.family.ordinal) {
            return Ok(true);
        }
    }
    Ok(false)
}

//! The reader of the simulated disk.

use std::collections::BTreeMap;
use std::sync::Arc;

use longhaul_store::embedded::{DiskError, Reader};
use longhaul_store::{HeldAttempt, KeyedTask, ListQuery, Snapshot, TaskCount, TaskHistory, TaskPage};
use longhaul_task::{JournalEntry, Owner, QuestionKey, TaskId, TaskKey, Timestamp, ToolRef};
use parking_lot::Mutex;

use super::{DiskState, SimRow};
use crate::world::World;

/// Reads committed rows.
#[derive(Debug, Clone)]
pub(crate) struct SimReader {
    pub(super) disk: Arc<Mutex<DiskState>>,
    pub(super) world: World,
}

impl Reader for SimReader {
    fn read(&self, key: &TaskKey) -> Result<Option<Snapshot>, DiskError> {
        let found = self.disk.lock().rows.get(key).map(SimRow::snapshot);
        let meets_the_writer = !self.world.is_calm() && self.world.random(|random| random.permille(100));
        if let Some(writer) = self.world.writer().filter(|_| meets_the_writer) {
            // A batch is written between this load and its use, as by the writer's thread in production.
            writer.turn();
        }
        Ok(found)
    }

    fn keyed_task(&self, owner: &Owner, key: &str) -> Result<Option<KeyedTask>, DiskError> {
        Ok(self.disk.lock().rows.values().find_map(|row| row.keyed(owner, key)))
    }

    fn list(&self, of: &ListQuery) -> Result<TaskPage, DiskError> {
        let state = self.disk.lock();
        let matches_owner = |key: &TaskKey| of.owner.as_ref().is_none_or(|owner| key.owner == *owner);
        let past = |key: &TaskKey| of.after.as_ref().is_none_or(|after| key < after);
        let mut rows = state.rows.iter().rev().filter(|(key, _)| matches_owner(key) && past(key));
        let tasks = rows.by_ref().take(of.limit).map(|(_, row)| row.snapshot()).collect();
        Ok(TaskPage { tasks, has_more: rows.next().is_some() })
    }

    fn children(&self, key: &TaskKey) -> Result<Vec<TaskId>, DiskError> {
        let state = self.disk.lock();
        let mut children: Vec<_> = state.rows.values().filter(|row| row.is_child_of(key)).collect();
        children.sort_by_key(|row| row.task.family.ordinal);
        Ok(children.into_iter().map(|row| row.task.key.id.clone()).collect())
    }

    fn asking_child(&self, key: &TaskKey) -> Result<Option<TaskId>, DiskError> {
        let state = self.disk.lock();
        let asks = |row: &&SimRow| row.is_child_of(key) && row.task.phase.questions().is_some();
        let first = state.rows.values().filter(asks).min_by_key(|row| row.task.family.ordinal);
        Ok(first.map(|row| row.task.key.id.clone()))
    }

    fn journal(&self, key: &TaskKey, epoch: u32) -> Result<Vec<JournalEntry>, DiskError> {
        let state = self.disk.lock();
        let all = state.rows.get(key).into_iter().flat_map(|row| &row.journal);
        Ok(all.filter(|((of, _), _)| *of == epoch).map(|(_, entry)| entry.clone()).collect())
    }

    fn question(&self, key: &TaskKey, question: &QuestionKey) -> Result<Option<JournalEntry>, DiskError> {
        let state = self.disk.lock();
        Ok(state.rows.get(key).and_then(|row| row.question(question)).map(|(_, entry)| entry))
    }

    fn history(&self, key: &TaskKey) -> Result<TaskHistory, DiskError> {
        let state = self.disk.lock();
        let Some(row) = state.rows.get(key) else { return Ok(TaskHistory::default()) };
        Ok(TaskHistory { attempts: row.attempts.clone(), entries: row.journal.values().cloned().collect() })
    }

    fn due(&self, now: Timestamp, limit: usize) -> Result<(Vec<TaskKey>, Option<Timestamp>), DiskError> {
        let state = self.disk.lock();
        let mut due: Vec<(Timestamp, &TaskKey)> =
            state.rows.iter().filter_map(|(key, row)| row.task.due_at().map(|at| (at, key))).collect();
        due.sort();
        let keys: Vec<TaskKey> =
            due.iter().take_while(|(at, _)| *at <= now).take(limit).map(|(_, key)| (*key).clone()).collect();
        let next = due.get(keys.len()).map(|(at, _)| *at);
        Ok((keys, next))
    }

    fn began_after(&self, now: Timestamp, limit: usize) -> Result<Vec<TaskKey>, DiskError> {
        let state = self.disk.lock();
        let ahead = state.rows.iter().filter(|(_, row)| row.task.phase.since().is_some_and(|since| since > now));
        Ok(ahead.take(limit).map(|(key, _)| key.clone()).collect())
    }

    fn queued_tools(&self) -> Result<Vec<(ToolRef, Timestamp)>, DiskError> {
        let state = self.disk.lock();
        let mut first: BTreeMap<&ToolRef, Timestamp> = BTreeMap::new();
        for task in state.rows.values().map(|row| &row.task) {
            if let Some(not_before) = task.phase.not_before() {
                let earliest = first.entry(&task.tool).or_insert(not_before);
                *earliest = not_before.min(*earliest);
            }
        }
        Ok(first.into_iter().map(|(tool, not_before)| (tool.clone(), not_before)).collect())
    }

    fn held(&self, after: Option<&TaskKey>, limit: usize) -> Result<Vec<HeldAttempt>, DiskError> {
        let state = self.disk.lock();
        let past = state.rows.iter().filter(|(key, _)| after.is_none_or(|after| *key > after));
        let held = past.filter_map(|(key, row)| {
            let run = row.task.phase.active_attempt()?;
            Some(HeldAttempt { key: key.clone(), node: run.node, fence: row.task.fence })
        });
        Ok(held.take(limit).collect())
    }

    fn count_open_tasks(&self) -> Result<Vec<TaskCount>, DiskError> {
        let state = self.disk.lock();
        let mut counts = BTreeMap::new();
        for task in state.rows.values().map(|row| &row.task).filter(|task| !task.is_settled()) {
            let of = (task.key.owner.clone(), task.tool.clone(), task.phase.name());
            let (tasks, queued) = counts.entry(of).or_insert((0, 0));
            *tasks += 1;
            *queued += u64::from(task.phase.not_before().is_some());
        }
        let count = |((owner, tool, phase), (tasks, queued))| TaskCount { owner, tool, phase, tasks, queued };
        Ok(counts.into_iter().map(count).collect())
    }
}

//! The transactions of the simulated disk.

use std::collections::BTreeMap;
use std::sync::Arc;

use longhaul_store::embedded::{DiskError, Transaction};
use longhaul_store::{IdempotencyKey, KeyedTask};
use longhaul_task::{
    AttemptRecord, ChildRange, JournalEntry, Json, Owner, Progress, QuestionKey, Task, TaskId, TaskKey, Timestamp,
    ToolRef,
};

use super::{SimDisk, SimRow, candidates, power_off};
use crate::ledger::WrittenTask;

/// The open transaction of the writer.
pub(super) struct SimTransaction<'a> {
    pub(super) disk: &'a SimDisk,
}

impl Drop for SimTransaction<'_> {
    fn drop(&mut self) {
        let mut state = self.disk.state.lock();
        // After a crash `done` counts the events of the open transaction as lost.
        if state.dead.is_none() {
            state.uncommitted = None;
        }
    }
}

impl Transaction for SimTransaction<'_> {
    fn commit(self: Box<Self>) -> Result<(), DiskError> {
        let disk = self.disk;
        let calls = disk.state.lock().calls;
        disk.read_mid_batch(|at| at >= calls && at % 2 == 0);
        disk.state.lock().end()?;
        disk.read_mid_batch(|_| true);
        if disk.state.lock().dead.is_some() { Err(power_off()) } else { Ok(()) }
    }

    fn task(&mut self, key: &TaskKey) -> Result<Option<Task>, DiskError> {
        let state = self.disk.call()?;
        Ok(state.row(key).map(|row| (*row.task).clone()))
    }

    fn input(&mut self, key: &TaskKey) -> Result<Option<Json>, DiskError> {
        let state = self.disk.call()?;
        Ok(state.row(key).map(|row| row.input.clone()))
    }

    fn has_open_child(&mut self, key: &TaskKey, range: ChildRange, except: Option<u32>) -> Result<bool, DiskError> {
        let state = self.disk.call()?;
        let open = state.all().filter(|row| !row.task.is_settled() && row.is_child_of(key));
        let mut ordinals = open.map(|row| row.task.family.ordinal).filter(|ordinal| range.contains(*ordinal));
        Ok(ordinals.any(|ordinal| Some(ordinal) != except))
    }

    fn open_descendants(&mut self, key: &TaskKey) -> Result<Vec<Task>, DiskError> {
        let state = self.disk.call()?;
        let mut below: Vec<Task> = Vec::new();
        let mut parents = vec![key.clone()];
        while let Some(parent) = parents.pop() {
            for row in state.all().filter(|row| !row.task.is_settled() && row.is_child_of(&parent)) {
                parents.push(row.task.key.clone());
                below.push((*row.task).clone());
            }
        }
        Ok(below)
    }

    fn queued(&mut self, tool: &ToolRef, owner: &Owner, limit: usize) -> Result<Vec<(Timestamp, TaskId)>, DiskError> {
        let state = self.disk.call()?;
        let mut queued: Vec<(Timestamp, Timestamp, TaskId)> = state
            .queued(tool)
            .filter(|(_, task)| task.key.owner == *owner)
            .map(|(not_before, task)| (not_before, task.created_at, task.key.id.clone()))
            .collect();
        queued.sort();
        Ok(queued.into_iter().take(limit).map(|(not_before, _, id)| (not_before, id)).collect())
    }

    fn queued_owners(&mut self, tool: &ToolRef) -> Result<Vec<(Owner, Timestamp)>, DiskError> {
        let state = self.disk.call()?;
        let mut owners: BTreeMap<Owner, Timestamp> = BTreeMap::new();
        for (not_before, task) in state.queued(tool) {
            let earliest = owners.entry(task.key.owner.clone()).or_insert(not_before);
            *earliest = not_before.min(*earliest);
        }
        Ok(owners.into_iter().collect())
    }

    fn keyed_task(&mut self, owner: &Owner, key: &str) -> Result<Option<KeyedTask>, DiskError> {
        let state = self.disk.call()?;
        Ok(state.all().find_map(|row| row.keyed(owner, key)))
    }

    fn insert(&mut self, task: &Task, input: &Json) -> Result<bool, DiskError> {
        let mut state = self.disk.call()?;
        if state.row(&task.key).is_some() {
            return Ok(false);
        }
        let task = Arc::new(task.clone());
        let event = if task.is_root() { "create" } else { "spawn" };
        let before = state.lives.get(&task.key).copied().unwrap_or(0);
        let open = state.uncommitted()?;
        let here = open.written.iter().filter(|written| written.key == task.key && written.is_birth()).count();
        let life = before + here + 1;
        let row = SimRow {
            task: Arc::clone(&task),
            life,
            input: input.clone(),
            idempotency: None,
            progress: None,
            journal: BTreeMap::new(),
            attempts: Vec::new(),
        };
        open.rows.insert(task.key.clone(), Some(row));
        open.written.push(WrittenTask { event, key: task.key.clone(), after: Some(task), idempotency: None });
        Ok(true)
    }

    fn insert_key(&mut self, task: &TaskKey, key: &IdempotencyKey) -> Result<(), DiskError> {
        let mut state = self.disk.call()?;
        state.change(task, |row| {
            row.idempotency = Some(key.clone());
            None
        })?;
        let born = state.uncommitted()?.written.iter_mut().rfind(|written| written.key == *task);
        born.ok_or_else(|| DiskError::Failed(format!("no row {task:?}")))?.idempotency = Some(key.clone());
        Ok(())
    }

    fn update(&mut self, before: &Task, after: &Task) -> Result<(), DiskError> {
        let mut state = self.disk.call()?;
        let claimed = before.phase.not_before().is_some() && after.phase.active_attempt().is_some();
        let event = if claimed { "claim" } else { state.name(&after.key, candidates(before, after)) };
        let task = Arc::new(after.clone());
        let now = Arc::clone(&task);
        state.change(&after.key, |row| {
            if row.task.attempt != task.attempt {
                row.progress = None;
            }
            row.task = task;
            None
        })?;
        if let Some(open) = &mut state.uncommitted {
            open.written.push(WrittenTask { event, key: after.key.clone(), after: Some(now), idempotency: None });
        }
        Ok(())
    }

    fn delete_family(&mut self, root: &TaskKey) -> Result<Vec<TaskKey>, DiskError> {
        let mut state = self.disk.call()?;
        let event = state.name(root, &["delete", "expire"]);
        let members: Vec<TaskKey> = state
            .all()
            .filter(|row| row.task.key.owner == root.owner && row.task.family.root == root.id)
            .map(|row| row.task.key.clone())
            .collect();
        let open = state.uncommitted()?;
        for key in &members {
            open.rows.insert(key.clone(), None);
            open.written.push(WrittenTask { event, key: key.clone(), after: None, idempotency: None });
        }
        Ok(members)
    }

    fn insert_entry(
        &mut self,
        key: &TaskKey,
        epoch: u32,
        entry: &JournalEntry,
    ) -> Result<Option<JournalEntry>, DiskError> {
        let mut state = self.disk.call()?;
        let existing = state.row(key).and_then(|row| row.journal.get(&(epoch, entry.position.clone()))).cloned();
        if existing.is_none() {
            state.put_entry(key, epoch, entry)?;
        }
        Ok(existing)
    }

    fn replace_entry(&mut self, key: &TaskKey, epoch: u32, entry: &JournalEntry) -> Result<(), DiskError> {
        self.disk.call()?.put_entry(key, epoch, entry)
    }

    fn question(&mut self, key: &TaskKey, question: &QuestionKey) -> Result<Option<(u32, JournalEntry)>, DiskError> {
        Ok(self.disk.call()?.row(key).and_then(|row| row.question(question)))
    }

    fn last_entry_of(&mut self, key: &TaskKey, epoch: u32, attempt: u32) -> Result<Option<Timestamp>, DiskError> {
        let state = self.disk.call()?;
        let journal = state.row(key).into_iter().flat_map(|row| &row.journal);
        let entries = journal.filter(|((of, _), entry)| *of == epoch && entry.attempt == attempt);
        Ok(entries.map(|(_, entry)| entry.at).max())
    }

    fn insert_attempt(&mut self, key: &TaskKey, attempt: &AttemptRecord) -> Result<(), DiskError> {
        let mut state = self.disk.call()?;
        state.change(key, |row| {
            row.attempts.push(attempt.clone());
            None
        })?;
        state.uncommitted()?.ended.push((key.clone(), attempt.clone()));
        Ok(())
    }

    fn write_progress(&mut self, key: &TaskKey, progress: &Progress) -> Result<(), DiskError> {
        let mut state = self.disk.call()?;
        if let Some(mut row) = state.row(key).cloned()
            && let Some(open) = &mut state.uncommitted
        {
            row.progress = Some(Arc::new(progress.clone()));
            open.rows.insert(key.clone(), Some(row));
        }
        Ok(())
    }

    fn secret(&mut self, name: &str, fresh: [u8; 32]) -> Result<[u8; 32], DiskError> {
        let mut state = self.disk.call()?;
        if let Some(stored) = state.secrets.get(name) {
            return Ok(*stored);
        }
        let open = state.uncommitted()?;
        Ok(*open.secrets.entry(name.to_owned()).or_insert(fresh))
    }
}

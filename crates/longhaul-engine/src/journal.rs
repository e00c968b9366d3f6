//! The journal of one attempt: what earlier attempts recorded, and what this one adds.
//!
//! It is loaded once, when the attempt starts. An operation of the handler first looks for the entry at its position. If there
//! is none, the operation does its work and appends an entry.

use std::collections::BTreeMap;
use std::sync::Arc;

use longhaul_task::{
    ENTRY_NAME_BYTES_MAX, EntryKind, EntryState, JournalEntry, JournalPosition, Outcome, TaskId, TransitionError,
    describe,
};
use parking_lot::Mutex;

use crate::{CtxError, ToolLimits};

/// Shared by all branches of one attempt.
#[derive(Debug)]
pub(crate) struct Journal {
    /// Whether a later attempt will read what this one appends. If not, [`append`](Self::append) records nothing; the entries
    /// of questions and subtasks are written with the events that create these.
    resumes: bool,
    entries_max: usize,
    bytes_max: usize,
    entry_bytes_max: usize,
    state: Mutex<JournalState>,
}

#[derive(Debug, Default)]
struct JournalState {
    /// Entries of earlier attempts that this one has not reached yet.
    recorded: BTreeMap<JournalPosition, JournalEntry>,
    /// Entries of this attempt that are not written yet.
    unwritten: Vec<JournalEntry>,
    /// The children that the task has created so far, and those that it is about to create.
    subtasks: Vec<(JournalPosition, TaskId)>,
    /// Entries of earlier attempts and of this one, as the limits count them.
    entry_count: usize,
    /// Their size.
    bytes: usize,
    /// The number of entries that earlier attempts recorded.
    loaded_count: usize,
    /// The forks that this attempt has made, and whether each has ended by itself. One that was dropped has not.
    forks: BTreeMap<Arc<str>, bool>,
    /// The outcome of the handler, if it returned in an earlier attempt.
    returned: Option<JournalEntry>,
    /// The first operation that differs from the entry at its position. The task ends with this error even if the handler
    /// ignores it.
    mismatch: Option<CtxError>,
}

impl Journal {
    pub(crate) fn new(resumes: bool, limits: &ToolLimits) -> Self {
        Self {
            resumes,
            entries_max: limits.journal_entries_max,
            bytes_max: limits.journal_bytes_max,
            entry_bytes_max: limits.step_bytes_max,
            state: Mutex::default(),
        }
    }

    pub(crate) fn resumes(&self) -> bool {
        self.resumes
    }

    /// Sets the entries that earlier attempts recorded.
    pub(crate) fn load(&self, recorded: Vec<JournalEntry>) {
        let mut state = self.state.lock();
        state.entry_count = recorded.len();
        state.loaded_count = recorded.len();
        state.bytes = recorded.iter().map(JournalEntry::bytes).sum();
        state.subtasks = recorded.iter().filter_map(|entry| Some((entry.position.clone(), child_id(entry)?))).collect();
        state.recorded = recorded.into_iter().map(|entry| (entry.position.clone(), entry)).collect();
        state.returned = state.recorded.remove(&JournalPosition::of_return());
    }

    /// The outcome of the handler, if it returned in an earlier attempt, before the children of its task.
    pub(crate) fn returned(&self) -> Option<Result<Outcome, CtxError>> {
        let state = self.state.lock();
        let EntryState::Done(output) = &state.returned.as_ref()?.state else { return None };
        let outcome = serde_json::from_str(output.as_str());
        Some(outcome.map_err(|error| CtxError::BadRecord { cause: error.to_string() }))
    }

    /// Notes that the handler has made a fork.
    pub(crate) fn begin_fork(&self, path: &Arc<str>) {
        let mut state = self.state.lock();
        if state.loaded_count > 0 {
            state.forks.insert(Arc::clone(path), false);
        }
    }

    /// Notes that a fork has ended by itself.
    pub(crate) fn end_fork(&self, path: &str) {
        if let Some(has_ended) = self.state.lock().forks.get_mut(path) {
            *has_ended = true;
        }
    }

    /// Forgets what a fork recorded that has lost a race: the handler will not reach it.
    pub(crate) fn abandon_fork(&self, path: &str) {
        self.state.lock().recorded.retain(|position, _| !position.is_in_fork(path));
    }

    /// Counts an answer towards the size of the journal. Past the limit, the next entry is refused.
    pub(crate) fn add_answer(&self, bytes: usize) {
        self.state.lock().bytes += bytes;
    }

    /// Fails if there is no room for another entry, so that no work is done that cannot be recorded.
    pub(crate) fn check_room(&self) -> Result<(), CtxError> {
        let state = self.state.lock();
        if self.resumes && (state.entry_count >= self.entries_max || state.bytes >= self.bytes_max) {
            return Err(self.full());
        }
        Ok(())
    }

    fn full(&self) -> CtxError {
        CtxError::JournalFull { entries_max: self.entries_max, bytes_max: self.bytes_max }
    }

    /// Takes the entry that an earlier attempt recorded at this position. Fails if the entry is of another operation.
    pub(crate) fn replay(
        &self,
        position: &JournalPosition,
        kind: EntryKind,
        name: &str,
        digest: u64,
    ) -> Result<Option<JournalEntry>, CtxError> {
        let mut state = self.state.lock();
        if let Some(mismatch) = &state.mismatch {
            return Err(mismatch.clone());
        }
        let Some(entry) = state.recorded.remove(position) else { return Ok(None) };
        let same_input = kind != EntryKind::Subtask || entry.digest == digest;
        if entry.kind == kind && &*entry.name == name && same_input {
            return Ok(Some(entry));
        }
        let performed = describe(kind, name);
        let performed = if same_input { performed } else { format!("{performed} with other arguments").into() };
        let mismatch = CtxError::from(TransitionError::HandlerChanged { recorded: entry.describe(), performed });
        state.mismatch = Some(mismatch.clone());
        Err(mismatch)
    }

    /// Whether this attempt has added entries.
    pub(crate) fn has_new_entries(&self) -> bool {
        let state = self.state.lock();
        state.entry_count > state.loaded_count
    }

    /// Appends an entry. It is written with the next operation, or when the handler waits or ends.
    pub(crate) fn append(&self, entry: JournalEntry) -> Result<(), CtxError> {
        if !self.resumes {
            return Ok(());
        }
        self.count(&entry)?;
        let mut state = self.state.lock();
        if let Some(id) = child_id(&entry) {
            state.subtasks.push((entry.position.clone(), id));
        }
        state.unwritten.push(entry);
        Ok(())
    }

    /// Fails if an entry is too large to be recorded.
    pub(crate) fn check_size(&self, entry: &JournalEntry) -> Result<(), CtxError> {
        let (bytes, bytes_max) = (entry.bytes(), self.entry_bytes_max);
        if self.resumes && bytes > bytes_max {
            return Err(CtxError::StepTooLarge { operation: entry.describe(), bytes, bytes_max });
        }
        Ok(())
    }

    /// Counts an entry towards the limits. Fails if it exceeds one of them.
    pub(crate) fn count(&self, entry: &JournalEntry) -> Result<(), CtxError> {
        self.check_size(entry)?;
        let bytes = entry.bytes();
        let mut state = self.state.lock();
        if state.entry_count >= self.entries_max || state.bytes.saturating_add(bytes) > self.bytes_max {
            return Err(self.full());
        }
        state.entry_count += 1;
        state.bytes += bytes;
        Ok(())
    }

    /// Adds a child whose entry is written by the event that creates it.
    pub(crate) fn add_subtask(&self, position: JournalPosition, id: TaskId) {
        self.state.lock().subtasks.push((position, id));
    }

    /// Adds a note for the history to an entry that the resumed handler has not repeated exactly.
    pub(crate) fn note(&self, mut entry: JournalEntry, note: Arc<str>) {
        if self.resumes && entry.note.is_none() {
            entry.note = Some(note);
            self.state.lock().unwritten.push(entry);
        }
    }

    pub(crate) fn has_unwritten(&self) -> bool {
        !self.state.lock().unwritten.is_empty()
    }

    /// The entries that are not written yet. They stay until [`mark_written`](Self::mark_written) removes them.
    pub(crate) fn unwritten(&self) -> Vec<JournalEntry> {
        self.state.lock().unwritten.clone()
    }

    /// Removes the first `count` unwritten entries, whose commit is confirmed.
    pub(crate) fn mark_written(&self, count: usize) {
        let mut state = self.state.lock();
        let count = count.min(state.unwritten.len());
        state.unwritten.drain(..count);
    }

    /// The children that were created in a fork.
    pub(crate) fn subtasks_in(&self, fork: &str) -> Vec<TaskId> {
        let state = self.state.lock();
        state.subtasks.iter().filter(|(position, _)| position.is_in_fork(fork)).map(|(_, id)| id.clone()).collect()
    }

    /// Fails if the handler has changed, or has returned before it reached all entries of earlier attempts. An entry of a fork counts
    /// if the fork was not made although the branch that made it before has ended, or if the fork itself has ended. A fork that was
    /// dropped, because another one has failed, has not reached its entries for that reason.
    pub(crate) fn check_all_reached(&self) -> Result<(), CtxError> {
        let state = self.state.lock();
        if let Some(mismatch) = &state.mismatch {
            return Err(mismatch.clone());
        }
        match state.recorded.values().find(|entry| state.must_reach(&entry.position.fork)) {
            Some(entry) => {
                let (recorded, fork) = (entry.describe(), &entry.position.fork);
                let recorded =
                    if fork.is_empty() { recorded } else { format!("{recorded} in the fork {fork:?}").into() };
                Err(TransitionError::HandlerChanged { recorded, performed: "no operation".into() }.into())
            }
            None => Ok(()),
        }
    }
}

impl JournalState {
    /// Whether a handler that has returned must have reached the entries of this fork.
    fn must_reach(&self, fork: &str) -> bool {
        let ends = fork.match_indices('/').map(|(end, _)| end).chain((!fork.is_empty()).then_some(fork.len()));
        for end in ends {
            match self.forks.get(&fork[..end]) {
                Some(true) => {}
                Some(false) => return false,
                None => return true,
            }
        }
        true
    }
}

/// The ID of the child, if the entry is a subtask. It is the entry's output.
pub(crate) fn child_id(entry: &JournalEntry) -> Option<TaskId> {
    match (&entry.state, entry.kind) {
        (EntryState::Done(output), EntryKind::Subtask) => {
            serde_json::from_str::<&str>(output.as_str()).ok().and_then(|id| TaskId::parse(id).ok())
        }
        _ => None,
    }
}

/// Refuses a name that is empty or too long.
pub(crate) fn check_name(name: &str) -> Result<(), CtxError> {
    if (1..=ENTRY_NAME_BYTES_MAX).contains(&name.len()) { Ok(()) } else { Err(CtxError::BadName) }
}

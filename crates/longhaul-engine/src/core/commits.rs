//! Commits that may give attempts to this node, and what overtook them.

use std::collections::{HashMap, VecDeque};

use longhaul_task::TaskKey;

/// The number of a commit that is under way. The shell hands it back when the commit has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CommitId(u64);

/// The commits that are under way.
#[derive(Debug, Default)]
pub(super) struct Commits {
    /// The number of the newest commit.
    last_number: u64,
    /// One flag per commit, from the oldest one under way to the newest: whether it has ended. The first is never true. While one
    /// commit is stuck, a flag is kept for each later one.
    ended: VecDeque<bool>,
    /// Attempts that were stopped before the commit that began them came back, with the number of the next commit at
    /// that time. Such a stop may also have come late, for an attempt that is over; so it is kept only until every
    /// commit that was under way has come back, and there are never more than can come in that time.
    stopped_early: HashMap<(TaskKey, u64), u64>,
}

impl Commits {
    pub(super) fn begin(&mut self) -> CommitId {
        self.last_number += 1;
        self.ended.push_back(false);
        CommitId(self.last_number)
    }

    /// The number of the oldest commit that is under way; that of the next one, if none is.
    fn oldest(&self) -> u64 {
        self.last_number + 1 - self.ended.len() as u64
    }

    /// It came back, and its attempts have begun.
    pub(super) fn end(&mut self, commit: CommitId) {
        let index = commit.0.checked_sub(self.oldest()).and_then(|index| usize::try_from(index).ok());
        if let Some(ended) = index.and_then(|index| self.ended.get_mut(index)) {
            *ended = true;
        }
        while self.ended.front() == Some(&true) {
            self.ended.pop_front();
        }
        if !self.stopped_early.is_empty() {
            let oldest = self.oldest();
            self.stopped_early.retain(|_, next| oldest < *next);
        }
    }

    /// An attempt that is not known was stopped: perhaps the commit that began it has not come back yet.
    pub(super) fn stopped(&mut self, key: &TaskKey, fence: u64) {
        if !self.ended.is_empty() {
            self.stopped_early.insert((key.clone(), fence), self.last_number + 1);
        }
    }

    /// Whether an attempt that begins now was stopped already.
    pub(super) fn take_stopped(&mut self, key: &TaskKey, fence: u64) -> bool {
        !self.stopped_early.is_empty() && self.stopped_early.remove(&(key.clone(), fence)).is_some()
    }

    /// The last one that was begun.
    pub(super) fn last(&self) -> CommitId {
        CommitId(self.last_number)
    }

    /// Whether this one and all before it have come back.
    pub(super) fn have_ended_up_to(&self, commit: CommitId) -> bool {
        self.oldest() > commit.0
    }

    /// How many stops are kept.
    pub(super) fn stops(&self) -> usize {
        self.stopped_early.len()
    }
}

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    COLLECT_MS_MIN, ChildRange, Phase, Policy, Questions, Retention, TaskId, TaskKey, Timestamp, ToolRef,
    TransitionError, WakeCondition,
};

/// The maximum number of children of a task.
pub const CHILDREN_MAX: u32 = 10_000;

/// The maximum depth of a family. The root has depth 0.
pub const DEPTH_MAX: u16 = 16;

/// The maximum length of a status message, in bytes. A longer message is cut between two characters.
pub const MESSAGE_BYTES_MAX: usize = 1_024;

/// A durable task: everything that its transitions depend on and that a wire generation shows.
///
/// The arguments of the request are stored separately, because only an attempt needs them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    pub key: TaskKey,
    pub family: Family,
    pub tool: ToolRef,
    /// The wire generation that created it. Only `longhaul-wire` interprets this label.
    pub origin: Arc<str>,
    pub policy: Policy,
    pub retention: Retention,
    pub created_at: Timestamp,
    /// The time of its last change. It never decreases, even if the clock does.
    pub updated_at: Timestamp,
    /// Raised by one with every change.
    pub revision: u64,
    /// Raised whenever the right to write moves: by a claim, a cancellation, a lost attempt.
    pub fence: u64,
    /// The number of claims.
    pub attempt: u32,
    /// The number of failed attempts in a row: released, or lost with their node. The tool limits it. An attempt that
    /// ended because its handler sleeps or waits does not count. An attempt of a tool that resumes sets the count to 1 if
    /// it wrote journal entries before it was lost.
    pub failed_attempts: u32,
    /// The number of questions asked so far. The key of the next question contains it.
    pub questions_asked: u32,
    pub message: Option<Arc<str>>,
    pub phase: Phase,
}

/// A task's place among its relatives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Family {
    /// The task itself if it has no parent.
    pub root: TaskId,
    pub parent: Option<TaskId>,
    /// The creation time of the root, from which the retention of the whole family counts.
    pub since: Timestamp,
    /// The distance from the root, which has depth 0.
    pub depth: u16,
    /// The number of children it has created.
    pub children: u32,
    /// Its number among the children of its parent, counted from 0.
    pub ordinal: u32,
}

impl Task {
    pub fn is_settled(&self) -> bool {
        matches!(self.phase, Phase::Settled { .. })
    }

    pub fn is_root(&self) -> bool {
        self.family.parent.is_none()
    }

    /// The ranges of children that the task waits for, if its handler was dropped; empty otherwise.
    pub fn awaited_children(&self) -> &[ChildRange] {
        self.phase.wake_condition().map_or(&[], |condition| &condition.children)
    }

    /// The part of the journal that the current attempt uses. Attempts that resume share one; an attempt that starts
    /// over has its own.
    pub fn epoch(&self) -> u32 {
        if self.resumes() { 0 } else { self.attempt }
    }

    /// The time from which its family may be deleted. `None` unless it is a settled root.
    pub fn expires_at(&self) -> Option<Timestamp> {
        match self.phase {
            Phase::Settled { at, .. } if self.is_root() => self.retention.expires_at(self.created_at, at),
            _ => None,
        }
    }

    /// The time at which it is ended because its handler has run too long or the task has lived too long.
    pub fn deadline(&self) -> Option<Timestamp> {
        let life = self.created_at.plus_ms(self.policy.life_ms_max);
        match self.phase {
            Phase::Settled { .. } => None,
            Phase::Running { run } => Some(life.min(run.since.plus_ms(self.policy.running_ms_max))),
            Phase::Queued { .. } | Phase::Waiting { .. } | Phase::Parked { .. } => Some(life),
        }
    }

    /// Whether it has existed for as long as its tool allows.
    pub fn life_is_over(&self, now: Timestamp) -> bool {
        now >= self.created_at.plus_ms(self.policy.life_ms_max)
    }

    /// The next time at which the sweep must wake, end or delete it, unless it changes before.
    pub fn due_at(&self) -> Option<Timestamp> {
        match self.phase {
            Phase::Settled { .. } => self.expires_at(),
            _ => [
                self.deadline(),
                self.phase.wake_condition().and_then(WakeCondition::wake_at),
                self.phase.questions().and_then(Questions::deadline),
                self.renew_at(),
            ]
            .into_iter()
            .flatten()
            .min(),
        }
    }

    /// The time at which its [TTL](Self::ttl_ms) must be raised if it still works, so that the TTL is never over before.
    pub fn renew_at(&self) -> Option<Timestamp> {
        if self.is_settled() { None } else { self.retention.renew_at(self.family.since, self.updated_at) }
    }

    /// The time for which it is kept, in milliseconds from its creation. A child is kept as long as its family, so its
    /// retention counts from the creation of the root.
    ///
    /// It depends on what is stored and not on the clock: the protocol does not allow that a TTL shrinks, and one that grew
    /// with the clock would shrink when the clock goes back.
    pub fn ttl_ms(&self) -> Option<u64> {
        let since = self.family.since;
        let until = if let Phase::Settled { at, .. } = self.phase {
            self.retention.expires_at(since, at)
        } else {
            let life = self.created_at.plus_ms(self.policy.life_ms_max);
            self.retention.promised_until(since, self.updated_at, life)
        };
        until.map(|at| at.ms_since(self.created_at))
    }

    /// The time for which it is kept after its end, in milliseconds: exact from its end on. Before, the least that it can
    /// be, so that it never shrinks.
    pub fn kept_after_end_ms(&self) -> Option<u64> {
        match (&self.phase, self.retention) {
            (_, Retention::Unlimited) => None,
            (_, Retention::FromEnd(ms)) => Some(ms),
            (Phase::Settled { at, .. }, retention) => {
                retention.expires_at(self.family.since, *at).map(|until| until.ms_since(*at))
            }
            (_, Retention::FromCreation(ms)) => Some(ms.min(COLLECT_MS_MIN)),
        }
    }

    /// Whether another attempt is allowed if the current one fails.
    pub fn has_attempts_left(&self) -> bool {
        self.failed_attempts.saturating_add(1) < self.policy.attempts_max
    }

    /// Whether an attempt continues where the last one stopped, with its journal, its questions and its children.
    pub fn resumes(&self) -> bool {
        self.policy.on_crash == crate::OnCrash::Resume
    }

    /// A copy for the next change: its revision is raised, and its time of change does not decrease.
    pub(crate) fn next_revision(&self, now: Timestamp) -> Self {
        let mut next = self.clone();
        next.revision += 1;
        next.updated_at = now.max(self.updated_at);
        next
    }

    pub(crate) fn ensure_open(&self) -> Result<(), TransitionError> {
        if self.is_settled() { Err(TransitionError::Settled) } else { Ok(()) }
    }

    /// Refuses a write of an attempt that has lost the right to write. Every write of an attempt goes through this
    /// check, including those that change only its journal.
    pub fn check_fence(&self, fence: u64) -> Result<(), TransitionError> {
        self.ensure_open()?;
        if self.fence == fence && self.phase.active_attempt().is_some() { Ok(()) } else { Err(TransitionError::Fenced) }
    }
}

/// Cuts a status message to [`MESSAGE_BYTES_MAX`].
pub(crate) fn cut_message(message: &str) -> Arc<str> {
    if message.len() <= MESSAGE_BYTES_MAX {
        return message.into();
    }
    let mut end = MESSAGE_BYTES_MAX - '…'.len_utf8();
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", &message[..end]).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_is_cut_between_characters_and_ends_with_an_ellipsis() {
        assert_eq!(&*cut_message("fine"), "fine");
        let cut = cut_message(&"ä".repeat(MESSAGE_BYTES_MAX));
        assert!(cut.len() <= MESSAGE_BYTES_MAX);
        assert!(cut.ends_with('…'));
    }
}

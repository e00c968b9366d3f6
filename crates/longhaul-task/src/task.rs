//! The task itself.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Phase, Policy, Refused, Retention, TaskId, TaskKey, Timestamp, ToolRef};

/// How many children one task may have.
pub const CHILDREN_MAX: u32 = 10_000;

/// How deep a family may go; the root is at depth zero.
pub const DEPTH_MAX: u16 = 16;

/// The longest status message, in bytes. A longer one is cut at a character's edge.
pub const MESSAGE_BYTES_MAX: usize = 1_024;

/// Everything that decides what may happen to a task next, and what every generation's view of it is made from.
///
/// The request's arguments are not here: only an attempt needs them, so stores keep them apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Owner and public ID.
    pub key: TaskKey,
    /// Its place among its relatives.
    pub family: Family,
    /// The tool that carries it out.
    pub tool: ToolRef,
    /// Which wire generation asked for it: a label that only the wire reads.
    pub origin: Arc<str>,
    /// How it may run.
    pub policy: Policy,
    /// How long its family is kept.
    pub retention: Retention,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed. Never goes backwards, whatever the clock does.
    pub updated_at: Timestamp,
    /// Goes up by one with every change.
    pub revision: u64,
    /// Goes up whenever the right to write for this task moves: a claim, a cancellation, a lost attempt.
    pub fence: u64,
    /// How often it was claimed.
    pub attempt: u32,
    /// How many of its attempts came to nothing: lost with their node, or handed back. Only these use up what the tool
    /// allows; a handler that sleeps and comes back does not.
    pub spent: u32,
    /// How many questions it has asked in its life; the next key is made from this.
    pub questions_asked: u32,
    /// What it says about itself.
    pub message: Option<Arc<str>>,
    /// Where it stands.
    pub phase: Phase,
}

/// A task's place among its relatives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Family {
    /// The task at the top; the task itself when it has no parent.
    pub root: TaskId,
    /// The task that made this one.
    pub parent: Option<TaskId>,
    /// When the root was made: retention counts from there for everyone.
    pub since: Timestamp,
    /// Steps down from the root.
    pub depth: u16,
    /// How many children it has made.
    pub children: u32,
    /// Which of its parent's children it is, from zero.
    pub ordinal: u32,
}

impl Task {
    /// Whether it has ended.
    pub fn is_settled(&self) -> bool {
        matches!(self.phase, Phase::Settled { .. })
    }

    /// Whether it is the top of its family.
    pub fn is_root(&self) -> bool {
        self.family.parent.is_none()
    }

    /// Where this task's records stand: attempts that resume share one shelf, attempts that start over do not.
    pub fn epoch(&self) -> u32 {
        if self.resumes() { 0 } else { self.attempt }
    }

    /// When its family may be deleted: only a settled root knows.
    pub fn expires_at(&self) -> Option<Timestamp> {
        match self.phase {
            Phase::Settled { at, .. } if self.is_root() => self.retention.expires_at(self.created_at, at),
            _ => None,
        }
    }

    /// When it must have ended if nothing else happens: its handler's time is up, or its own.
    pub fn deadline(&self) -> Option<Timestamp> {
        let life = self.created_at.plus_ms(self.policy.life_ms_max);
        match self.phase {
            Phase::Settled { .. } => None,
            Phase::Running { run } => Some(life.min(run.since.plus_ms(self.policy.running_ms_max))),
            Phase::Queued { .. } | Phase::Waiting { .. } | Phase::Parked { .. } => Some(life),
        }
    }

    /// When somebody has to look at it again, if no one touches it before: to wake it, to end it, to delete it.
    pub fn due_at(&self) -> Option<Timestamp> {
        match self.phase {
            Phase::Settled { .. } => self.expires_at(),
            _ => [self.deadline(), self.phase.rest().and_then(|rest| rest.wake_at)].into_iter().flatten().min(),
        }
    }

    /// How many milliseconds from its creation the requestor will find it. A child is kept with its family, so its
    /// retention counts from the root's creation, too.
    pub fn ttl_ms(&self, now: Timestamp) -> Option<u64> {
        let since = self.family.since;
        let until = if let Phase::Settled { at, .. } = self.phase {
            self.retention.expires_at(since, at)
        } else {
            let life = self.created_at.plus_ms(self.policy.life_ms_max);
            self.retention.promised_until(since, now.max(self.updated_at), life)
        };
        until.map(|at| at.ms_since(self.created_at))
    }

    /// Whether one more attempt that comes to nothing leaves it another one.
    pub(crate) fn has_attempts_left(&self) -> bool {
        self.spent.saturating_add(1) < self.policy.attempts_max
    }

    /// Whether an attempt begins where the last one stopped, with its records, its questions and its children.
    pub fn resumes(&self) -> bool {
        self.policy.on_crash == crate::OnCrash::Resume
    }

    /// The same task after a change: one revision on, and never earlier than before.
    pub(crate) fn touched(&self, now: Timestamp) -> Self {
        let mut next = self.clone();
        next.revision += 1;
        next.updated_at = now.max(self.updated_at);
        next
    }

    /// Refuses what only an unsettled task can do.
    pub(crate) fn must_be_open(&self) -> Result<(), Refused> {
        if self.is_settled() { Err(Refused::Settled) } else { Ok(()) }
    }

    /// Refuses whoever has lost the right to write for this task: what every write of an attempt goes through, those
    /// that change nothing but its records too.
    pub fn must_hold(&self, fence: u64) -> Result<(), Refused> {
        self.must_be_open()?;
        if self.fence == fence && self.phase.run().is_some() { Ok(()) } else { Err(Refused::Fenced) }
    }
}

/// A status message within [`MESSAGE_BYTES_MAX`].
pub(crate) fn short(message: &str) -> Arc<str> {
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
    fn a_long_message_is_cut_at_a_character_and_says_so() {
        assert_eq!(&*short("fine"), "fine");
        let cut = short(&"ä".repeat(MESSAGE_BYTES_MAX));
        assert!(cut.len() <= MESSAGE_BYTES_MAX);
        assert!(cut.ends_with('…'));
    }
}

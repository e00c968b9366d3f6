use std::sync::Arc;

use foldhash::HashMap;
use longhaul_task::{
    AHEAD_MS_MIN, COLLECT_MS_MIN, EntryKind, JournalPosition, Phase, Retention, Task, TaskKey, Timestamp, Wait,
};

use super::Law;
use super::durable_states::DurableStates;
use crate::ledger::{Commit, Fact, WrittenTask, short};

/// A task's times are the times of its changes and never decrease, no task expires early, and no sleep ends early.
#[derive(Default)]
pub(super) struct TimeLaw {
    /// The sleeps that began since the clock was last set back. How long an earlier sleep has taken is not known.
    sleeps: HashMap<(TaskKey, JournalPosition), Wait>,
    /// The latest time from which the clock was set back.
    set_back_from: Timestamp,
}

impl Law for TimeLaw {
    fn statement(&self) -> &'static str {
        "times follow the clock and nothing expires early"
    }

    fn observe(&mut self, states: &DurableStates, fact: &Fact) -> Result<(), String> {
        let commit = match fact {
            Fact::Committed(commit) => commit,
            Fact::ClockSetBack { from } => {
                self.set_back_from = self.set_back_from.max(*from);
                self.sleeps.clear();
                return Ok(());
            }
            Fact::Slept { key, position, .. } => {
                let wait = self.sleeps.get(&(key.clone(), position.clone()));
                return match wait.filter(|wait| states.at < wait.until) {
                    Some(wait) => Err(format!("a sleep of {} ended before its time, {wait:?}", short(key))),
                    None => Ok(()),
                };
            }
            _ => return Ok(()),
        };
        for recorded in commit.recorded.iter().filter(|recorded| recorded.entry.kind == EntryKind::Timer) {
            let wait = recorded.output().and_then(|wait| serde_json::from_str::<Wait>(wait.as_str()).ok());
            let Some(wait) = wait else { return Err(format!("a timer of {} has no time", short(&recorded.key))) };
            if wait.since > self.set_back_from {
                self.sleeps.insert((recorded.key.clone(), recorded.entry.position.clone()), wait);
            }
        }
        commit.written.iter().try_for_each(|written| match &written.after {
            Some(task) => changed(states, commit, task),
            None => deleted(states, commit, written),
        })
    }
}

fn changed(states: &DurableStates, commit: &Commit, task: &Arc<Task>) -> Result<(), String> {
    let before = states.before(task);
    let expected = match before {
        Some(before) => commit.now.max(before.updated_at),
        None if task.family.parent.is_none() => commit.now,
        // A child has the time of the change that created it. The clock may have been set back before that time.
        None => task.updated_at.max(commit.now),
    };
    let created = before.map_or(task.updated_at, |before| before.created_at);
    if task.updated_at != expected || task.created_at != created {
        return Err(format!("{} changed at {expected:?} and says {:?}", short(&task.key), task.updated_at));
    }
    let ttl_ms = |task: &Task| task.ttl_ms().unwrap_or(u64::MAX);
    let may_shrink = matches!(task.retention, Retention::FromEnd(_));
    if let Some(before) = before.filter(|before| !may_shrink && ttl_ms(task) < ttl_ms(before)) {
        return Err(format!(
            "the TTL of {} shrank from {:?} to {:?}",
            short(&task.key),
            before.ttl_ms(),
            task.ttl_ms()
        ));
    }
    Ok(())
}

fn deleted(states: &DurableStates, commit: &Commit, written: &WrittenTask) -> Result<(), String> {
    let mut lives = states.lives.get(&written.key).into_iter().flatten();
    let ended = lives.find(|life| life.deleted_at == Some(states.line));
    let Some(task) = ended.and_then(|life| life.last()) else { return Ok(()) };
    match task.phase {
        Phase::Settled { at, .. } if task.is_root() => {
            let early = written.event == "expire" && kept_until(task, at).is_none_or(|until| commit.now < until);
            if early { Err(format!("{} expired too early", short(&task.key))) } else { Ok(()) }
        }
        Phase::Settled { .. } => Ok(()),
        _ => Err(format!("{} was deleted before it had ended", short(&task.key))),
    }
}

/// Computed from the documentation, not with the code under test.
fn kept_until(task: &Task, ended: Timestamp) -> Option<Timestamp> {
    match task.retention {
        Retention::FromEnd(ms) => Some(ended.plus_ms(ms)),
        Retention::FromCreation(ms) => {
            let half_age_ms = ended.ms_since(task.created_at) / 2;
            let after_end_ms = ms.min(COLLECT_MS_MIN).max(half_age_ms.min(COLLECT_MS_MIN)).max(AHEAD_MS_MIN);
            Some(task.created_at.plus_ms(ms).max(ended.plus_ms(after_end_ms)))
        }
        Retention::Unlimited => None,
    }
}

#[cfg(test)]
mod tests {
    use longhaul_task::EntryKind;

    use crate::check::test_ledger::{TestLedger, cancel, done, entry, key, position, resumed, settle};
    use crate::ledger::Fact;

    #[test]
    fn a_sleep_that_ends_before_its_time_is_caught() {
        let (mut ledger, _) = resumed();
        let since = ledger.now.as_ms();
        let wait = format!("{{\"since\":{since},\"until\":{}}}", since + 10);
        ledger.record_entry(&key("a"), 0, entry(EntryKind::Timer, 0, done(&wait)));
        ledger.now = ledger.now.plus_ms(9);
        ledger.note(Fact::Slept { key: key("a"), attempt: 1, position: position() });
        ledger.assert_breaks("times follow the clock and nothing expires early");
    }

    #[test]
    fn a_time_that_is_not_that_of_the_change_is_caught() {
        let (mut ledger, created) = TestLedger::with_task();
        ledger.now = ledger.now.plus_ms(5);
        let mut ended = ledger.after(&created, &cancel());
        ended.updated_at = created.updated_at;
        ledger.commit("cancel", &key("a"), Some(ended));
        ledger.assert_breaks("times follow the clock and nothing expires early");
    }

    #[test]
    fn a_task_that_expires_too_early_is_caught() {
        let (mut ledger, created) = TestLedger::with_task();
        ledger.apply(&created, &settle(1));
        ledger.now = ledger.now.plus_ms(999);
        ledger.commit("expire", &key("a"), None);
        ledger.assert_breaks("times follow the clock and nothing expires early");
    }
}

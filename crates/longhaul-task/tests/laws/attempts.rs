//! One attempt wins.

use std::collections::{HashMap, HashSet};

use longhaul_task::{AttemptEnd, ChildRange, Effect, Event, OnCrash, Outcome, PhaseName, TaskError, TransitionError};
use proptest::prelude::*;

use crate::model::{History, Moment, fence_of, inserted, open_in, plans};

proptest! {
    #[test]
    fn a_write_under_an_outdated_fence_changes_nothing(plan in plans()) {
        for moment in &History::of(&plan).moments {
            let task = moment.task();
            match fence_of(&moment.event) {
                Some(fence) if fence != task.fence || task.phase.active_attempt().is_none() => {
                    let refused = if task.is_settled() { TransitionError::Settled } else { TransitionError::Fenced };
                    prop_assert_eq!(&moment.result, &Err(refused), "{:?} on {:?}", moment.event, task);
                    prop_assert_eq!(&moment.before, &moment.after);
                }
                // An attempt that holds the current fence may be refused for other reasons, but not for its fence.
                Some(_) => prop_assert_ne!(&moment.result, &Err(TransitionError::Fenced)),
                None => {}
            }
        }
    }

    #[test]
    fn a_fence_never_falls_and_rises_whenever_the_right_to_write_moves(plan in plans()) {
        for (moment, _) in History::of(&plan).changes() {
            for (before, after) in moment.pairs() {
                prop_assert!(after.fence >= before.fence);
                let moved = after.phase.active_attempt().map(|run| run.node) != before.phase.active_attempt().map(|run| run.node);
                let by_the_attempt_itself = matches!(moment.event, Event::Settle(_));
                if moved && !by_the_attempt_itself {
                    prop_assert!(after.fence > before.fence, "{:?}: {:?} to {:?}", moment.event, before, after);
                }
            }
            if matches!(
                moment.event,
                Event::Claim(_) | Event::Cancel(_) | Event::Lose(_) | Event::Overdue(_) | Event::Release(_) | Event::Park(_)
            ) {
                prop_assert_eq!(moment.after[&moment.id].fence, moment.task().fence + 1, "{:?}", moment.event);
            }
        }
    }

    #[test]
    fn two_attempts_of_a_task_never_hold_the_same_fence(plan in plans()) {
        let mut attempt_of = HashMap::new();
        for moment in &History::of(&plan).moments {
            for task in moment.after.values().filter(|task| task.phase.active_attempt().is_some()) {
                let attempt = *attempt_of.entry((task.key.id.clone(), task.fence)).or_insert(task.attempt);
                prop_assert_eq!(attempt, task.attempt);
            }
        }
    }

    #[test]
    fn an_attempt_that_is_ended_from_outside_is_told_to_stop(plan in plans()) {
        for (moment, change) in History::of(&plan).changes() {
            if matches!(moment.event, Event::Settle(_)) {
                continue;
            }
            let mut expected: Vec<Effect> = Vec::new();
            for (before, after) in moment.pairs().filter(|(before, after)| !before.is_settled() && after.is_settled()) {
                prop_assert!(after.fence > before.fence);
                if let Some(run) = before.phase.active_attempt() {
                    expected.push(Effect::Stop { key: before.key.clone(), node: run.node, fence: before.fence });
                }
            }
            let stops = change.effects.iter().filter(|effect| matches!(effect, Effect::Stop { .. }));
            prop_assert_eq!(stops.clone().count(), expected.len());
            prop_assert!(expected.iter().all(|stop| change.effects.contains(stop)), "{:?}", moment);
        }
    }

    #[test]
    fn a_task_is_claimed_by_one_worker_and_not_before_its_time(plan in plans()) {
        for (moment, change) in History::of(&plan).changes() {
            let Event::Claim(claim) = &moment.event else { continue };
            let Some(not_before) = moment.task().phase.not_before() else {
                return Err(TestCaseError::fail(format!("claimed while {}", moment.task().phase.name().as_str())));
            };
            prop_assert!(moment.now >= not_before);
            prop_assert_eq!(change.task.phase.active_attempt().map(|run| run.node), Some(claim.node));
            prop_assert_eq!(change.task.attempt, moment.task().attempt + 1);
        }
    }

    #[test]
    fn a_task_that_enters_the_queue_is_announced(plan in plans()) {
        for (moment, change) in History::of(&plan).changes() {
            let was_queued = |id| moment.before.get(id).is_some_and(|before| before.phase.not_before().is_some());
            let made = change.children.iter().map(|(child, _)| child);
            let entered: Vec<Effect> = [&change.task]
                .into_iter()
                .chain(made)
                .chain(&change.relatives)
                .filter(|task| !was_queued(&task.key.id))
                .filter_map(|task| {
                    let not_before = task.phase.not_before()?;
                    Some(Effect::Queued { key: task.key.clone(), tool: task.tool.clone(), not_before })
                })
                .collect();
            let announced: Vec<Effect> =
                change.effects.iter().filter(|effect| matches!(effect, Effect::Queued { .. })).cloned().collect();
            prop_assert_eq!(announced, entered, "{:?}", moment.event);
        }
    }

    #[test]
    fn the_tools_on_crash_decides_what_a_lost_task_becomes(plan in plans()) {
        for (moment, change) in History::of(&plan).changes() {
            let Event::Lose(lose) = &moment.event else { continue };
            let task = moment.task();
            prop_assert_eq!((task.phase.active_attempt().map(|run| run.node), task.fence), (Some(lose.node), lose.fence));
            let failed_attempts = failed_before(moment) + u32::from(!lose.is_stop);
            let again = task.policy.on_crash != OnCrash::Fail && failed_attempts < task.policy.attempts_max;
            if again {
                let backoff_ms = if lose.is_stop { 0 } else { task.policy.backoff_after_ms(failed_attempts) };
                let not_before = change.task.phase.not_before().unwrap();
                prop_assert!(not_before >= moment.now.plus_ms(backoff_ms - backoff_ms / 2), "at least a half");
                prop_assert!(not_before <= moment.now.plus_ms(backoff_ms), "at most the whole backoff");
                prop_assert_eq!(change.task.failed_attempts, failed_attempts);
            } else {
                let fault = TaskError::crash_recovery(task);
                prop_assert_eq!(change.task.message.as_deref(), Some(&*fault.message));
                prop_assert_eq!(change.task.phase.outcome(), Some(&Outcome::Error(fault)));
            }
        }
    }

    /// A task may be parked any number of times; only lost and released attempts count towards the limit (not those that
    /// a stop ended), and only those in a row that got no further than the one before.
    #[test]
    fn only_failed_attempts_count_and_they_never_exceed_the_limit(plan in plans()) {
        let mut free: HashMap<_, u32> = HashMap::new();
        for (moment, change) in History::of(&plan).changes() {
            let free = free.entry(moment.id.clone()).or_default();
            let got_further = matches!(moment.event, Event::Lose(_)) && moment.task().resumes() && moment.wrote_entries;
            let is_stop = matches!(&moment.event, Event::Lose(lose) if lose.is_stop);
            *free += u32::from(is_stop || matches!(moment.event, Event::Park(_)));
            *free += if got_further { moment.task().failed_attempts + 1 } else { 0 };
            let limit = change.task.policy.attempts_max.max(1);
            prop_assert!(change.task.attempt <= limit + *free, "{:?}", moment);
            prop_assert!(change.task.failed_attempts < limit);
            let ends_attempt = matches!(moment.event, Event::Release(_) | Event::Lose(_)) && !change.task.is_settled();
            let before = if ends_attempt { failed_before(moment) } else { moment.task().failed_attempts };
            let counted = u32::from(ends_attempt && !is_stop);
            prop_assert_eq!(change.task.failed_attempts, before + counted, "{:?}", moment.event);
        }
    }

    #[test]
    fn every_attempt_that_ends_without_its_task_leaves_one_record(plan in plans()) {
        let mut ended = HashSet::new();
        for (moment, change) in History::of(&plan).changes() {
            let (before, after) = (moment.task(), &change.task);
            let run = before.phase.active_attempt().filter(|_| !after.is_settled() && after.phase.active_attempt().is_none());
            prop_assert_eq!(change.ended_attempt.is_some(), run.is_some(), "{:?}", moment);
            let (Some(record), Some(run)) = (&change.ended_attempt, run) else { continue };
            prop_assert!(ended.insert((moment.id.clone(), record.attempt)), "{:?}", moment);
            prop_assert_eq!((record.attempt, record.node, record.began_at), (before.attempt, run.node, run.began_at));
            let end = match &moment.event {
                Event::Lose(lose) if lose.is_stop => AttemptEnd::Stopped,
                Event::Lose(_) => AttemptEnd::Lost,
                Event::Park(park) if park.returned.is_some() => AttemptEnd::Returned,
                Event::Park(_) => AttemptEnd::Parked,
                Event::Release(release) => AttemptEnd::Released(release.reason.clone()),
                event => return Err(TestCaseError::fail(format!("{event:?} ended an attempt"))),
            };
            prop_assert_eq!(&record.end, &end);
            // Nothing is known of a dead process after its last write.
            if end == AttemptEnd::Lost {
                prop_assert!(record.ended_at <= moment.now, "{:?}", moment);
            } else {
                prop_assert_eq!(record.ended_at, moment.now);
            }
        }
    }

    #[test]
    fn an_attempt_keeps_the_time_of_its_claim(plan in plans()) {
        for (moment, change) in History::of(&plan).changes() {
            let (before, after) = (moment.task(), &change.task);
            let Some(run) = after.phase.last_attempt() else { continue };
            match before.phase.last_attempt() {
                Some(earlier) if before.attempt == after.attempt => prop_assert_eq!(run.began_at, earlier.began_at),
                _ => prop_assert_eq!(run.began_at, moment.now),
            }
        }
    }

    #[test]
    fn a_journal_entry_names_the_attempt_that_wrote_it_and_the_time(plan in plans()) {
        for (moment, change) in History::of(&plan).changes() {
            for entry in inserted(change) {
                prop_assert!(fence_of(&moment.event).is_some(), "{:?}", moment);
                prop_assert_eq!((entry.attempt, entry.at), (moment.task().attempt, moment.now), "{:?}", moment);
            }
            let expected = match &moment.event {
                Event::Spawn(spawn) => spawn.entries.len(),
                Event::Settle(settle) => settle.entries.len(),
                Event::Ask(_) | Event::Abandon(_) => 1,
                Event::Park(park) => usize::from(park.returned.is_some()),
                _ => 0,
            };
            prop_assert_eq!(inserted(change).count(), expected, "{:?}", moment);
        }
    }

    /// `Lose` and `Wake` carry the fence that their sender has read, and apply to that state only.
    #[test]
    fn a_late_loss_or_wake_does_not_change_a_newer_state(plan in plans()) {
        for (moment, _) in History::of(&plan).changes() {
            let seen = match &moment.event {
                Event::Lose(lose) => lose.fence,
                Event::Wake(wake) => wake.fence,
                _ => continue,
            };
            prop_assert_eq!(seen, moment.task().fence, "{:?}", moment);
        }
    }

    #[test]
    fn every_parked_task_has_something_that_wakes_it(plan in plans()) {
        for moment in &History::of(&plan).moments {
            for task in moment.after.values() {
                let Some(rest) = task.phase.wake_condition() else { continue };
                prop_assert!(rest.timer.is_some() || !rest.children.is_empty() || task.phase.questions().is_some());
                for range in &rest.children {
                    let is_open = open_in(&moment.after, &task.key.id, *range).next().is_some();
                    prop_assert!(is_open, "it waits for children that have ended: {:?}", moment);
                }
            }
        }
    }

    /// What has happened already would not wake the task, so it is not parked.
    #[test]
    fn a_task_is_never_parked_for_what_has_happened(plan in plans()) {
        for moment in &History::of(&plan).moments {
            let Event::Park(park) = &moment.event else { continue };
            let task = moment.task();
            if task.check_fence(park.fence).is_err() || !task.resumes() {
                continue;
            }
            let is_open = |key| task.phase.questions().is_some_and(|open| open.find(key).is_some());
            let has_ended = |range: &ChildRange| open_in(&moment.before, &task.key.id, *range).next().is_none();
            let happened = !park.questions.iter().all(is_open) || park.children.iter().any(has_ended);
            prop_assert_eq!(moment.result == Err(TransitionError::AlreadyHappened), happened, "{:?}", moment);
        }
    }

    #[test]
    fn only_a_tool_that_resumes_waits_without_a_handler_in_memory(plan in plans()) {
        for task in History::of(&plan).moments.iter().flat_map(|moment| moment.after.values()) {
            let dropped = matches!(task.phase.name(), PhaseName::Waiting | PhaseName::Parked) && task.phase.active_attempt().is_none();
            prop_assert!(!dropped || task.policy.on_crash == OnCrash::Resume, "{:?}", task);
        }
    }
}

/// The failed attempts in a row before the one that the event ends.
fn failed_before(moment: &Moment) -> u32 {
    let begins_again = matches!(moment.event, Event::Lose(_)) && moment.task().resumes() && moment.wrote_entries;
    if begins_again { 0 } else { moment.task().failed_attempts }
}

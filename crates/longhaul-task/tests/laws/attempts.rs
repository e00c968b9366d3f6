//! One attempt wins.

use std::collections::HashMap;

use longhaul_task::{Effect, Event, OnCrash, Outcome, PhaseName, TaskError, TransitionError};
use proptest::prelude::*;

use crate::model::{History, children, fence_of, plans};

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
            let made = change.child.as_ref().map(|(child, _)| child);
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
            let again = task.policy.on_crash != OnCrash::Fail && task.failed_attempts + 1 < task.policy.attempts_max;
            if again {
                let backoff_ms = task.policy.backoff_after_ms(task.failed_attempts + 1);
                let not_before = moment.now.plus_ms(backoff_ms);
                prop_assert_eq!(change.task.phase.not_before(), Some(not_before));
                prop_assert_eq!(change.task.failed_attempts, task.failed_attempts + 1);
            } else {
                let fault = TaskError::crash_recovery(task);
                prop_assert_eq!(change.task.message.as_deref(), Some(&*fault.message));
                prop_assert_eq!(change.task.phase.outcome(), Some(&Outcome::Error(fault)));
            }
        }
    }

    /// A task may be parked any number of times; only lost and released attempts count towards the limit.
    #[test]
    fn only_failed_attempts_count_and_they_never_exceed_the_limit(plan in plans()) {
        let mut parked: HashMap<_, u32> = HashMap::new();
        for (moment, change) in History::of(&plan).changes() {
            let parks = parked.entry(moment.id.clone()).or_default();
            *parks += u32::from(matches!(moment.event, Event::Park(_)));
            let limit = change.task.policy.attempts_max.max(1);
            prop_assert!(change.task.attempt <= limit + *parks, "{:?}", moment);
            prop_assert!(change.task.failed_attempts < limit);
            let counts = matches!(moment.event, Event::Release(_) | Event::Lose(_)) && !change.task.is_settled();
            prop_assert_eq!(change.task.failed_attempts, moment.task().failed_attempts + u32::from(counts), "{:?}", moment.event);
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
                prop_assert!(rest.timer.is_some() || rest.for_children || task.phase.questions().is_some());
                let open = children(&moment.after, &task.key.id).any(|child| !child.is_settled());
                prop_assert!(!rest.for_children || open, "it waits for children that have ended: {:?}", moment);
            }
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

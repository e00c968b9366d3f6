//! Revisions, timestamps and deadlines are right, even if the clock jumps.

use longhaul_task::{Event, PhaseName};
use proptest::prelude::*;

use crate::model::{History, plans};

proptest! {
    #[test]
    fn a_revision_rises_by_exactly_one_with_every_change(plan in plans()) {
        for moment in &History::of(&plan).moments {
            for (before, after) in moment.pairs() {
                let changed = u64::from(before != after);
                prop_assert_eq!(after.revision, before.revision + changed, "{:?}", moment.event);
            }
            if let Ok(change) = &moment.result {
                prop_assert_eq!(change.task.revision, moment.task().revision + 1);
            }
        }
    }

    #[test]
    fn updated_at_is_the_time_of_the_last_change_and_never_decreases(plan in plans()) {
        for moment in &History::of(&plan).moments {
            for (before, after) in moment.pairs() {
                prop_assert_eq!(after.created_at, before.created_at);
                let expected = if before == after { before.updated_at } else { before.updated_at.max(moment.now) };
                prop_assert_eq!(after.updated_at, expected, "{:?}", moment.event);
            }
            for task in moment.after.values() {
                prop_assert!(task.updated_at >= task.created_at);
                prop_assert!(task.created_at >= task.family.since);
                prop_assert!(task.phase.active_attempt().is_none_or(|run| run.since <= task.updated_at));
            }
        }
    }

    #[test]
    fn running_time_starts_at_the_claim_and_again_at_the_last_answer(plan in plans()) {
        for (moment, change) in History::of(&plan).changes() {
            let begins = change.task.phase.name() == PhaseName::Running
                && matches!(moment.event, Event::Claim(_) | Event::Answer(_));
            match (moment.task().phase.active_attempt(), change.task.phase.active_attempt()) {
                (_, Some(after)) if begins => prop_assert_eq!(after.since, change.task.updated_at),
                (Some(before), Some(after)) => prop_assert_eq!(before, after, "{:?}", moment.event),
                _ => {}
            }
        }
    }

    #[test]
    fn a_task_is_overdue_exactly_from_its_deadline_on(plan in plans()) {
        for moment in &History::of(&plan).moments {
            let task = moment.task();
            if !matches!(moment.event, Event::Overdue(_)) || task.is_settled() {
                continue;
            }
            let age_ms = moment.now.ms_since(task.created_at);
            let ran_ms = match task.phase.name() {
                PhaseName::Running => task.phase.active_attempt().map(|run| moment.now.ms_since(run.since)),
                _ => None,
            };
            // The clock may have jumped back to a time before the creation of the task; then it has existed for 0 ms.
            let life_is_over = moment.now >= task.created_at && age_ms >= task.policy.life_ms_max;
            let ran_too_long = task.phase.active_attempt().is_some_and(|run| moment.now >= run.since)
                && ran_ms.is_some_and(|ran_ms| ran_ms >= task.policy.running_ms_max);
            prop_assert_eq!(moment.result.is_ok(), life_is_over || ran_too_long, "{:?}", moment);
        }
    }
}

//! The truth about time, whatever the clock does.

use longhaul_task::{Event, PhaseName};
use proptest::prelude::*;

use crate::model::{History, plans};

proptest! {
    #[test]
    fn a_revision_goes_up_by_exactly_one_with_every_change_and_by_none_without(plan in plans()) {
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
    fn a_task_was_last_updated_when_it_last_changed_and_never_earlier_than_before(plan in plans()) {
        for moment in &History::of(&plan).moments {
            for (before, after) in moment.pairs() {
                prop_assert_eq!(after.created_at, before.created_at);
                let expected = if before == after { before.updated_at } else { before.updated_at.max(moment.now) };
                prop_assert_eq!(after.updated_at, expected, "{:?}", moment.event);
            }
            for task in moment.after.values() {
                prop_assert!(task.updated_at >= task.created_at);
                prop_assert!(task.created_at >= task.family.since);
                prop_assert!(task.phase.run().is_none_or(|run| run.since <= task.updated_at));
            }
        }
    }

    #[test]
    fn a_handlers_running_time_begins_at_its_claim_and_again_after_its_last_answer(plan in plans()) {
        for (moment, change) in History::of(&plan).changes() {
            let begins = change.task.phase.name() == PhaseName::Running
                && matches!(moment.event, Event::Claim(_) | Event::Answer(_));
            match (moment.task().phase.run(), change.task.phase.run()) {
                (_, Some(after)) if begins => prop_assert_eq!(after.since, change.task.updated_at),
                (Some(before), Some(after)) => prop_assert_eq!(before, after, "{:?}", moment.event),
                _ => {}
            }
        }
    }

    #[test]
    fn nobody_is_overdue_before_the_time_is_up_and_everybody_is_after(plan in plans()) {
        for moment in &History::of(&plan).moments {
            let task = moment.task();
            if !matches!(moment.event, Event::Overdue(_)) || task.is_settled() {
                continue;
            }
            let lived_ms = moment.now.ms_since(task.created_at);
            let ran_ms = match task.phase.name() {
                PhaseName::Running => task.phase.run().map(|run| moment.now.ms_since(run.since)),
                _ => None,
            };
            // At the very moment and past it; a task made in the future of a clock that jumped back has lived for no time.
            let reached = moment.now >= task.created_at && lived_ms >= task.policy.life_ms_max;
            let outran = task.phase.run().is_some_and(|run| moment.now >= run.since)
                && ran_ms.is_some_and(|ran_ms| ran_ms >= task.policy.running_ms_max);
            prop_assert_eq!(moment.result.is_ok(), reached || outran, "{:?}", moment);
        }
    }
}

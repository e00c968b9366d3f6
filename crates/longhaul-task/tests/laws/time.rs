//! Revisions, timestamps and deadlines are right, even if the clock jumps.

use longhaul_task::transition::Shorten;
use longhaul_task::{ActiveAttempt, Event, PhaseName, Task, Timestamp, Wait};
use proptest::prelude::*;

use crate::model::{History, apply, plans};

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
                && moment.task().phase.name() != PhaseName::Running
                && !matches!(moment.event, Event::Shorten(_));
            match (moment.task().phase.active_attempt(), change.task.phase.active_attempt()) {
                (_, Some(after)) if begins => prop_assert_eq!(after.since, moment.now),
                (Some(before), Some(after)) if matches!(moment.event, Event::Shorten(_)) => {
                    prop_assert_eq!(after, ActiveAttempt { since: before.since.min(moment.now), ..before });
                }
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
            // The clock may have jumped back to a time before the task was created. Then the task counts as 0 ms old.
            let life_is_over = moment.now >= task.created_at && age_ms >= task.policy.life_ms_max;
            let ran_too_long = task.phase.active_attempt().is_some_and(|run| moment.now >= run.since)
                && ran_ms.is_some_and(|ran_ms| ran_ms >= task.policy.running_ms_max);
            prop_assert_eq!(moment.result.is_ok(), life_is_over || ran_too_long, "{:?}", moment);
        }
    }

    #[test]
    fn a_wait_or_attempt_begins_at_the_time_of_its_event(plan in plans()) {
        for (moment, change) in History::of(&plan).changes() {
            let children = change.children.iter().map(|(child, _)| child);
            for task in change.relatives.iter().chain(children).chain([&change.task]) {
                let before: Vec<Timestamp> = moment.before.get(&task.key.id).into_iter().flat_map(beginnings).collect();
                for since in beginnings(task) {
                    prop_assert!(before.contains(&since) || since == moment.now, "{:?}", moment);
                }
            }
        }
    }

    /// After `Shorten`, no wait takes longer than its own length from now on, however the clock has jumped before.
    #[test]
    fn a_shortened_wait_takes_at_most_its_own_length_by_the_present_clock(plan in plans(), back_ms in 0_u64..2_000_000) {
        let history = History::of(&plan);
        let now = Timestamp::from_ms(history.now.as_ms().saturating_sub(back_ms));
        for task in history.world.values() {
            let is_ahead = !task.is_settled() && task.phase.since().is_some_and(|since| since > now);
            let result = apply(&history.world, &history.writers, task, &Event::Shorten(Shorten::default()), now);
            prop_assert_eq!(result.is_ok(), is_ahead, "{:?}", task);
            let after = result.map_or_else(|_| task.clone(), |change| change.task);
            let waits = wait(task).into_iter().chain(deadlines(task)).zip(wait(&after).into_iter().chain(deadlines(&after)));
            for (before, after) in waits {
                let length_ms = before.until.ms_since(before.since);
                prop_assert!(after.until.ms_since(now) <= length_ms, "{:?} after {:?}", after, before);
                // A wait whose beginning is not after `now` is unchanged, so no timer fires early.
                prop_assert!(before.since > now || after == before, "{:?} after {:?}", after, before);
            }
            prop_assert!(after.is_settled() || after.phase.since().is_none_or(|since| since <= now), "{:?}", after);
            prop_assert_eq!((after.fence, after.attempt, after.updated_at), (task.fence, task.attempt, task.updated_at.max(after.updated_at)));
        }
    }
}

/// The times at which the task's waits and its attempt began.
fn beginnings(task: &Task) -> impl Iterator<Item = Timestamp> {
    let attempt = task.phase.active_attempt().map(|run| run.since);
    wait(task).into_iter().chain(deadlines(task)).map(|wait| wait.since).chain(attempt)
}

/// The waits of the task's open questions that have a deadline.
fn deadlines(task: &Task) -> impl Iterator<Item = Wait> {
    let questions = task.phase.questions().into_iter().flatten();
    questions.filter_map(|question| Some(question.deadline.as_ref()?.wait))
}

/// The task's wait for a worker or for a timer.
fn wait(task: &Task) -> Option<Wait> {
    use longhaul_task::{Phase, WaitingState};
    match &task.phase {
        Phase::Queued { wait } | Phase::Waiting { state: WaitingState::Queued { wait }, .. } => Some(*wait),
        phase => phase.wake_condition()?.timer,
    }
}

//! Only settled families expire, none expires early, and every task is kept for the TTL that it has ttls.

use std::collections::HashMap;

use longhaul_task::transition::{Expire, Overdue, Renew, TimeOut, Wake};
use longhaul_task::{AHEAD_MS_MIN, COLLECT_MS_MIN, Event, Phase, QUESTIONS_OPEN_MAX, Retention, Task, WakeCondition};
use proptest::prelude::*;

use crate::model::{History, apply, commit, counts_from_end, plans};

/// The maximum number of consecutive sweep events on one task at one time: one for each question, wake, overdue, expire.
const DUE_IN_A_ROW_MAX: usize = QUESTIONS_OPEN_MAX + 3;

proptest! {
    #[test]
    fn only_a_settled_family_is_deleted_and_only_through_its_root(plan in plans()) {
        for (moment, change) in History::of(&plan).changes() {
            let deletes = matches!(moment.event, Event::Expire(_) | Event::Delete(_));
            prop_assert_eq!(change.deletes_family(), deletes);
            if deletes {
                prop_assert!(moment.task().is_root());
                let family = moment.before.values().filter(|task| task.family.root == moment.id);
                prop_assert!(family.clone().all(Task::is_settled), "{:?}", moment);
                prop_assert!(moment.after.values().all(|task| task.family.root != moment.id));
            } else {
                prop_assert_eq!(moment.pairs().count(), moment.before.len(), "{:?} deleted", moment.event);
            }
        }
    }

    #[test]
    fn a_family_expires_when_its_retention_is_over_and_not_before(plan in plans()) {
        for moment in &History::of(&plan).moments {
            let root = moment.task();
            let Phase::Settled { at, .. } = root.phase else { continue };
            if !matches!(moment.event, Event::Expire(_)) || !root.is_root() {
                continue;
            }
            let over = match root.retention {
                Retention::FromCreation(ms) => {
                    let grown_ms = (at.ms_since(root.created_at) / 2).min(COLLECT_MS_MIN);
                    let kept_ms = ms.min(COLLECT_MS_MIN).max(grown_ms).max(AHEAD_MS_MIN);
                    moment.now >= root.created_at.plus_ms(ms) && moment.now >= at.plus_ms(kept_ms)
                }
                Retention::FromEnd(ms) => moment.now >= at.plus_ms(ms),
                Retention::Unlimited => false,
            };
            prop_assert_eq!(moment.result.is_ok(), over, "{:?}", moment);
        }
    }

    #[test]
    fn a_ttl_never_shrinks_even_if_the_clock_goes_back(plan in plans()) {
        let mut ttls = HashMap::new();
        for moment in &History::of(&plan).moments {
            for task in moment.after.values().filter(|task| !counts_from_end(task)) {
                does_not_shrink(&mut ttls, task)?;
            }
        }
    }

    /// Before the end of a task, the TTL of a retention from the end is the latest possible one.
    #[test]
    fn a_ttl_from_the_end_is_an_upper_bound_and_exact_after_the_end(plan in plans()) {
        for moment in &History::of(&plan).moments {
            for task in moment.after.values() {
                let Retention::FromEnd(ms) = task.retention else { continue };
                let life_ms = match task.phase {
                    Phase::Settled { at, .. } => at.ms_since(task.created_at),
                    _ => task.policy.life_ms_max,
                };
                let until = task.created_at.plus_ms(life_ms).plus_ms(ms);
                prop_assert_eq!(task.ttl_ms(), Some(until.ms_since(task.created_at)));
            }
        }
    }

    /// Needs a clock that never goes back: otherwise the recorded end of a child can be later than that of its root.
    #[test]
    fn the_ttl_of_a_task_that_works_is_ahead_until_the_task_is_due(plan in plans()) {
        for moment in &History::of(&plan).moments {
            for task in moment.after.values().filter(|task| !task.is_settled()) {
                let Some(ttl_ms) = task.ttl_ms() else { continue };
                if task.due_at().is_some_and(|due_at| moment.now < due_at) {
                    prop_assert!(task.created_at.plus_ms(ttl_ms) > moment.now, "{:?} at {:?}", task, moment.now);
                }
            }
        }
    }

    #[test]
    fn every_member_of_a_settled_family_is_kept_for_the_ttl_it_shows(plan in plans()) {
        for moment in &History::of(&plan.with_a_steady_clock()).moments {
            for task in moment.after.values() {
                let root = &moment.after[&task.family.root];
                let (Some(expires), Some(ttl_ms)) = (root.expires_at(), task.ttl_ms()) else { continue };
                prop_assert!(task.created_at.plus_ms(ttl_ms) <= expires, "{:?} expires at {:?}", task, expires);
            }
        }
    }

    #[test]
    fn a_task_is_due_at_the_first_of_its_timer_deadline_renewal_and_expiry(plan in plans()) {
        for task in History::of(&plan).moments.iter().flat_map(|moment| moment.after.values()) {
            let timer = task.phase.wake_condition().and_then(WakeCondition::wake_at);
            let questions = task.phase.questions().into_iter().flatten();
            let answers = questions.filter_map(|question| Some(question.deadline.as_ref()?.wait.until));
            let reasons = answers.map(Some).chain([timer, task.deadline(), task.expires_at(), task.renew_at()]);
            prop_assert_eq!(task.due_at(), reasons.flatten().min(), "{:?}", task);
        }
    }

    #[test]
    fn a_task_is_not_due_for_the_same_reason_again(plan in plans()) {
        for (moment, change) in History::of(&plan).changes() {
            match moment.event {
                Event::Overdue(_) => {
                    let is_due = |task: &Task| task.due_at().is_some_and(|due| due < moment.now);
                    prop_assert!(!is_due(&change.task), "{:?}", change.task);
                    for relative in &change.relatives {
                        // A parent that is overdue itself is woken by its child first; its own event is next.
                        let was_due = is_due(&moment.before[&relative.key.id]) && relative.deadline() == relative.due_at();
                        prop_assert!(!is_due(relative) || (was_due && !relative.is_settled()), "{:?}", relative);
                    }
                }
                Event::Expire(_) => prop_assert!(!moment.after.contains_key(&moment.id)),
                _ => {}
            }
        }
    }

    #[test]
    fn the_sweep_ends_with_no_task_due(plan in plans()) {
        let history = History::of(&plan);
        let (mut world, now) = ((*history.world).clone(), history.now);
        let due = |task: &&Task| task.due_at().is_some_and(|due| due <= now);
        for id in history.world.keys() {
            for _ in 0..DUE_IN_A_ROW_MAX {
                let Some(task) = world.get(id).filter(due) else { break };
                let questions = task.phase.questions().into_iter().flatten();
                let sweep = questions
                    .map(|question| Event::TimeOut(TimeOut { key: question.key.clone() }))
                    .chain([Event::Wake(Wake { fence: task.fence }), Event::Overdue(Overdue), Event::Expire(Expire), Event::Renew(Renew)]);
                let change = sweep.into_iter().find_map(|event| apply(&world, &history.writers, task, &event, now).ok());
                prop_assert!(change.is_some(), "a due task refuses every event of the sweep: {:?}", task);
                world = commit(&world, &change.unwrap());
            }
        }
        prop_assert_eq!(world.values().find(due), None);
    }
}

fn does_not_shrink(ttls: &mut HashMap<longhaul_task::TaskKey, Option<u64>>, task: &Task) -> Result<(), TestCaseError> {
    let ttl_ms = task.ttl_ms();
    let earlier = ttls.insert(task.key.clone(), ttl_ms).unwrap_or(Some(0));
    // No TTL means that the task is kept without limit.
    let longest = |ttl_ms: Option<u64>| ttl_ms.unwrap_or(u64::MAX);
    prop_assert!(longest(ttl_ms) >= longest(earlier), "{:?} after {:?}: {:?}", ttl_ms, earlier, task);
    Ok(())
}

//! A settled task is final, and a refused event changes nothing.

use longhaul_task::{Effect, Event, TransitionError};
use proptest::prelude::*;

use crate::model::{History, Writers, apply, commit, inserted, plans};

proptest! {
    #[test]
    fn a_settled_task_never_changes_again_except_to_be_deleted(plan in plans()) {
        for moment in &History::of(&plan).moments {
            for (before, after) in moment.pairs().filter(|(before, _)| before.is_settled()) {
                prop_assert_eq!(before, after, "changed by {:?}", moment.event);
            }
        }
    }

    #[test]
    fn nothing_but_deletion_is_accepted_once_a_task_has_settled(plan in plans()) {
        for moment in History::of(&plan).moments.iter().filter(|moment| moment.task().is_settled()) {
            match (&moment.event, &moment.result) {
                (Event::Expire(_) | Event::Delete(_), Ok(change)) => prop_assert!(change.deletes_family()),
                (Event::Expire(_) | Event::Delete(_), Err(_)) => {}
                (event, result) => prop_assert_eq!(result, &Err(TransitionError::Settled), "{:?}", event),
            }
        }
    }

    #[test]
    fn the_end_of_a_task_is_announced_once_with_the_time_of_its_last_change(plan in plans()) {
        for (moment, change) in History::of(&plan).changes() {
            let ended = change.task.is_settled() && !moment.task().is_settled();
            let relatives = change.relatives.iter().filter(|task| task.is_settled());
            let tasks = std::iter::once(&change.task).filter(|_| ended).chain(relatives);
            let expected: Vec<&longhaul_task::TaskKey> = tasks.map(|task| &task.key).collect();
            let announced = change.effects.iter().filter_map(|effect| match effect {
                Effect::Settled { key, .. } => Some(key),
                _ => None,
            });
            prop_assert_eq!(announced.collect::<Vec<_>>(), expected, "{:?}", moment);
            if let longhaul_task::Phase::Settled { at, .. } = change.task.phase && ended {
                prop_assert_eq!(at, change.task.updated_at);
            }
        }
    }

    #[test]
    fn a_refused_event_leaves_no_trace(plan in plans()) {
        let history = History::of(&plan);
        let Some(first) = history.moments.first() else { return Ok(()) };
        let mut world = (*first.before).clone();
        let mut writers = Writers::new();
        for (moment, expected) in history.changes() {
            let change = apply(&world, &writers, &world[&moment.id], &moment.event, moment.now);
            prop_assert_eq!(change.as_ref(), Ok(expected));
            writers.extend(inserted(expected).map(|entry| (moment.id.clone(), entry.attempt)));
            world = commit(&world, expected);
        }
        prop_assert_eq!(&world, &*history.world);
    }
}

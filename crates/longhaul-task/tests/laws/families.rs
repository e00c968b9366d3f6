//! Families live and die together.

use longhaul_task::{ChildRange, DEPTH_MAX, Event, Outcome};
use proptest::prelude::*;

use crate::model::{History, children, descendants, inserted, open_in, plans};

proptest! {
    #[test]
    fn a_parent_settles_after_its_children(plan in plans()) {
        for moment in &History::of(&plan).moments {
            for parent in moment.after.values().filter(|task| task.is_settled()) {
                for child in children(&moment.after, &parent.key.id) {
                    prop_assert!(child.is_settled(), "{:?} left {:?} open", moment.event, child);
                }
            }
        }
    }

    #[test]
    fn ending_a_task_from_outside_cancels_its_open_descendants_only(plan in plans()) {
        for (moment, change) in History::of(&plan).changes() {
            let ended = change.task.is_settled() && !moment.task().is_settled();
            if !ended || matches!(moment.event, Event::Settle(_)) {
                continue;
            }
            for before in descendants(&moment.before, &moment.id) {
                let after = &moment.after[&before.key.id];
                if before.is_settled() {
                    prop_assert_eq!(before, after);
                } else {
                    prop_assert_eq!(after.phase.outcome(), Some(&Outcome::Cancelled));
                }
            }
        }
    }

    /// The end of a child and the waking of its parent are one commit, so no wake-up is lost between the two.
    #[test]
    fn a_parent_is_woken_by_the_last_child_of_its_range_and_not_before(plan in plans()) {
        for (moment, _) in History::of(&plan).changes() {
            for (before, after) in moment.pairs() {
                if before.phase.wake_condition().is_none() {
                    continue;
                }
                let is_over = |range: &ChildRange| open_in(&moment.after, &before.key.id, *range).next().is_none();
                let range_is_over = before.awaited_children().iter().any(is_over);
                if before.key.id != moment.id && !after.is_settled() {
                    prop_assert_eq!(after.phase.not_before().is_some(), range_is_over, "{:?}", moment);
                    prop_assert_eq!(before != after, range_is_over, "{:?}", moment);
                    prop_assert_eq!(before.phase.questions(), after.phase.questions());
                }
                prop_assert!(!range_is_over || after.phase.wake_condition().is_none(), "{:?}", moment);
            }
        }
    }

    #[test]
    fn children_that_are_created_together_have_their_own_arguments_and_entries(plan in plans()) {
        for (moment, change) in History::of(&plan).changes() {
            let Event::Spawn(spawn) = &moment.event else {
                prop_assert!(change.children.is_empty());
                continue;
            };
            let asked = spawn.children.iter().map(|new| (&new.create.key.id, &new.input));
            prop_assert!(change.children.iter().map(|(child, input)| (&child.key.id, input)).eq(asked));
            prop_assert_eq!(change.task.family.children, moment.task().family.children + u32::try_from(spawn.children.len()).unwrap());
            prop_assert_eq!(inserted(change).count(), spawn.entries.len());
        }
    }

    /// An attempt that starts over creates new children; one that resumes uses those of the last attempt.
    #[test]
    fn children_end_with_an_attempt_that_starts_over_and_outlive_a_resume(plan in plans()) {
        for (moment, change) in History::of(&plan).changes() {
            if !matches!(moment.event, Event::Lose(_) | Event::Release(_)) || change.task.is_settled() {
                continue;
            }
            for before in descendants(&moment.before, &moment.id) {
                let after = &moment.after[&before.key.id];
                if before.is_settled() || change.task.resumes() {
                    prop_assert_eq!(before, after);
                } else {
                    prop_assert_eq!(after.phase.outcome(), Some(&Outcome::Cancelled));
                }
            }
        }
    }

    #[test]
    fn a_cancelled_task_is_cancelled_at_once(plan in plans()) {
        for moment in &History::of(&plan).moments {
            if matches!(moment.event, Event::Cancel(_)) {
                prop_assert_eq!(moment.result.is_ok(), !moment.task().is_settled());
                prop_assert!(moment.after[&moment.id].is_settled());
            }
        }
    }

    #[test]
    /// An event can change its task, a new child, open descendants and a waiting parent.
    fn an_event_changes_no_task_outside_its_scope(plan in plans()) {
        for (moment, change) in History::of(&plan).changes() {
            let mut relatives: Vec<_> =
                descendants(&moment.before, &moment.id).into_iter().map(|task| &task.key.id).collect();
            if change.task.is_settled() && let Some(parent) = &moment.task().family.parent {
                relatives.push(parent);
            }
            for relative in &change.relatives {
                prop_assert!(relatives.contains(&&relative.key.id));
                prop_assert!(!moment.before[&relative.key.id].is_settled());
            }
            if change.deletes_family() {
                let root = &moment.task().family.root;
                let others = moment.before.iter().filter(|(_, task)| task.family.root != *root);
                prop_assert!(others.eq(moment.after.iter()), "the deletion removed more or less than the family");
                continue;
            }
            prop_assert_eq!(moment.pairs().count(), moment.before.len());
            for (before, after) in moment.pairs().filter(|(before, after)| before != after) {
                let allowed = before.key.id == moment.id || relatives.contains(&&before.key.id);
                prop_assert!(allowed, "{:?} changed {:?}", moment.event, after);
            }
        }
    }

    #[test]
    fn after_any_history_every_task_has_the_right_root_parent_and_depth(plan in plans()) {
        for moment in &History::of(&plan).moments {
            for task in moment.after.values() {
                let family = &task.family;
                let Some(parent) = &family.parent else {
                    prop_assert_eq!((&family.root, family.since, family.depth), (&task.key.id, task.created_at, 0));
                    continue;
                };
                // Indexing panics if the parent or the root does not exist.
                let (parent, root) = (&moment.after[parent], &moment.after[&family.root]);
                prop_assert_eq!((&family.root, family.since), (&parent.family.root, root.created_at));
                prop_assert_eq!(family.depth, parent.family.depth + 1);
                prop_assert!(family.depth <= DEPTH_MAX);
                prop_assert!(task.created_at >= parent.created_at);
                prop_assert_eq!((&task.key.owner, task.retention), (&root.key.owner, root.retention));
            }
        }
    }

    #[test]
    fn children_are_counted_and_numbered_in_the_order_of_creation(plan in plans()) {
        for moment in &History::of(&plan).moments {
            for task in moment.after.values() {
                let mut ordinals: Vec<u32> = children(&moment.after, &task.key.id).map(|c| c.family.ordinal).collect();
                ordinals.sort_unstable();
                prop_assert!(ordinals.into_iter().eq(0..task.family.children));
            }
            let new = moment.result.iter().flat_map(|change| &change.children);
            for ((child, _), ordinal) in new.zip(moment.task().family.children..) {
                prop_assert!(!moment.before.contains_key(&child.key.id), "the child replaced an existing task");
                prop_assert_eq!(child.family.ordinal, ordinal);
            }
        }
    }
}

//! A family is cancelled and deleted as a whole, and a parent settles after its children.

use std::sync::Arc;

use longhaul_task::transition::{Delete, Expire};
use longhaul_task::{Effect, Event, OnCrash, Outcome, Task, TransitionError};

use super::Subject;
use super::kit::*;
use crate::{Store, StoreError};

/// A root (1) with children 2, 3 and 4; 3 has children 5 and 6; 6 has a child 7. All run on node 1.
async fn tree(store: &dyn Store) {
    create(store, claimed(key(1))).await;
    for (parent, child) in [(1, 2), (1, 3), (1, 4), (3, 5), (3, 6), (6, 7)] {
        apply(store, &key(parent), spawn(1, claimed(key(child)))).await;
    }
}

async fn members(store: &dyn Store) -> Vec<Arc<Task>> {
    let mut tasks = Vec::new();
    for n in 1..=7 {
        tasks.push(read(store, &key(n)).await);
    }
    tasks
}

pub async fn children_are_listed_in_the_order_of_creation<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    create(&*store, claimed(key(50))).await;
    // The order of creation differs from the order of the IDs and its reverse.
    let ids = [30, 10, 90, 20, 70];
    for n in ids {
        apply(&*store, &key(50), spawn(1, queued(key(n)))).await;
    }
    assert_eq!(store.children(&key(50)).await.unwrap(), ids.map(id));
    let (_subject, store) = reopened(subject, store).await;
    assert_eq!(store.children(&key(50)).await.unwrap(), ids.map(id));
    let child = read(&*store, &key(90)).await;
    assert_eq!((&child.family.root, child.family.ordinal), (&id(50), 2));
}

pub async fn a_spawned_child_is_claimed_like_any_other<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    create(&*store, claimed(key(1))).await;
    apply(&*store, &key(1), spawn(1, queued(key(2)))).await;
    let child = store.claim(claim_request(node(2), tool(), 1)).await.unwrap().remove(0);
    assert_eq!(child.input, queued(key(2)).input);
    assert_eq!(child.task.family.parent, Some(id(1)));
}

pub async fn a_child_with_an_existing_id_is_refused_and_changes_nothing<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    let parent = create(&*store, claimed(key(1))).await;
    let other = create(&*store, queued(key(2))).await;
    for taken in [1, 2] {
        assert_eq!(refused(store.apply(&key(1), spawn(1, queued(key(taken)))).await), TransitionError::DuplicateId);
    }
    assert_eq!(read(&*store, &key(1)).await, parent);
    assert_eq!(read(&*store, &key(2)).await, other);
    assert_eq!(store.children(&key(1)).await.unwrap(), []);
}

pub async fn children_with_the_same_id_are_refused_and_change_nothing<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    let parent = create(&*store, claimed(key(1))).await;
    let twins = spawn_all(1, [queued(key(2)), queued(key(2))]);
    assert_eq!(refused(store.apply(&key(1), twins).await), TransitionError::DuplicateId);
    assert_eq!(read(&*store, &key(1)).await, parent);
    assert_eq!(store.children(&key(1)).await.unwrap(), []);
    assert!(matches!(store.read(&key(2)).await, Err(StoreError::NotFound)));
    assert_eq!(apply(&*store, &key(1), report(1, "goes on")).await.revision, parent.revision + 1);
}

pub async fn a_parent_settles_after_its_children<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    create(&*store, claimed(key(1))).await;
    for n in 2..=3 {
        apply(&*store, &key(1), spawn(1, claimed(key(n)))).await;
    }
    assert_eq!(refused(store.apply(&key(1), settle(1, "1")).await), TransitionError::ChildrenOpen);
    apply(&*store, &key(2), settle(1, "2")).await;
    assert_eq!(refused(store.apply(&key(1), settle(1, "1")).await), TransitionError::ChildrenOpen);
    apply(&*store, &key(3), cancel()).await;
    assert!(apply(&*store, &key(1), settle(1, "1")).await.is_settled());
}

pub async fn a_parent_never_settles_while_a_concurrent_spawn_succeeds<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    for n in 0..20 {
        let (parent, child) = (key(n * 2), key(n * 2 + 1));
        create(&*store, claimed(parent.clone())).await;
        let events = [settle(1, "1"), spawn(1, claimed(child.clone()))];
        let calls = events.map(|event| {
            let (store, parent) = (Arc::clone(&store), parent.clone());
            async move { store.apply(&parent, event).await }
        });
        assert_eq!(succeeded(&all(calls).await), 1);
        let settled = read(&*store, &parent).await.is_settled();
        assert_eq!(store.read(&child).await.is_err(), settled);
    }
}

pub async fn cancelling_a_family_ends_all_of_it_in_one_commit<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    tree(&*store).await;
    let applied = store.apply(&key(1), cancel()).await.unwrap();
    let stopped = applied.effects.iter().filter(|effect| matches!(effect, Effect::Stop { fence: 1, .. })).count();
    assert_eq!(stopped, 7, "each attempt is stopped");
    let check = |tasks: Vec<Arc<Task>>| {
        for task in tasks {
            assert_eq!(task.phase.outcome(), Some(&Outcome::Cancelled), "{:?}", task.key);
            assert_eq!(task.fence, 2);
        }
    };
    check(members(&*store).await);
    let (_subject, store) = reopened(subject, store).await;
    check(members(&*store).await);
}

pub async fn a_half_cancelled_family_is_never_visible<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    tree(&*store).await;
    let other = Arc::clone(&store);
    let cancelled = tokio::spawn(async move { apply(&*other, &key(1), cancel()).await });
    wait_for("the cancellation", async {
        // Once the deepest task is cancelled, no task above it can settle.
        while !read(&*store, &key(7)).await.is_settled() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    for n in 1..=7 {
        assert_eq!(refused(store.apply(&key(n), settle(1, "late")).await), TransitionError::Settled);
    }
    cancelled.await.unwrap();
}

pub async fn cancelling_a_child_leaves_its_siblings_and_its_parent<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    tree(&*store).await;
    apply(&*store, &key(3), cancel()).await;
    let settled: Vec<_> = members(&*store).await.iter().map(|task| task.is_settled()).collect();
    assert_eq!(settled, [false, false, true, false, true, true, true]);
}

pub async fn a_settled_child_keeps_its_outcome_when_its_family_is_cancelled<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    tree(&*store).await;
    let settled = apply(&*store, &key(2), settle(1, "\"mine\"")).await;
    apply(&*store, &key(1), cancel()).await;
    assert_eq!(read(&*store, &key(2)).await, settled);
}

pub async fn losing_a_parent_ends_its_descendants<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    tree(&*store).await;
    apply(&*store, &key(1), lose(node(1), 1)).await;
    assert!(members(&*store).await.iter().all(|task| task.is_settled()));
}

pub async fn children_end_in_the_commit_that_loses_an_attempt_that_starts_over<S: Subject>() {
    for (on_crash, ended) in [(OnCrash::Retry, true), (OnCrash::Resume, false)] {
        let (subject, store) = empty::<S>().await;
        let mut new = claimed(key(1));
        new.create.policy.on_crash = on_crash;
        create(&*store, new).await;
        apply(&*store, &key(1), spawn(1, claimed(key(2)))).await;
        apply(&*store, &key(2), spawn(1, queued(key(3)))).await;
        let lost = apply(&*store, &key(1), lose(node(1), 1)).await;
        assert!(lost.phase.not_before().is_some(), "it is queued again");
        let (_subject, store) = reopened(subject, store).await;
        for n in [2, 3] {
            assert_eq!(read(&*store, &key(n)).await.phase.outcome().is_some(), ended, "{on_crash:?}");
        }
    }
}

pub async fn the_commit_that_ends_a_child_queues_a_parent_that_waits_for_it<S: Subject>() {
    for (n, end) in [settle(1, "1"), cancel(), lose(node(1), 1)].into_iter().enumerate() {
        let (subject, store) = empty::<S>().await;
        create(&*store, resuming(key(1))).await;
        for child in 2..=3 {
            apply(&*store, &key(1), spawn(1, claimed(key(child)))).await;
        }
        let parked = apply(&*store, &key(1), park_for(1, 0, 0)).await;
        let applied = store.apply(&key(2), end).await.unwrap();
        let queued = |effect: &Effect| matches!(effect, Effect::Queued { key: of, .. } if *of == key(1));
        assert!(applied.effects.iter().any(queued), "the parent is announced as queued: {n}");
        let woken = read(&*store, &key(1)).await;
        assert_eq!((woken.revision, woken.phase.not_before()), (parked.revision + 1, Some(START)));
        let (_subject, store) = reopened(subject, store).await;
        assert_eq!(read(&*store, &key(1)).await, woken);
        let again = claim(&*store, node(2), 1).await.remove(0);
        // It waits for its other child, and only the end of that one wakes it.
        apply(&*store, &key(1), park_for(again.fence, 1, 1)).await;
        apply(&*store, &key(3), cancel()).await;
        assert!(read(&*store, &key(1)).await.phase.not_before().is_some());
    }
}

pub async fn children_of_one_event_are_created_together_and_in_order<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    create(&*store, claimed(key(1))).await;
    let entry = step("", 0, "1");
    let Event::Spawn(mut event) = spawn_all(1, [30, 10, 20].map(|n| queued(key(n)))) else { unreachable!() };
    event.entries.push(entry.clone());
    let effects = store.apply(&key(1), Event::Spawn(event.clone())).await.unwrap().effects;
    let spawned = effects.iter().filter(|effect| matches!(effect, Effect::Spawned { .. })).count();
    assert_eq!(spawned, 3);
    let again = store.apply(&key(1), Event::Spawn(event)).await;
    assert_eq!(refused(again), TransitionError::DuplicateId, "they are not created again");
    let (_subject, store) = reopened(subject, store).await;
    assert_eq!(store.children(&key(1)).await.unwrap(), [30, 10, 20].map(id));
    assert_eq!(store.journal(&key(1), 1).await.unwrap(), [written(entry, 1)]);
}

pub async fn a_parent_that_waits_for_a_range_wakes_when_its_last_child_ends<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    create(&*store, resuming(key(1))).await;
    apply(&*store, &key(1), spawn_all(1, (2..=6).map(|n| claimed(key(n))))).await;
    let parked = apply(&*store, &key(1), park_for(1, 1, 3)).await;
    // The first and the last child are not in the range, and the order of the others does not matter.
    for n in [2, 4, 6, 3] {
        apply(&*store, &key(n), settle(1, "1")).await;
        assert_eq!(read(&*store, &key(1)).await, parked, "child {n}");
    }
    apply(&*store, &key(5), settle(1, "1")).await;
    let woken = claim(&*store, node(2), 1).await.remove(0);
    assert_eq!(woken.key, key(1));
    assert_eq!(
        refused(store.apply(&key(1), park_for(woken.fence, 1, 3)).await),
        TransitionError::AlreadyHappened,
        "nothing would wake it again"
    );
}

pub async fn the_first_child_with_an_open_question_is_found<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    create(&*store, claimed(key(1))).await;
    assert_eq!(store.asking_child(&key(1)).await.unwrap(), None);
    apply(&*store, &key(1), spawn_all(1, (2..=5).map(|n| claimed(key(n))))).await;
    for n in [5, 3] {
        apply(&*store, &key(n), ask(1, 0)).await;
    }
    assert_eq!(store.asking_child(&key(1)).await.unwrap(), Some(id(3)));
    apply(&*store, &key(3), cancel()).await;
    assert_eq!(store.asking_child(&key(1)).await.unwrap(), Some(id(5)));
    apply(&*store, &key(1), cancel()).await;
    assert_eq!(store.asking_child(&key(1)).await.unwrap(), None);
}

pub async fn a_parent_is_not_woken_by_a_child_it_does_not_wait_for<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    create(&*store, resuming(key(1))).await;
    apply(&*store, &key(1), spawn(1, claimed(key(2)))).await;
    let asleep = apply(&*store, &key(1), park(1, Some(5))).await;
    apply(&*store, &key(2), settle(1, "1")).await;
    assert_eq!(read(&*store, &key(1)).await, asleep);
}

pub async fn a_parent_that_parks_while_its_child_ends_is_not_left_parked<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    for n in 0..20 {
        let (parent, child) = (key(n * 2), key(n * 2 + 1));
        create(&*store, resuming(parent.clone())).await;
        apply(&*store, &parent, spawn(1, claimed(child.clone()))).await;
        let mut calls = Vec::new();
        for (key, event) in [(parent.clone(), park_for(1, 0, 0)), (child, settle(1, "1"))] {
            let store = subject.handle().await;
            calls.push(async move { store.apply(&key, event).await });
        }
        let mut results = all(calls).await;
        results.remove(1).unwrap();
        let after = read(&*store, &parent).await;
        match results.remove(0) {
            // The parent was parked first, and the end of the child woke it.
            Ok(_) => assert!(after.phase.not_before().is_some()),
            Err(error) => {
                assert_eq!(error, TransitionError::AlreadyHappened.into());
                assert!(after.phase.active_attempt().is_some(), "the attempt continues");
            }
        }
    }
}

pub async fn deleting_a_family_leaves_nothing_of_it<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    tree(&*store).await;
    for n in 1..=7 {
        record(&*store, &key(n), 1, step("", 0, "1")).await.unwrap();
        store.progress(&key(n), 1, progress(1.0)).await.unwrap();
    }
    let neighbour = create(&*store, queued(key(8))).await;
    apply(&*store, &key(1), cancel()).await;
    apply(&*store, &key(1), Event::Delete(Delete)).await;
    let check = async |store: &dyn Store| {
        for n in 1..=7 {
            assert_eq!(store.read(&key(n)).await.unwrap_err(), StoreError::NotFound);
            assert_eq!(store.journal(&key(n), 1).await.unwrap(), []);
            assert_eq!(store.children(&key(n)).await.unwrap(), []);
        }
        assert_eq!(read(store, &key(8)).await, neighbour);
        assert_eq!(store.count_open_tasks().await.unwrap().iter().map(|count| count.tasks).sum::<u64>(), 1);
    };
    check(&*store).await;
    let (_subject, store) = reopened(subject, store).await;
    check(&*store).await;
    // A new task with the same ID has none of the old data.
    create(&*store, claimed(key(3))).await;
    assert_eq!(store.journal(&key(3), 1).await.unwrap(), []);
    assert_eq!(store.read(&key(3)).await.unwrap().progress, None);
}

pub async fn only_a_settled_root_is_deleted<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    tree(&*store).await;
    for event in [Event::Delete(Delete), Event::Expire(Expire)] {
        assert!(matches!(refused(store.apply(&key(1), event.clone()).await), TransitionError::WrongPhase(_)));
        assert_eq!(refused(store.apply(&key(3), event).await), TransitionError::NotRoot);
    }
    assert_eq!(members(&*store).await.len(), 7);
}

pub async fn an_expired_family_is_deleted_as_a_whole<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    tree(&*store).await;
    apply(&*store, &key(1), cancel()).await;
    assert_eq!(refused(store.apply(&key(1), Event::Expire(Expire)).await), TransitionError::TooEarly);
    subject.set_time(START.plus_ms(3_600_000)).await;
    assert_eq!(due_keys(&*store).await, [key(1)], "only the root of a family is due");
    apply(&*store, &key(1), Event::Expire(Expire)).await;
    for n in 1..=7 {
        assert_eq!(store.read(&key(n)).await.unwrap_err(), StoreError::NotFound);
    }
}

pub async fn equal_ids_of_another_owner_are_not_in_the_family<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    tree(&*store).await;
    // The owner `grace` has tasks with the same IDs, each without a family.
    for n in 1..=7 {
        create(&*store, claimed(key_of("grace", n))).await;
    }
    apply(&*store, &key(1), cancel()).await;
    apply(&*store, &key(1), Event::Delete(Delete)).await;
    for n in 1..=7 {
        assert!(!read(&*store, &key_of("grace", n)).await.is_settled());
        assert_eq!(store.children(&key_of("grace", n)).await.unwrap(), []);
    }
}

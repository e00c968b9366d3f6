//! Nodes: their leases, the attempts that they hold, and those of dead nodes.

use std::sync::Arc;

use longhaul_task::{OnCrash, Outcome, TaskError, ToolRef, TransitionError};

use super::Subject;
use super::kit::*;
use crate::{HeldAttempt, StoreError};

pub async fn only_attempts_of_dead_nodes_are_orphans<S: Subject>() {
    let (subject, one) = empty::<S>().await;
    let other = subject.handle().await;
    one.join(node(1), lasting_lease(&*one), &[]).await.unwrap();
    one.join(node(2), Some(1_000), &[]).await.unwrap();
    for (n, by) in [(1, 1), (2, 2), (3, 3)] {
        let mut new = queued(key(n));
        new.create.claimed_by = Some(node(by));
        create(&*one, new).await;
    }
    create(&*one, queued(key(4))).await;
    let unknown = HeldAttempt { key: key(3), node: node(3), fence: 1 };
    assert_eq!(other.orphans(10).await.unwrap(), vec![unknown.clone()]);

    subject.set_time(START.plus_ms(999)).await;
    assert_eq!(other.orphans(10).await.unwrap(), vec![unknown.clone()]);
    subject.set_time(START.plus_ms(1_000)).await;
    let expired = HeldAttempt { key: key(2), node: node(2), fence: 1 };
    assert_eq!(other.orphans(10).await.unwrap(), [expired, unknown]);
    assert_eq!(other.orphans(1).await.unwrap().len(), 1);
}

pub async fn a_renewed_lease_keeps_its_attempts<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    store.join(node(1), Some(1_000), &[]).await.unwrap();
    create(&*store, claimed(key(1))).await;
    subject.set_time(START.plus_ms(900)).await;
    store.join(node(1), Some(1_000), &[]).await.unwrap();
    subject.set_time(START.plus_ms(1_899)).await;
    assert_eq!(store.orphans(10).await.unwrap(), []);
    subject.set_time(START.plus_ms(1_900)).await;
    assert_eq!(store.orphans(10).await.unwrap().len(), 1);
}

pub async fn a_node_whose_lease_has_ended_loses_its_task_and_cannot_write<S: Subject>() {
    let (subject, one) = empty::<S>().await;
    let other = subject.handle().await;
    one.join(node(1), Some(1_000), &[]).await.unwrap();
    other.join(node(2), lasting_lease(&*other), &[]).await.unwrap();
    let mut new = claimed(key(1));
    new.create.policy.on_crash = OnCrash::Retry;
    new.create.policy.backoff_ms = 0;
    let first = create(&*one, new).await;

    subject.set_time(START.plus_ms(5_000)).await;
    for orphan in other.orphans(10).await.unwrap() {
        apply(&*other, &orphan.key, lose(orphan.node, orphan.fence)).await;
    }
    let second = claim(&*other, node(2), 1).await.remove(0);
    assert_eq!(second.attempt, 2);
    assert_eq!(refused(one.apply(&key(1), settle(first.fence, "\"late\"")).await), TransitionError::Fenced);
    apply(&*other, &key(1), settle(second.fence, "\"won\"")).await;
    assert_eq!(read(&*one, &key(1)).await.phase.outcome(), Some(&answer("\"won\"")));
    assert_eq!(other.orphans(10).await.unwrap(), []);
}

pub async fn an_attempt_is_lost_once<S: Subject>() {
    let (subject, one) = empty::<S>().await;
    let mut handles = vec![one];
    for _ in 0..3 {
        handles.push(subject.handle().await);
    }
    let task = create(&*handles[0], claimed(key(1))).await;
    let calls = handles.clone().into_iter().map(|store| async move { store.apply(&key(1), lose(node(1), 1)).await });
    assert_eq!(succeeded(&all(calls).await), 1);
    let fault = Outcome::Error(TaskError::crash_recovery(&task));
    assert_eq!(read(&*handles[0], &key(1)).await.phase.outcome(), Some(&fault));
}

pub async fn after_a_restart_every_running_attempt_is_an_orphan<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    store.join(node(1), lasting_lease(&*store), &[]).await.unwrap();
    // More than a backend reads at once.
    let creations = (0..2_500).map(|n| {
        let store = Arc::clone(&store);
        let new = if n % 2 == 0 { claimed(key(n)) } else { queued(key(n)) };
        async move { create(&*store, new).await }
    });
    all(creations).await;
    apply(&*store, &key(0), ask(1, 0)).await;
    assert_eq!(store.orphans(usize::MAX).await.unwrap(), []);
    let (_subject, store) = reopened(subject, store).await;
    let orphans = store.orphans(usize::MAX).await.unwrap();
    let expected: Vec<_> =
        (0..2_500).filter(|n| n % 2 == 0).map(|n| HeldAttempt { key: key(n), node: node(1), fence: 1 }).collect();
    assert_eq!(orphans, expected);
}

pub async fn a_late_loss_does_not_end_a_newer_attempt_of_the_same_node<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    create(&*store, resuming(key(1))).await;
    apply(&*store, &key(1), release(1, 0)).await;
    let second = claim(&*store, node(1), 1).await.remove(0);
    assert_eq!(refused(store.apply(&key(1), lose(node(1), 1)).await), TransitionError::Fenced);
    assert_eq!(read(&*store, &key(1)).await, second);
}

pub async fn held_returns_the_attempts_of_a_node<S: Subject>() {
    let (subject, one) = empty::<S>().await;
    let other = subject.handle().await;
    for (n, by) in [(1, 1), (2, 2), (3, 1), (4, 1)] {
        let mut new = queued(key(n));
        new.create.claimed_by = Some(node(by));
        create(&*one, new).await;
    }
    create(&*one, queued(key(5))).await;
    apply(&*one, &key(4), settle(1, "1")).await;
    let held = |n| HeldAttempt { key: key(n), node: node(1), fence: 1 };
    assert_eq!(other.held(node(1), None, 10).await.unwrap(), [held(1), held(3)]);
    assert_eq!(other.held(node(1), None, 1).await.unwrap(), [held(1)]);
    assert_eq!(other.held(node(1), Some(&key(1)), 10).await.unwrap(), [held(3)]);
    assert_eq!(other.held(node(3), None, 10).await.unwrap(), []);
}

pub async fn a_lease_that_has_ended_cannot_be_renewed<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    store.join(node(1), Some(1_000), &[]).await.unwrap();
    subject.set_time(START.plus_ms(1_000)).await;
    assert_eq!(store.join(node(1), Some(1_000), &[]).await, Err(StoreError::Lapsed));
    store.join(node(2), Some(1_000), &[]).await.unwrap();
    if store.is_shared() {
        assert!(
            store.join(node(3), None, &[]).await.is_err(),
            "a shared store cannot detect the end of a node without a lease"
        );
    }
}

pub async fn a_tool_with_queued_tasks_and_no_living_node_is_unserved<S: Subject>() {
    let (subject, one) = empty::<S>().await;
    let other = subject.handle().await;
    let tools = ["a", "b", "c"].map(|name| ToolRef::new(name, "1"));
    one.join(node(1), lasting_lease(&*one), &tools[..1]).await.unwrap();
    other.join(node(2), Some(1_000), &tools[1..2]).await.unwrap();
    assert_eq!(one.unserved().await.unwrap(), []);
    for (n, tool) in (0..).zip(&tools) {
        let mut new = queued(key(n));
        new.create.tool = tool.clone();
        create(&*one, new).await;
    }
    assert_eq!(one.unserved().await.unwrap(), [tools[2].clone()], "another node serves the second tool");
    subject.set_time(START.plus_ms(1_000)).await;
    assert_eq!(one.unserved().await.unwrap(), tools[1..]);
    apply(&*one, &key(2), cancel()).await;
    assert_eq!(one.unserved().await.unwrap(), tools[1..2]);
}

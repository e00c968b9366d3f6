//! Tasks that are due.

use longhaul_task::transition::{Expire, Overdue, Wake};
use longhaul_task::{Event, Outcome, Policy, Retention, TaskError};

use super::Subject;
use super::kit::*;
use crate::Store;

/// Creates tasks from pairs of number and lifetime in milliseconds.
async fn create_with_lifetimes(store: &dyn Store, lifetimes: &[(u32, u64)]) {
    for (n, life_ms_max) in lifetimes {
        let mut new = queued(key(*n));
        new.create.policy = Policy { life_ms_max: *life_ms_max, ..Policy::default() };
        create(store, new).await;
    }
}

pub async fn due_tasks_are_ordered_by_time_and_followed_by_the_next_time<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    create_with_lifetimes(&*store, &[(1, 300), (2, 100), (3, 200), (4, 400)]).await;

    let due = store.due(10).await.unwrap();
    assert_eq!((due.now, due.tasks, due.next), (START, vec![], Some(START.plus_ms(100))));

    subject.set_time(START.plus_ms(300)).await;
    let due = store.due(10).await.unwrap();
    assert_eq!(due.now, START.plus_ms(300));
    let expected = [read(&*store, &key(2)).await, read(&*store, &key(3)).await, read(&*store, &key(1)).await];
    assert_eq!(due.tasks, expected, "in their committed state");
    assert_eq!(due.next, Some(START.plus_ms(400)));
}

pub async fn due_tasks_past_the_limit_are_reported_by_the_next_time<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    create_with_lifetimes(&*store, &[(1, 100), (2, 200), (3, 300)]).await;
    subject.set_time(START.plus_ms(1_000)).await;
    let due = store.due(2).await.unwrap();
    assert_eq!(due.tasks.iter().map(|task| &task.key).collect::<Vec<_>>(), [&key(1), &key(2)]);
    assert_eq!(due.next, Some(START.plus_ms(300)), "it is due already, so the sweep must not sleep");
}

pub async fn a_task_is_no_longer_due_after_its_event<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    create_with_lifetimes(&*store, &[(1, 100), (2, 200)]).await;
    subject.set_time(START.plus_ms(150)).await;
    let ended = apply(&*store, &key(1), Event::Overdue(Overdue)).await;
    assert_eq!(ended.phase.outcome(), Some(&Outcome::Error(TaskError::life_time(100))));
    let due = store.due(10).await.unwrap();
    assert_eq!((due.tasks, due.next), (vec![], Some(START.plus_ms(200))));
}

pub async fn a_settled_task_is_due_when_its_retention_is_over<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    let mut new = claimed(key(1));
    new.create.retention = Retention::FromEnd(500);
    create(&*store, new).await;
    subject.set_time(START.plus_ms(100)).await;
    apply(&*store, &key(1), settle(1, "1")).await;
    assert_eq!(store.due(10).await.unwrap().next, Some(START.plus_ms(600)));

    subject.set_time(START.plus_ms(600)).await;
    assert_eq!(due_keys(&*store).await, [key(1)]);
    apply(&*store, &key(1), Event::Expire(Expire)).await;
    let due = store.due(10).await.unwrap();
    assert_eq!((due.tasks, due.next), (vec![], None));
}

pub async fn a_settled_task_with_unlimited_retention_is_never_due<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    let mut new = claimed(key(1));
    new.create.retention = Retention::Unlimited;
    create(&*store, new).await;
    apply(&*store, &key(1), settle(1, "1")).await;
    assert_eq!(store.due(10).await.unwrap().next, None);
}

pub async fn a_parked_task_is_due_at_its_timer<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    create(&*store, resuming(key(1))).await;
    let wake_at = START.plus_ms(50);
    let parked = apply(&*store, &key(1), park(1, Some(50))).await;
    assert_eq!(store.due(1).await.unwrap().next, Some(wake_at));
    subject.set_time(wake_at).await;
    assert_eq!(due_keys(&*store).await, [key(1)]);
    apply(&*store, &key(1), Event::Wake(Wake { fence: parked.fence })).await;
    assert_eq!(claim(&*store, node(2), 1).await.len(), 1);
}

pub async fn a_timer_wakes_a_waiting_task_and_leaves_its_question_open<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    create(&*store, resuming(key(1))).await;
    apply(&*store, &key(1), ask(1, 0)).await;
    let wake_at = START.plus_ms(50);
    let parked = apply(&*store, &key(1), park(1, Some(50))).await;
    let (subject, store) = {
        subject.set_time(wake_at).await;
        reopened(subject, store).await
    };
    subject.set_time(wake_at).await;
    assert_eq!(due_keys(&*store).await, [key(1)]);
    apply(&*store, &key(1), Event::Wake(Wake { fence: parked.fence })).await;
    let resumed = claim(&*store, node(2), 1).await.remove(0);
    assert_eq!(resumed.phase.questions(), parked.phase.questions());
}

pub async fn due_times_survive_a_restart<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    create_with_lifetimes(&*store, &[(1, 200), (2, 100)]).await;
    let (subject, store) = reopened(subject, store).await;
    subject.set_time(START.plus_ms(200)).await;
    assert_eq!(due_keys(&*store).await, [key(2), key(1)]);
}

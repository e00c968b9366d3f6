//! Timestamps, in particular when the clock jumps back.

use super::Subject;
use super::kit::*;

pub async fn now_is_the_time_of_the_stores_clock<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    assert_eq!(store.now().await.unwrap(), START);
    subject.set_time(START.plus_ms(5)).await;
    assert_eq!(store.now().await.unwrap(), START.plus_ms(5));
    let task = create(&*store, queued(key(1))).await;
    assert_eq!((task.created_at, task.updated_at), (START.plus_ms(5), START.plus_ms(5)));
}

pub async fn a_read_changes_nothing<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    let task = create(&*store, queued(key(1))).await;
    subject.set_time(START.plus_ms(60_000)).await;
    for _ in 0..3 {
        assert_eq!(read(&*store, &key(1)).await, task);
    }
}

pub async fn timestamps_do_not_decrease_when_the_clock_does<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    let mut last = create(&*store, claimed(key(1))).await.updated_at;
    for ms in [500, 100, 0, 700, 300] {
        subject.set_time(START.plus_ms(ms)).await;
        let now = apply(&*store, &key(1), report(1, "on")).await.updated_at;
        assert!(now >= last);
        last = now;
    }
    subject.set_time(START).await;
    apply(&*store, &key(1), spawn(1, queued(key(2)))).await;
    let (parent, child) = (read(&*store, &key(1)).await, read(&*store, &key(2)).await);
    assert!(child.created_at >= parent.created_at);
    assert!(parent.updated_at >= last);
}

pub async fn a_clock_that_jumps_back_makes_no_task_wait_for_ever<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    subject.set_time(START.plus_ms(1_000)).await;
    create(&*store, queued(key(1))).await;
    subject.set_time(START).await;
    // By this clock it is too early for a claim, but the store reports when it can be claimed.
    assert!(claim(&*store, node(1), 1).await.is_empty());
    let next = next_queued(&*store).await.unwrap();
    subject.set_time(next).await;
    assert_eq!(claim(&*store, node(1), 1).await.len(), 1);
}

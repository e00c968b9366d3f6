//! Timestamps, in particular when the clock jumps back.

use longhaul_task::transition::Shorten;
use longhaul_task::{Event, OnCrash, Questions};

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

pub async fn a_clock_that_jumps_back_makes_no_task_wait_longer_than_its_own_wait<S: Subject>() {
    const DAY_MS: u64 = 86_400_000;
    let (subject, store) = empty::<S>().await;
    create(&*store, queued(key(5))).await;
    // Its attempt is older than its question, so that only the deadline of the question will be ahead of the clock.
    create(&*store, claimed(key(6))).await;
    subject.set_time(START.plus_ms(DAY_MS)).await;
    create(&*store, queued(key(1))).await;
    create(&*store, claimed(key(2))).await;
    apply(&*store, &key(2), release(1, 500)).await;
    let mut resumes = claimed(key(3));
    resumes.create.policy.on_crash = OnCrash::Resume;
    create(&*store, resumes).await;
    apply(&*store, &key(3), park(1, Some(700))).await;
    create(&*store, claimed(key(4))).await;
    apply(&*store, &key(4), cancel()).await;
    apply(&*store, &key(6), ask_within(1, 900)).await;
    assert_eq!(store.ahead_of_clock(10).await.unwrap(), []);

    subject.set_time(START).await;
    let (_subject, store) = reopened(subject, store).await;
    let mut ahead = store.ahead_of_clock(10).await.unwrap();
    ahead.sort();
    assert_eq!(ahead, [key(1), key(2), key(3), key(6)]);
    assert_eq!(store.ahead_of_clock(2).await.unwrap().len(), 2);
    for key in &ahead {
        apply(&*store, key, Event::Shorten(Shorten::default())).await;
    }
    assert_eq!(store.ahead_of_clock(10).await.unwrap(), []);
    assert_eq!(read(&*store, &key(1)).await.phase.not_before(), Some(START));
    assert_eq!(read(&*store, &key(2)).await.phase.not_before(), Some(START.plus_ms(500)));
    assert_eq!(read(&*store, &key(3)).await.phase.not_before(), Some(START), "a parked task is woken");
    let deadline = read(&*store, &key(6)).await.phase.questions().and_then(Questions::deadline);
    assert_eq!(deadline, Some(START.plus_ms(900)));
    assert_eq!(claim(&*store, node(1), 5).await.len(), 3);
}

//! Progress: the last write wins, raises no revision, and needs the current fence.

use longhaul_task::Timestamp;

use super::Subject;
use super::kit::*;

pub async fn the_last_progress_wins_and_does_not_raise_the_revision<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    let task = create(&*store, claimed(key(1))).await;
    for done in [1.0, 2.0, 3.0] {
        store.progress(&key(1), 1, progress(done)).await.unwrap();
        let snapshot = store.read(&key(1)).await.unwrap();
        assert_eq!(snapshot.progress.as_deref(), Some(&progress(done)));
        assert_eq!(snapshot.task, task);
    }
}

pub async fn progress_with_an_outdated_fence_is_ignored<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    create(&*store, claimed(key(1))).await;
    store.progress(&key(1), 1, progress(1.0)).await.unwrap();
    apply(&*store, &key(1), release(1, 0)).await;
    let second = claim(&*store, node(2), 1).await.remove(0);
    store.progress(&key(1), second.fence, progress(2.0)).await.unwrap();
    store.progress(&key(1), 1, progress(9.0)).await.unwrap();
    assert_eq!(store.read(&key(1)).await.unwrap().progress.as_deref(), Some(&progress(2.0)));
    apply(&*store, &key(1), settle(second.fence, "1")).await;
    store.progress(&key(1), second.fence, progress(9.0)).await.unwrap();
    assert_eq!(store.read(&key(1)).await.unwrap().progress.as_deref(), Some(&progress(2.0)));
}

pub async fn a_new_attempt_starts_without_progress<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    create(&*store, claimed(key(1))).await;
    store.progress(&key(1), 1, progress(8.0)).await.unwrap();
    subject.set_time(START.plus_ms(10_000)).await;
    apply(&*store, &key(1), report(1, "and 8 is saved with this")).await;
    store.progress(&key(1), 1, progress(9.0)).await.unwrap();
    apply(&*store, &key(1), release(1, 0)).await;
    claim(&*store, node(2), 1).await;
    assert_eq!(store.read(&key(1)).await.unwrap().progress, None);
    // Neither the saved progress nor the pending one is shown.
    subject.set_time(START.plus_ms(20_000)).await;
    create(&*store, queued(key(2))).await;
    let (_subject, store) = reopened(subject, store).await;
    assert_eq!(store.read(&key(1)).await.unwrap().progress, None);
}

pub async fn progress_is_saved_with_the_next_write<S: Subject>() {
    // Also if the clock was set back meanwhile.
    for next_write in [START.plus_ms(10_000), Timestamp::from_ms(START.as_ms() - 10_000)] {
        let (subject, store) = empty::<S>().await;
        create(&*store, claimed(key(1))).await;
        store.progress(&key(1), 1, progress(4.0)).await.unwrap();
        subject.set_time(next_write).await;
        create(&*store, queued(key(2))).await;
        let (_subject, store) = reopened(subject, store).await;
        assert_eq!(store.read(&key(1)).await.unwrap().progress.as_deref(), Some(&progress(4.0)));
    }
}

/// The message of the progress counts as newer than that of the task.
pub async fn a_report_saves_the_progress_before_it<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    create(&*store, claimed(key(1))).await;
    for done in [1.0, 2.0] {
        store.progress(&key(1), 1, progress(done)).await.unwrap();
        apply(&*store, &key(1), report(1, "halfway")).await;
    }
    let (_subject, store) = reopened(subject, store).await;
    assert_eq!(store.read(&key(1)).await.unwrap().progress.as_deref(), Some(&progress(2.0)));
}

pub async fn progress_that_is_not_a_number_makes_no_write_fail<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    create(&*store, claimed(key(1))).await;
    let mut odd = progress(f64::NAN);
    odd.total = Some(f64::INFINITY);
    store.progress(&key(1), 1, odd).await.unwrap();
    subject.set_time(START.plus_ms(10_000)).await;
    create(&*store, queued(key(2))).await;
    let (_subject, store) = reopened(subject, store).await;
    assert!(store.read(&key(1)).await.unwrap().progress.unwrap().done.is_nan());
}

pub async fn the_progress_of_a_parked_task_is_kept<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    create(&*store, resuming(key(1))).await;
    for done in [1.0, 2.0] {
        store.progress(&key(1), 1, progress(done)).await.unwrap();
        // This commit saves the progress so far, so that the next one is newer than what is saved.
        create(&*store, queued(key_of("bob", 2 + u32::from(done > 1.0)))).await;
    }
    apply(&*store, &key(1), park(1, Some(50))).await;
    assert_eq!(store.read(&key(1)).await.unwrap().progress.as_deref(), Some(&progress(2.0)));
}

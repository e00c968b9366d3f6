//! A watch misses no change.

use std::sync::Arc;

use longhaul_task::Event;
use longhaul_task::transition::Delete;

use super::Subject;
use super::kit::*;
use crate::StoreError;

pub async fn a_watch_reports_a_change<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    create(&*store, claimed(key(1))).await;
    let mut watch = store.watch(&key(1));
    apply(&*store, &key(1), report(1, "on")).await;
    wait_for("the change", watch.changed()).await;
    // A read shows the change.
    assert_eq!(read(&*store, &key(1)).await.revision, 2);
}

pub async fn a_watch_may_start_before_its_task_exists<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    let mut watch = store.watch(&key(1));
    create(&*store, queued(key(1))).await;
    wait_for("the creation", watch.changed()).await;
}

pub async fn every_watch_of_a_task_reports_its_change<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    create(&*store, queued(key(1))).await;
    let mut watches: Vec<_> = (0..10).map(|_| store.watch(&key(1))).collect();
    drop(watches.pop());
    apply(&*store, &key(1), cancel()).await;
    for watch in &mut watches {
        wait_for("the end", watch.changed()).await;
    }
}

pub async fn a_watch_that_starts_before_the_read_never_misses_the_end<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    for n in 0..20 {
        create(&*store, claimed(key(n))).await;
    }
    let followers = (0..20).map(|n| {
        let store = Arc::clone(&store);
        async move {
            let mut watch = store.watch(&key(n));
            wait_for("the end of the task", async {
                let mut seen = 0;
                loop {
                    let task = read(&*store, &key(n)).await;
                    assert!(task.revision >= seen, "a read may skip revisions, but must not go back");
                    seen = task.revision;
                    if task.is_settled() {
                        return;
                    }
                    watch.changed().await;
                }
            })
            .await;
        }
    });
    let following = tokio::spawn(all(followers.collect::<Vec<_>>()));
    for n in 0..20 {
        for _ in 0..5 {
            apply(&*store, &key(n), report(1, "on")).await;
        }
        apply(&*store, &key(n), settle(1, "1")).await;
    }
    following.await.unwrap();
}

pub async fn a_watch_reports_progress<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    create(&*store, claimed(key(1))).await;
    let mut watch = store.watch(&key(1));
    store.progress(&key(1), 1, progress(1.0)).await.unwrap();
    wait_for("the progress", watch.changed()).await;
}

pub async fn a_watch_reports_the_deletion_of_its_task<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    create(&*store, claimed(key(1))).await;
    apply(&*store, &key(1), spawn(1, queued(key(2)))).await;
    apply(&*store, &key(1), cancel()).await;
    let mut watches = [store.watch(&key(1)), store.watch(&key(2))];
    apply(&*store, &key(1), Event::Delete(Delete)).await;
    for (n, watch) in (1..).zip(&mut watches) {
        wait_for("the deletion", watch.changed()).await;
        assert_eq!(store.read(&key(n)).await.unwrap_err(), StoreError::NotFound);
    }
}

pub async fn a_watch_of_a_child_reports_the_cancellation_of_its_family<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    create(&*store, claimed(key(1))).await;
    apply(&*store, &key(1), spawn(1, queued(key(2)))).await;
    let mut watch = store.watch(&key(2));
    apply(&*store, &key(1), cancel()).await;
    wait_for("the cancellation", watch.changed()).await;
    assert!(read(&*store, &key(2)).await.is_settled());
}

pub async fn a_watch_reports_neither_other_tasks_nor_refused_events<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    create(&*store, claimed(key_of("ada", 1))).await;
    create(&*store, claimed(key_of("grace", 1))).await;
    let mut watch = store.watch(&key_of("ada", 1));
    apply(&*store, &key_of("grace", 1), cancel()).await;
    refused(store.apply(&key_of("ada", 1), settle(9, "1")).await);
    assert!(!has_changed(&mut watch));
    apply(&*store, &key_of("ada", 1), cancel()).await;
    wait_for("the end", watch.changed()).await;
    assert!(!has_changed(&mut watch), "one change is reported once");
}

//! Two handles on one store: no stale reads and no lost changes.

use longhaul_task::transition::Delete;
use longhaul_task::{Event, TransitionError};

use super::Subject;
use super::kit::*;
use crate::{ListQuery, StoreError};

pub async fn a_handle_reads_what_another_has_written<S: Subject>() {
    let (subject, one) = empty::<S>().await;
    let other = subject.handle().await;
    create(&*one, claimed(key(1))).await;
    for n in 0..20 {
        // The other handle has just read it, so the task may be in its cache.
        let before = read(&*other, &key(1)).await;
        let after = apply(&*one, &key(1), report(1, &n.to_string())).await;
        assert_ne!(before, after);
        assert_eq!(read(&*other, &key(1)).await, after);
    }
    let settled = apply(&*one, &key(1), settle(1, "1")).await;
    assert_eq!(read(&*other, &key(1)).await, settled);
    let listed = other.list(&ListQuery { owner: Some(owner("ada")), after: None, limit: 1 }).await.unwrap();
    assert_eq!(listed.tasks[0].task, settled);
}

pub async fn a_handle_does_not_find_what_another_has_deleted<S: Subject>() {
    let (subject, one) = empty::<S>().await;
    let other = subject.handle().await;
    create(&*one, queued(key(1))).await;
    apply(&*one, &key(1), cancel()).await;
    read(&*other, &key(1)).await;
    apply(&*one, &key(1), Event::Delete(Delete)).await;
    assert_eq!(other.read(&key(1)).await.unwrap_err(), StoreError::NotFound);
}

pub async fn an_event_is_applied_to_what_another_handle_has_written<S: Subject>() {
    let (subject, one) = empty::<S>().await;
    let other = subject.handle().await;
    create(&*one, claimed(key(1))).await;
    read(&*other, &key(1)).await;
    apply(&*one, &key(1), cancel()).await;
    assert_eq!(refused(other.apply(&key(1), settle(1, "late")).await), TransitionError::Settled);
}

pub async fn a_watch_reports_writes_of_another_handle<S: Subject>() {
    let (subject, one) = empty::<S>().await;
    let other = subject.handle().await;
    create(&*one, claimed(key(1))).await;
    let mut watch = other.watch(&key(1));
    for expected in 2..20 {
        apply(&*one, &key(1), report(1, "on")).await;
        wait_for("a change by the other handle", async {
            while read(&*other, &key(1)).await.revision < expected {
                watch.changed().await;
            }
        })
        .await;
    }
}

pub async fn a_watch_of_the_queue_reports_every_task_that_enters_it<S: Subject>() {
    let (subject, one) = empty::<S>().await;
    let other = subject.handle().await;
    create(&*one, claimed(key(1))).await;
    create(&*one, resuming(key(2))).await;
    let mut watch = other.watch_queue();
    let entries = [(1, release(1, 0)), (2, park(1, Some(1)))];
    for (n, event) in entries {
        apply(&*one, &key(n), event).await;
        wait_for("a change of the queue", watch.changed()).await;
    }
    create(&*one, queued(key(3))).await;
    wait_for("a change of the queue", watch.changed()).await;
}

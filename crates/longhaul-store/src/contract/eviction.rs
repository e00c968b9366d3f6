//! Tasks that were evicted from the cache.

use std::sync::Arc;

use longhaul_task::Event;
use longhaul_task::transition::Delete;

use super::kit::*;
use super::{CacheSize, Subject};
use crate::StoreError;

pub async fn a_settled_task_that_was_evicted_reads_back_the_same<S: Subject>() {
    let subject = S::empty(CacheSize::Tiny).await;
    let store = subject.handle().await;
    let mut settled = Vec::new();
    for n in 0..200 {
        create(&*store, claimed(key(n))).await;
        let body = format!("\"{}\"", n.to_string().repeat(500));
        settled.push(apply(&*store, &key(n), settle(1, &body)).await);
    }
    for _ in 0..2 {
        for task in &settled {
            assert_eq!(read(&*store, &task.key).await, *task);
        }
    }
}

pub async fn an_event_is_applied_to_a_task_that_was_evicted<S: Subject>() {
    let subject = S::empty(CacheSize::Tiny).await;
    let store = subject.handle().await;
    for n in 0..100 {
        create(&*store, claimed(key(n))).await;
        apply(&*store, &key(n), settle(1, &format!("\"{}\"", "x".repeat(1_000)))).await;
    }
    assert_eq!(refused(store.create(queued(key(0))).await), longhaul_task::TransitionError::DuplicateId);
    assert_eq!(refused(store.apply(&key(0), cancel()).await), longhaul_task::TransitionError::Settled);
    apply(&*store, &key(0), Event::Delete(Delete)).await;
    assert_eq!(store.read(&key(0)).await.unwrap_err(), StoreError::NotFound);
}

pub async fn a_deleted_task_does_not_reappear_from_the_cache<S: Subject>() {
    let subject = S::empty(CacheSize::Tiny).await;
    let store = subject.handle().await;
    for n in 0..50 {
        create(&*store, claimed(key(n))).await;
        apply(&*store, &key(n), settle(1, "1")).await;
    }
    // A concurrent reader keeps loading tasks into the cache while they are deleted.
    let reader = Arc::clone(&store);
    let reading = tokio::spawn(async move {
        for n in (0..50).cycle().take(2_000) {
            let _ = reader.read(&key(n)).await;
            tokio::task::yield_now().await;
        }
    });
    for n in 0..50 {
        apply(&*store, &key(n), Event::Delete(Delete)).await;
        assert_eq!(store.read(&key(n)).await.unwrap_err(), StoreError::NotFound);
    }
    reading.await.unwrap();
    for n in 0..50 {
        assert_eq!(store.read(&key(n)).await.unwrap_err(), StoreError::NotFound);
    }
}

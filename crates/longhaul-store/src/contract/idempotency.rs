//! A creation that is repeated under its idempotency key finds its task.

use std::sync::Arc;

use longhaul_task::transition::{Delete, Expire};
use longhaul_task::{Event, TaskKey, Timestamp, TransitionError};

use super::Subject;
use super::kit::*;
use crate::{IdempotencyKey, NewTask, Store, StoreError};

const HOUR_MS: u64 = 3_600_000;

/// The request that `digest` stands for.
fn request(key: &str, digest: u8) -> IdempotencyKey {
    IdempotencyKey { key: key.into(), digest: [digest; 32] }
}

fn keyed(task: TaskKey, request: IdempotencyKey) -> NewTask {
    NewTask { idempotency: Some(Box::new(request)), ..queued(task) }
}

async fn tasks_of(store: &dyn Store, name: &str) -> usize {
    let query = crate::ListQuery { owner: Some(owner(name)), after: None, limit: 1_000 };
    store.list(&query).await.unwrap().tasks.len()
}

pub async fn a_repeated_creation_finds_its_task<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    let first = store.create(keyed(key(1), request("order 7", 1))).await.unwrap();
    assert!(!first.existed);
    let again = store.create(keyed(key(2), request("order 7", 1))).await.unwrap();
    assert!(again.existed);
    assert_eq!(again.task, first.task);
    let (_subject, store) = reopened(subject, store).await;
    let again = store.create(keyed(key(3), request("order 7", 1))).await.unwrap();
    assert!(again.existed);
    assert_eq!(again.task, first.task);
    assert_eq!(tasks_of(&*store, "ada").await, 1);
}

pub async fn a_repeated_creation_returns_the_task_as_it_is_now<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    create(&*store, keyed(key(1), request("k", 1))).await;
    let mut now = claim(&*store, node(1), 1).await.remove(0);
    for event in [report(now.fence, "half"), settle(now.fence, "1")] {
        now = apply(&*store, &key(1), event).await;
        let again = store.create(keyed(key(2), request("k", 1))).await.unwrap();
        assert!(again.existed);
        assert_eq!(again.task, now);
        assert_eq!(store.find_created(&owner("ada"), &request("k", 1)).await.unwrap().unwrap().task, now);
    }
}

pub async fn another_request_under_a_used_key_is_refused<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    create(&*store, keyed(key(1), request("k", 1))).await;
    let other = || request("k", 2);
    assert_eq!(store.create(keyed(key(2), other())).await.unwrap_err(), StoreError::IdempotencyKeyUsed);
    let (_subject, store) = reopened(subject, store).await;
    assert_eq!(store.create(keyed(key(2), other())).await.unwrap_err(), StoreError::IdempotencyKeyUsed);
    assert_eq!(store.find_created(&owner("ada"), &other()).await.unwrap_err(), StoreError::IdempotencyKeyUsed);
    assert_eq!(tasks_of(&*store, "ada").await, 1);
}

pub async fn a_request_is_found_under_its_own_key_and_owner_only<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    let of_ada = create(&*store, keyed(key_of("ada", 1), request("k", 1))).await;
    for (name, key) in [("ada", "K"), ("ada", "k "), ("ada", ""), ("grace", "k")] {
        assert!(store.find_created(&owner(name), &request(key, 1)).await.unwrap().is_none(), "{name} {key:?}");
    }
    // Another request under the same key: an owner does not learn that another owner uses it.
    let of_grace = store.create(keyed(key_of("grace", 1), request("k", 2))).await.unwrap();
    assert!(!of_grace.existed);
    assert_eq!(store.find_created(&owner("ada"), &request("k", 1)).await.unwrap().unwrap().task, of_ada);
}

pub async fn of_many_concurrent_creations_under_one_key_one_creates<S: Subject>() {
    let (subject, one) = empty::<S>().await;
    let other = subject.handle().await;
    let calls = (0..32).map(|n| {
        let store = Arc::clone(if n % 2 == 0 { &one } else { &other });
        async move { store.create(keyed(key(n), request("k", 1))).await.unwrap() }
    });
    let created = all(calls).await;
    assert_eq!(created.iter().filter(|created| !created.existed).count(), 1);
    assert!(created.iter().all(|one| one.task.key == created[0].task.key));
    assert_eq!(tasks_of(&*one, "ada").await, 1);
}

pub async fn a_key_is_free_again_after_its_family_was_deleted<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    create(&*store, keyed(key(1), request("deleted", 1))).await;
    create(&*store, keyed(key(2), request("expired", 1))).await;
    for n in [1, 2] {
        apply(&*store, &key(n), cancel()).await;
    }
    apply(&*store, &key(1), Event::Delete(Delete)).await;
    subject.set_time(Timestamp::from_ms(START.as_ms() + HOUR_MS)).await;
    apply(&*store, &key(2), Event::Expire(Expire)).await;
    for name in ["deleted", "expired"] {
        assert!(store.find_created(&owner("ada"), &request(name, 1)).await.unwrap().is_none());
    }
    let (_subject, store) = reopened(subject, store).await;
    for (n, name) in [(3, "deleted"), (4, "expired")] {
        let again = store.create(keyed(key(n), request(name, 2))).await.unwrap();
        assert!(!again.existed);
        assert_eq!(again.task.key, key(n));
    }
}

pub async fn a_key_is_kept_as_long_as_its_family<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    let new = NewTask { idempotency: Some(Box::new(request("k", 1))), ..claimed(key(1)) };
    let root = create(&*store, new).await;
    apply(&*store, &key(1), spawn(root.fence, queued(key(2)))).await;
    apply(&*store, &key(2), cancel()).await;
    assert_eq!(store.create(keyed(key(3), request("k", 1))).await.unwrap().task.key, key(1));
    apply(&*store, &key(1), cancel()).await;
    assert_eq!(store.create(keyed(key(3), request("k", 1))).await.unwrap().task.key, key(1));
}

pub async fn a_refused_creation_leaves_its_key_free<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    create(&*store, queued(key(1))).await;
    assert_eq!(refused(store.create(keyed(key(1), request("k", 1))).await), TransitionError::DuplicateId);
    assert!(store.find_created(&owner("ada"), &request("k", 1)).await.unwrap().is_none());
    assert!(!store.create(keyed(key(2), request("k", 2))).await.unwrap().existed);
}

pub async fn keys_of_every_form_read_back_the_same<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    let keys = ["'; DROP TABLE task; --", "ä 🦀 %_\\", &"x".repeat(1_000)];
    for (n, name) in (0..).zip(keys) {
        create(&*store, keyed(key(n), request(name, u8::MAX))).await;
    }
    let (_subject, store) = reopened(subject, store).await;
    for (n, name) in (0..).zip(keys) {
        let found = store.find_created(&owner("ada"), &request(name, u8::MAX)).await.unwrap();
        assert_eq!(found.unwrap().task.key, key(n), "{name}");
    }
}

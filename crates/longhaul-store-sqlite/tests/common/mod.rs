//! What the tests of this backend share.

// Not every test uses all of it.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use longhaul_store::{Embedded, NewTask, Store, StoreError, SystemClock};
use longhaul_store_sqlite::{SqliteOptions, open};
use longhaul_task::transition::{Cancel, Create, Delete, Settle};
use longhaul_task::{
    Event, Json, NodeId, Outcome, Owner, Policy, Retention, Task, TaskId, TaskKey, Timestamp, ToolRef,
};
use tempfile::TempDir;

/// A new directory, and the path of a store in it.
pub(crate) fn place() -> (TempDir, PathBuf) {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("tasks.db");
    (directory, path)
}

pub(crate) fn opened(path: &Path) -> Embedded {
    open(path, &SqliteOptions::default(), SystemClock).unwrap()
}

pub(crate) fn key(n: u64) -> TaskKey {
    TaskKey { owner: Owner::parse("ada").unwrap(), id: TaskId::mint(Timestamp::from_ms(n), [7; 16]) }
}

/// A running task with arguments of that size.
pub(crate) fn new_task(n: u64, input_bytes: usize) -> NewTask {
    let create = Create {
        key: key(n),
        tool: ToolRef::new("echo", "1"),
        origin: "ext2026".into(),
        policy: Policy::default(),
        retention: Retention::Unlimited,
        claimed_by: Some(NodeId::mint([1; 16])),
        first_fence: 0,
    };
    NewTask { create, input: Json::from_text(format!("\"{}\"", "x".repeat(input_bytes))), idempotency: None }
}

pub(crate) async fn create(store: &impl Store, n: u64) -> Arc<Task> {
    store.create(new_task(n, 100)).await.unwrap().task
}

pub(crate) async fn settle(store: &impl Store, n: u64) -> Arc<Task> {
    let outcome = Outcome::Result { body: Json::from_text(format!("{{\"n\":{n}}}")), is_error: false };
    store.apply(&key(n), Event::Settle(Settle { fence: 1, outcome, entries: Vec::new() })).await.unwrap().task
}

pub(crate) async fn delete(store: &impl Store, n: u64) -> Result<(), StoreError> {
    store.apply(&key(n), Event::Cancel(Cancel::default())).await?;
    store.apply(&key(n), Event::Delete(Delete)).await?;
    Ok(())
}

/// A closed store with so many settled tasks in it.
pub(crate) async fn closed_store(path: &Path, tasks: u64) -> Vec<Arc<Task>> {
    let store = opened(path);
    let creations = (0..tasks).map(|n| {
        let store = store.clone();
        tokio::spawn(async move {
            create(&store, n).await;
            settle(&store, n).await
        })
    });
    let mut settled = Vec::new();
    for creation in creations.collect::<Vec<_>>() {
        settled.push(creation.await.unwrap());
    }
    store.close().await;
    settled
}

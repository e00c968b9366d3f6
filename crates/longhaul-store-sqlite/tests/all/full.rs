//! A store without room: a clear refusal, nothing acknowledged is lost, and work goes on when there is room again.

use std::path::Path;

use crate::common::{delete, key, new_task, place};
use longhaul_store::{Embedded, Store, StoreError, SystemClock};
use longhaul_store_sqlite::{SqliteOptions, open};
use tempfile::TempDir;

/// Creates tasks until there is no room; says how many were acknowledged.
async fn fill(store: &Embedded) -> u64 {
    for n in 0.. {
        match store.create(new_task(n, 2_000)).await {
            Ok(_) => {}
            Err(StoreError::Full(_)) => return n,
            Err(error) => panic!("not full, but: {error}"),
        }
    }
    unreachable!("the store has no end")
}

async fn all_there(store: &Embedded, count: u64) {
    for n in 0..count {
        store.read(&key(n)).await.unwrap();
    }
    assert_eq!(store.read(&key(count)).await.unwrap_err(), StoreError::NotFound);
}

async fn fills_up_and_goes_on(path: &Path, options: &SqliteOptions) {
    let store = open(path, options, SystemClock).unwrap();
    store.check().await.unwrap();
    let count = fill(&store).await;
    assert!(count > 10, "{count} tasks were room for");
    assert_eq!(store.check().await.unwrap_err().code(), "STORE_FULL");
    all_there(&store, count).await;

    store.close().await;
    let store = open(path, options, SystemClock).unwrap();
    all_there(&store, count).await;
    let error = store.create(new_task(count, 2_000)).await.unwrap_err();
    assert_eq!(error.code(), "STORE_FULL", "{error}");

    assert_eq!(store.check().await.unwrap_err().code(), "STORE_FULL");

    for n in 0..count / 2 {
        delete(&store, n).await.unwrap();
    }
    store.check().await.unwrap();
    for n in 0..count / 4 {
        store.create(new_task(n, 2_000)).await.unwrap();
    }
    for n in count / 2..count {
        store.read(&key(n)).await.unwrap();
    }
}

#[tokio::test]
async fn a_file_at_its_limit_keeps_what_it_has_and_takes_more_when_something_is_deleted() {
    let (_directory, path) = place();
    let options = SqliteOptions::default().file_bytes_max(Some(512 << 10));
    fills_up_and_goes_on(&path, &options).await;
}

#[tokio::test]
async fn a_write_that_is_too_large_fails_no_later_one() {
    let (_directory, path) = place();
    let options = SqliteOptions::default().file_bytes_max(Some(512 << 10));
    let store = open(path, &options, SystemClock).unwrap();
    let error = store.create(new_task(1, 1 << 20)).await.unwrap_err();
    assert_eq!(error.code(), "STORE_FULL");
    store.create(new_task(1, 100)).await.unwrap();
}

#[cfg(target_os = "linux")]
mod disk {
    use std::process::Command;

    use super::*;

    /// A file system of its own, small; none where the tests may not mount one.
    struct SmallDisk(TempDir);

    impl SmallDisk {
        fn mount() -> Option<Self> {
            let directory = TempDir::new().unwrap();
            let mount = Command::new("mount")
                .args(["-t", "tmpfs", "-o", "size=2m", "tmpfs"])
                .arg(directory.path())
                .output()
                .ok()?;
            mount.status.success().then_some(Self(directory))
        }
    }

    impl Drop for SmallDisk {
        fn drop(&mut self) {
            let _ = Command::new("umount").arg("--lazy").arg(self.0.path()).status();
        }
    }

    #[tokio::test]
    async fn a_full_disk_loses_nothing_that_was_acknowledged() {
        let Some(disk) = SmallDisk::mount() else {
            eprintln!("skipped: only root can mount a small disk; the limit of the file is tested all the same");
            return;
        };
        let path = disk.0.path().join("tasks.db");
        let store = open(&path, &SqliteOptions::default(), SystemClock).unwrap();
        let count = fill(&store).await;
        assert!(count > 10, "{count} tasks were room for");
        all_there(&store, count).await;
        // As a crash leaves it: the files alone, where there is room.
        let elsewhere = TempDir::new().unwrap();
        for name in ["tasks.db", "tasks.db-wal"] {
            std::fs::copy(disk.0.path().join(name), elsewhere.path().join(name)).unwrap();
        }
        let copy = open(elsewhere.path().join("tasks.db"), &SqliteOptions::default(), SystemClock).unwrap();
        all_there(&copy, count).await;

        // Makes room on the disk.
        let remount = ["-o", "remount,size=64m"];
        assert_eq!(store.check().await.unwrap_err().code(), "STORE_FULL");
        assert!(Command::new("mount").args(remount).arg(disk.0.path()).status().unwrap().success());
        store.check().await.expect("it finds out by itself");
        store.create(new_task(count, 2_000)).await.unwrap();
        all_there(&store, count + 1).await;
    }
}

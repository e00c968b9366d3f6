//! The files of a store are removed, moved or replaced while it is open: it stops, and acknowledges nothing that the next
//! process would not find.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{closed_store, create, key, new_task, opened, place};
use longhaul_store::{Store, SystemClock};
use longhaul_store_sqlite::{SqliteOptions, backup, open};

const FILES: [&str; 4] = ["tasks.db", "tasks.db-wal", "tasks.db-shm", "tasks.db.lock"];

fn remove(file: &Path) {
    fs::remove_file(file).unwrap();
}

fn move_away(file: &Path) {
    fs::rename(file, file.with_extension("moved")).unwrap();
}

fn replace_by_a_copy(file: &Path) {
    let copy = file.with_extension("copy");
    fs::copy(file, &copy).unwrap();
    fs::rename(copy, file).unwrap();
}

const ACCIDENTS: [fn(&Path); 3] = [remove, move_away, replace_by_a_copy];

#[tokio::test]
async fn a_write_after_the_loss_of_a_file_is_not_acknowledged() {
    for name in FILES {
        for accident in ACCIDENTS {
            let (directory, path) = place();
            let store = opened(&path);
            create(&store, 1).await;
            let file = directory.path().join(name);
            accident(&file);
            let error = store.create(new_task(2, 100)).await.expect_err(name);
            assert_eq!(error.code(), "STORE_STOPPED", "{error}");
            assert!(error.to_string().contains(name), "{error}");
            assert!(store.stopped().await.contains(name));
            assert_eq!(store.check().await.unwrap_err().code(), "STORE_STOPPED");
        }
    }
}

#[tokio::test]
async fn the_loss_of_a_file_is_noticed_without_a_write() {
    let lose = |name: &'static str| async move {
        let (directory, path) = place();
        let store = opened(&path);
        create(&store, 1).await;
        remove(&directory.path().join(name));
        let reason = tokio::time::timeout(std::time::Duration::from_secs(10), store.stopped()).await;
        assert!(reason.expect(name).contains(name));
    };
    let [database, log, memory, lock] = FILES;
    tokio::join!(lose(database), lose(log), lose(memory), lose(lock));
}

#[tokio::test]
async fn a_directory_that_is_moved_takes_the_store_with_it() {
    let (directory, path) = place();
    let inner = directory.path().join("of its own");
    fs::create_dir(&inner).unwrap();
    let path = inner.join(path.file_name().unwrap());
    let store = opened(&path);
    create(&store, 1).await;
    fs::rename(&inner, directory.path().join("elsewhere")).unwrap();
    assert_eq!(store.create(new_task(2, 100)).await.unwrap_err().code(), "STORE_STOPPED");
}

/// What `cp backup.db tasks.db` does: the file is the same, and its content is another.
#[tokio::test]
async fn a_backup_that_is_copied_over_an_open_store_stops_it() {
    let (directory, path) = place();
    closed_store(&path, 20).await;
    let copy = directory.path().join("copy.db");
    backup(&path, &copy).unwrap();
    let store = opened(&path);
    create(&store, 100).await;
    fs::copy(&copy, &path).unwrap();
    let error = store.create(new_task(101, 100)).await.unwrap_err();
    assert_eq!(error.code(), "STORE_STOPPED", "{error}");
    assert!(error.to_string().contains("overwritten"), "{error}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_store_is_locked_though_its_lock_file_is_gone() {
    let (directory, path) = place();
    let store = opened(&path);
    create(&store, 1).await;
    let lock: PathBuf = directory.path().join("tasks.db.lock");
    remove(&lock);
    for _ in 0..2 {
        let second = open(&path, &SqliteOptions::default(), SystemClock).unwrap_err();
        assert_eq!(second.code(), "STORE_LOCKED", "{second}");
        assert!(!lock.exists(), "a refused process leaves no lock file");
    }
    store.close().await;
    assert!(opened(&path).read(&key(1)).await.is_ok());
}

#[tokio::test]
async fn a_store_that_lost_its_lock_file_leaves_that_of_the_next_process_alone() {
    let (directory, path) = place();
    let store = opened(&path);
    for name in FILES {
        remove(&directory.path().join(name));
    }
    let next = opened(&path);
    assert_eq!(store.create(new_task(1, 100)).await.unwrap_err().code(), "STORE_STOPPED");
    store.close().await;
    assert!(directory.path().join("tasks.db.lock").exists());
    create(&next, 1).await;
    next.close().await;
}

//! A backup is complete, shows the store at one moment, and can be opened as a store.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::common::{closed_store, create, key, new_task, opened, place};
use longhaul_store::Store;
use longhaul_store_sqlite::{backup, open_read_only};
use longhaul_task::Event;
use longhaul_task::transition::{NewChild, Spawn};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_under_writes_is_complete_and_of_one_moment() {
    let (directory, path) = place();
    let store = opened(&path);
    // Each writer adds children to its parent. A child and its parent's count of children are written in one commit.
    let parents = 8;
    for n in 0..parents {
        create(&store, n).await;
    }
    let enough = Arc::new(AtomicBool::new(false));
    let acknowledged = Arc::new(AtomicU64::new(0));
    let writers = (0..parents).map(|parent| {
        let (store, enough, acknowledged) = (store.clone(), Arc::clone(&enough), Arc::clone(&acknowledged));
        tokio::spawn(async move {
            for n in 1.. {
                let child = new_task(n * 1_000 + parent, 500);
                let spawn = Spawn {
                    fence: 1,
                    children: vec![NewChild { create: child.create, input: child.input }],
                    entries: Vec::new(),
                };
                store.apply(&key(parent), Event::Spawn(Box::new(spawn))).await.unwrap();
                acknowledged.fetch_add(1, Ordering::SeqCst);
                if enough.load(Ordering::SeqCst) {
                    return;
                }
            }
        })
    });
    let writers: Vec<_> = writers.collect();
    for n in 0..5 {
        // At least 50 more children are written before each backup.
        let seen = acknowledged.load(Ordering::SeqCst);
        while acknowledged.load(Ordering::SeqCst) < seen + 50 {
            tokio::task::yield_now().await;
        }
        let before = acknowledged.load(Ordering::SeqCst);
        let (from, to) = (path.clone(), directory.path().join(format!("backup-{n}.db")));
        let copy = to.clone();
        let made = tokio::task::spawn_blocking(move || backup(&from, &copy)).await.unwrap().unwrap();
        assert!(made.tasks >= before + parents, "{} tasks; {before} children had been acknowledged", made.tasks);
        assert_eq!(made.bytes, to.metadata().unwrap().len());

        let copy = opened(&to);
        let mut children = 0;
        for parent in 0..parents {
            let counted = copy.read(&key(parent)).await.unwrap().task.family.children;
            let there = copy.children(&key(parent)).await.unwrap();
            assert_eq!(there.len(), counted as usize);
            children += there.len() as u64;
        }
        assert_eq!(made.tasks, children + parents);
    }
    enough.store(true, Ordering::SeqCst);
    for writer in writers {
        writer.await.unwrap();
    }
}

#[tokio::test]
async fn a_backup_is_one_private_file_and_a_store() {
    let (directory, path) = place();
    let to = directory.path().join("copy.db");
    let settled = closed_store(&path, 20).await;
    assert_eq!(backup(&path, &to).unwrap().tasks, 20);
    for left in ["copy.db.partial", "copy.db-wal", "copy.db-shm", "copy.db-journal"] {
        assert!(!directory.path().join(left).exists(), "{left}");
    }
    #[cfg(unix)]
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&to.metadata().unwrap().permissions()) & 0o777, 0o600);
    let store = opened(&to);
    for task in settled {
        assert_eq!(store.read(&task.key).await.unwrap().task, task);
    }
    create(&store, 100).await;
}

#[tokio::test]
async fn a_backup_overwrites_no_file_and_leaves_no_partial_one() {
    let (directory, path) = place();
    let to = directory.path().join("copy.db");
    closed_store(&path, 1).await;
    std::fs::write(&to, "mine").unwrap();
    assert_eq!(backup(&path, &to).unwrap_err().code(), "BACKUP_EXISTS");
    assert_eq!(std::fs::read_to_string(&to).unwrap(), "mine");

    let nothing = directory.path().join("nothing.db");
    let copy = directory.path().join("copy-of-nothing.db");
    assert_eq!(backup(&nothing, &copy).unwrap_err().code(), "STORE_MISSING");
    assert!(!nothing.exists() && !copy.exists());
}

#[tokio::test]
async fn of_two_backups_to_one_path_one_is_made_and_the_other_is_refused() {
    let (directory, path) = place();
    let to = directory.path().join("copy.db");
    closed_store(&path, 200).await;
    for round in 0..20 {
        let at_once = std::sync::Barrier::new(2);
        let made: Vec<_> = std::thread::scope(|scope| {
            let copy = || {
                at_once.wait();
                backup(&path, &to)
            };
            let threads = [scope.spawn(copy), scope.spawn(copy)];
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(made.iter().filter(|made| made.is_ok()).count(), 1, "round {round}: {made:?}");
        let refused = made.iter().find_map(|made| made.as_ref().err()).unwrap();
        assert!(matches!(refused.code(), "BACKUP_EXISTS" | "BACKUP_UNDER_WAY"), "round {round}: {refused}");
        assert_eq!(backup(&path, &to).unwrap_err().code(), "BACKUP_EXISTS");
        assert!(!directory.path().join("copy.db.partial").exists());
        std::fs::remove_file(&to).unwrap();
    }
}

#[tokio::test]
async fn a_partial_file_of_a_killed_backup_is_named_and_left_alone() {
    let (directory, path) = place();
    let to = directory.path().join("copy.db");
    let partial = directory.path().join("copy.db.partial");
    closed_store(&path, 1).await;
    std::fs::write(&partial, "half a copy").unwrap();
    let refused = backup(&path, &to).unwrap_err();
    assert_eq!(refused.code(), "BACKUP_UNDER_WAY");
    assert!(refused.to_string().contains(partial.to_str().unwrap()), "{refused}");
    assert_eq!(std::fs::read_to_string(&partial).unwrap(), "half a copy");
    std::fs::remove_file(&partial).unwrap();
    backup(&path, &to).unwrap();
}

#[tokio::test]
async fn a_damaged_store_gives_no_backup() {
    let (directory, path) = place();
    let to = directory.path().join("copy.db");
    closed_store(&path, 500).await;
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 4_096 / 2 * 4_096;
    bytes[middle..][..4_096].fill(0x5a);
    std::fs::write(&path, bytes).unwrap();
    assert_eq!(backup(&path, &to).unwrap_err().code(), "STORE_DAMAGED");
    assert!(!to.exists() && !directory.path().join("copy.db.partial").exists());
    assert!(open_read_only(&path).is_ok(), "what is readable can still be read");
}

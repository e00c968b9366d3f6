//! What a file goes through before it is used: each that cannot be is refused with a clear error, and left alone.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use crate::common::{closed_store, create, key, opened, place, settle};
use longhaul_store::embedded::{DiskError, Reader};
use longhaul_store::{ListQuery, OpenError, Store, StoreError, SystemClock};
use longhaul_store_sqlite::{SqliteOptions, open, open_read_only};
use longhaul_task::transition::Cancel;
use longhaul_task::{Event, Task};
use tempfile::TempDir;

fn refusal(path: &Path) -> OpenError {
    open(path, &SqliteOptions::default(), SystemClock).unwrap_err()
}

/// Runs SQL on a file that is not open elsewhere.
fn sql(path: &Path, sql: &str) {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.execute_batch(sql).unwrap();
}

#[tokio::test]
async fn a_file_of_a_newer_version_is_refused_by_both_numbers_and_left_alone() {
    let (_directory, path) = place();
    closed_store(&path, 1).await;
    sql(&path, "PRAGMA user_version = 9");
    let before = fs::read(&path).unwrap();
    let error = refusal(&path);
    assert!(matches!(error, OpenError::Newer { found: 9, known: 7, .. }), "{error}");
    assert!(error.to_string().contains("has version 9") && error.to_string().contains("up to 7"), "{error}");
    assert_eq!(error.code(), "STORE_NEWER");
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(open_read_only(&path).unwrap_err().code(), "STORE_NEWER");
}

#[test]
fn another_programs_database_is_refused_and_left_alone() {
    let (_directory, path) = place();
    sql(&path, "CREATE TABLE recipe (name TEXT); INSERT INTO recipe VALUES ('bread')");
    let before = fs::read(&path).unwrap();
    assert_eq!(refusal(&path).code(), "STORE_FOREIGN");
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn what_is_no_database_is_refused_and_left_alone() {
    let (directory, path) = place();
    for text in ["x", "dear diary", &"dear diary, ".repeat(1_000)] {
        fs::write(&path, text).unwrap();
        assert_eq!(refusal(&path).code(), "STORE_NOT_A_DATABASE");
        assert_eq!(open_read_only(&path).unwrap_err().code(), "STORE_NOT_A_DATABASE");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
    assert_eq!(refusal(directory.path()).code(), "STORE_IS_A_DIRECTORY");
    assert_eq!(open_read_only(directory.path()).unwrap_err().code(), "STORE_IS_A_DIRECTORY");
}

#[tokio::test]
async fn a_refused_store_has_nothing_beside_it_that_was_not_there() {
    let (directory, path) = place();
    closed_store(&path, 1).await;
    let whole = fs::read(&path).unwrap();
    let mut scribbled = whole.clone();
    scribbled[4_096..8_192].fill(0x5a);
    for (bytes, code) in [
        (b"dear diary".to_vec(), "STORE_NOT_A_DATABASE"),
        (whole[..whole.len() - 100].to_vec(), "STORE_DAMAGED"),
        (scribbled, "STORE_DAMAGED"),
    ] {
        fs::write(&path, &bytes).unwrap();
        assert_eq!(refusal(&path).code(), code);
        assert_eq!(fs::read(&path).unwrap(), bytes);
        assert_eq!(names(directory.path()), ["tasks.db"]);
    }
    refusal(directory.path());
    assert_eq!(names(directory.path()), ["tasks.db"]);
}

/// A store as a crash leaves it: the log not yet in the file.
#[tokio::test]
async fn a_refused_store_keeps_its_log() {
    let (directory, path) = place();
    let store = opened(&path);
    create(&store, 1).await;
    sql(&path, "PRAGMA user_version = 9");
    let left = TempDir::new().unwrap();
    for name in ["tasks.db", "tasks.db-wal"] {
        fs::copy(directory.path().join(name), left.path().join(name)).unwrap();
    }
    let copy = left.path().join("tasks.db");
    let before = (fs::read(&copy).unwrap(), fs::read(left.path().join("tasks.db-wal")).unwrap());
    assert_eq!(refusal(&copy).code(), "STORE_NEWER");
    assert_eq!((fs::read(&copy).unwrap(), fs::read(left.path().join("tasks.db-wal")).unwrap()), before);
    drop(store);
}

#[test]
fn a_directory_with_a_typing_error_is_not_made() {
    let directory = TempDir::new().unwrap();
    let error = refusal(&directory.path().join("tsaks/tasks.db"));
    assert_eq!(error.code(), "STORE_NO_DIRECTORY");
    assert!(error.to_string().contains("tsaks for the store"), "{error}");
    assert_eq!(names(directory.path()), [""; 0]);
}

#[test]
fn a_file_with_nothing_in_it_is_not_a_store_yet() {
    let (_directory, path) = place();
    fs::write(&path, "").unwrap();
    assert_eq!(open_read_only(&path).unwrap_err().code(), "STORE_EMPTY");
    opened(&path);
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_file_that_was_cut_off_is_refused() {
    let (_directory, path) = place();
    closed_store(&path, 200).await;
    let whole = fs::read(&path).unwrap();
    for bytes in [1, 15, 16, 99, 100, 4_095, 4_096, whole.len() / 2, whole.len() - 4_096, whole.len() - 1] {
        fs::write(&path, &whole[..bytes]).unwrap();
        let error = refusal(&path);
        assert!(matches!(error.code(), "STORE_DAMAGED" | "STORE_NOT_A_DATABASE"), "{bytes} bytes: {error}");
    }
    fs::write(&path, &whole).unwrap();
    opened(&path);
}

/// Opens a damaged file. Returns whether it is refused. If it is not, the damage must be without effect (a free page,
/// an unused byte), and all tasks must be there.
async fn is_refused(path: &Path, damaged: &[u8], settled: &[Arc<Task>]) -> bool {
    fs::write(path, damaged).unwrap();
    let Ok(store) = open(path, &SqliteOptions::default(), SystemClock) else { return true };
    for task in settled {
        assert_eq!(store.read(&task.key).await.unwrap().task, *task);
    }
    store.close().await;
    false
}

#[tokio::test]
async fn a_page_of_rubbish_is_refused_or_harmless() {
    let (_directory, path) = place();
    let settled = closed_store(&path, 100).await;
    let whole = fs::read(&path).unwrap();
    let pages = whole.len() / 4_096;
    let mut refused = 0;
    for page in 0..pages {
        let mut damaged = whole.clone();
        damaged[page * 4_096..][..4_096].fill(0x5a);
        refused += usize::from(is_refused(&path, &damaged, &settled).await);
    }
    assert!(refused * 10 > pages * 8, "only {refused} of {pages} were noticed");
}

#[tokio::test]
async fn a_flipped_bit_in_the_header_is_refused_or_harmless() {
    let (_directory, path) = place();
    let settled = closed_store(&path, 5).await;
    let whole = fs::read(&path).unwrap();
    let mut refused = 0;
    for byte in 0..100 {
        let mut damaged = whole.clone();
        damaged[byte] ^= 0x81;
        refused += usize::from(is_refused(&path, &damaged, &settled).await);
    }
    assert!(refused > 30, "only {refused} were noticed");
}

#[tokio::test]
async fn damage_under_a_running_store_is_an_error_and_never_a_wrong_answer() {
    let (_directory, path) = place();
    let settled = closed_store(&path, 500).await;
    let mut options = SqliteOptions::default();
    options.limits.cache_bytes_max = 0;
    let store = open(&path, &options, SystemClock).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 4_096 / 2 * 4_096;
    bytes[middle..][..20 * 4_096].fill(0x5a);
    fs::write(&path, bytes).unwrap();
    let mut failed = 0;
    for task in settled {
        match store.read(&task.key).await {
            Ok(snapshot) => assert_eq!(snapshot.task, task),
            Err(error) => {
                assert!(matches!(error, StoreError::Stopped(_)), "{error}");
                failed += 1;
            }
        }
    }
    assert!(failed > 0);
}

#[cfg(unix)]
#[tokio::test]
async fn every_file_of_a_store_is_its_users_alone() {
    use std::os::unix::fs::PermissionsExt;

    let directory = TempDir::new().unwrap();
    let new_directory = directory.path().join("of/its/own");
    let path = new_directory.join("tasks.db");
    longhaul_store_sqlite::create_directory(&path).unwrap();
    let store = opened(&path);
    create(&store, 1).await;
    for entry in fs::read_dir(&new_directory).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{:?}", entry.path());
    }
    assert_eq!(names(&new_directory), ["tasks.db", "tasks.db-shm", "tasks.db-wal", "tasks.db.lock"]);
    assert_eq!(new_directory.metadata().unwrap().permissions().mode() & 0o777, 0o700);
}

#[tokio::test]
async fn a_closed_store_is_one_file_and_can_be_opened_again_at_once() {
    let (directory, path) = place();
    for n in 0..5 {
        let store = opened(&path);
        create(&store, n).await;
        let other_handle = store.clone();
        store.close().await;
        assert_eq!(names(directory.path()), ["tasks.db"]);
        let late = other_handle.create(crate::common::new_task(99, 100)).await.unwrap_err();
        assert_eq!(late.code(), "STORE_STOPPED", "{late}");
        assert!(other_handle.read(&key(98)).await.is_err());
        other_handle.close().await;
        open_read_only(&path).unwrap().read(&key(n)).unwrap().unwrap();
        assert_eq!(names(directory.path()), ["tasks.db"], "looking leaves nothing behind");
    }
    let store = opened(&path);
    for n in 0..5 {
        store.read(&key(n)).await.unwrap();
    }
}

#[tokio::test]
async fn an_operator_can_look_at_a_store_that_a_server_has() {
    let (_directory, path) = place();
    let store = opened(&path);
    create(&store, 1).await;
    assert_eq!(refusal(&path).code(), "STORE_LOCKED");

    let look = open_read_only(&path).unwrap();
    assert_eq!(look.read(&key(1)).unwrap().unwrap().task, store.read(&key(1)).await.unwrap().task);
    let settled = settle(&store, 1).await;
    create(&store, 2).await;
    assert_eq!(look.read(&key(1)).unwrap().unwrap().task, settled);
    let page = look.list(&ListQuery { owner: None, after: None, limit: 10 }).unwrap();
    assert_eq!(page.tasks.len(), 2);

    // Also after the end of the server. It could not remove a log that a reader has open, but the log is empty.
    store.close().await;
    assert_eq!(fs::metadata(path.with_file_name("tasks.db-wal")).unwrap().len(), 0);
    assert_eq!(look.read(&key(1)).unwrap().unwrap().task, settled);
    assert!(open_read_only(&path).unwrap().read(&key(2)).unwrap().is_some());
}

#[test]
fn looking_at_a_store_that_is_not_there_makes_none() {
    let (directory, path) = place();
    assert_eq!(open_read_only(&path).unwrap_err().code(), "STORE_MISSING");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_row_that_this_program_did_not_write_is_an_error_and_no_panic() {
    let (_directory, path) = place();
    closed_store(&path, 2).await;
    for nonsense in ["phase = 'dancing'", "node = NULL, phase = 'running'", "revision = -1", "outcome = 'lost'"] {
        sql(&path, &format!("UPDATE task SET {nonsense} WHERE id = '{}'", key(1).id));
        let look = open_read_only(&path).unwrap();
        assert!(matches!(look.read(&key(1)), Err(DiskError::Unreadable(_))), "{nonsense}");
        assert!(look.read(&key(0)).unwrap().is_some());
    }
}

/// The fault is in one row, so the store goes on for all others.
#[tokio::test]
async fn an_unreadable_row_fails_requests_for_its_task_alone() {
    let (_directory, path) = place();
    let store = opened(&path);
    for n in 0..3 {
        create(&store, n).await;
    }
    store.close().await;
    sql(&path, &format!("UPDATE task SET phase = 'dancing', due_at = 1 WHERE id = '{}'", key(1).id));
    let store = opened(&path);
    let cancel = async |n| store.apply(&key(n), Event::Cancel(Cancel::default())).await;
    let (read, cancelled) = (store.read(&key(1)).await.unwrap_err(), cancel(1).await.unwrap_err());
    for error in [&read, &cancelled] {
        assert_eq!(error.code(), "STORE_DAMAGED", "{error}");
        assert!(error.to_string().contains("cannot be read") && !error.to_string().contains("stopped"), "{error}");
    }
    // In one batch with a request that is carried out.
    let (refused, done) = tokio::join!(cancel(1), cancel(0));
    assert!(refused.is_err() && done.is_ok(), "{done:?}");
    assert_eq!(store.due(10).await.unwrap().tasks, [], "other tasks that are due are still found");
    create(&store, 4).await;
    settle(&store, 2).await;
    store.check().await.unwrap();
}

#[tokio::test]
async fn a_store_without_its_version_number_is_damaged_and_the_schema_is_not_shown() {
    let (_directory, path) = place();
    closed_store(&path, 1).await;
    sql(&path, "PRAGMA user_version = 0");
    let before = fs::read(&path).unwrap();
    for error in [refusal(&path), open_read_only(&path).unwrap_err()] {
        assert_eq!(error.code(), "STORE_DAMAGED", "{error}");
        let text = error.to_string();
        assert!(text.contains("version") && !text.contains("CREATE") && text.lines().count() == 1, "{text}");
    }
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[tokio::test]
async fn a_store_with_a_missing_table_shows_no_statement() {
    let (_directory, path) = place();
    closed_store(&path, 1).await;
    sql(&path, "DROP TABLE progress");
    let error = open_read_only(&path).unwrap().read(&key(0)).unwrap_err();
    assert_eq!(error.to_string(), "no such table: progress");
}

#[cfg(unix)]
#[tokio::test]
async fn a_store_in_use_is_locked_under_every_name_that_leads_to_it() {
    let (directory, path) = place();
    let store = opened(&path);
    let link = directory.path().join("link.db");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert_eq!(refusal(&link).code(), "STORE_LOCKED");
    let roundabout = directory.path().join(".").join("tasks.db");
    assert_eq!(refusal(&roundabout).code(), "STORE_LOCKED");
    drop(store);
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_with_a_second_name_of_its_own_is_refused() {
    let (directory, path) = place();
    closed_store(&path, 1).await;
    fs::hard_link(&path, directory.path().join("other.db")).unwrap();
    let error = refusal(&path);
    assert!(error.to_string().contains("hard link"), "{error}");
}

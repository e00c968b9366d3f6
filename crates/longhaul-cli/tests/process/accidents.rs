//! Accidents of operators: files that vanish under a server, a full disk at a stop.

use std::path::Path;

use longhaul_testkit::in_time;
use rustix::process::Signal;
use serde_json::json;

use crate::kit::{IGNORE_FILE_LIMIT, Launch, ServerProcess, place};
use crate::operator::run;
use crate::start;

#[tokio::test]
async fn a_server_that_lost_a_file_of_its_store_ends_and_names_the_file() {
    let lose = |ending: &'static str| async move {
        let (_directory, file) = place("tasks.db");
        let (server, mut client) = start(&file).await;
        let id = client.create("slow_compute", json!({ "seconds": 1_000 })).await.unwrap();
        client.get(&id).await.unwrap();
        let lost = format!("{}{ending}", file.display());
        std::fs::remove_file(&lost).unwrap();
        server.says(&format!("{lost} was removed or moved")).await;
        server.says("[STORE_STOPPED]").await;
        assert_eq!(server.exit_code().await, Some(4), "without {ending}");
    };
    tokio::join!(lose(""), lose("-wal"), lose("-shm"), lose(".lock"));
}

#[tokio::test]
async fn a_task_that_is_created_after_the_loss_of_the_file_is_not_acknowledged() {
    let (directory, file) = place("tasks.db");
    let (server, mut client) = start(&file).await;
    client.create("echo", json!({ "text": "kept" })).await.unwrap();
    std::fs::rename(&file, directory.path().join("moved.db")).unwrap();
    assert!(client.create("echo", json!({ "text": "lost" })).await.is_err());
    assert_eq!(server.exit_code().await, Some(4));
}

#[tokio::test]
async fn a_stop_right_after_the_loss_of_the_file_is_not_a_clean_one() {
    let (_directory, file) = place("tasks.db");
    let (server, mut client) = start(&file).await;
    client.create("echo", json!({ "text": "lost" })).await.unwrap();
    server.signal(Signal::STOP);
    std::fs::remove_file(&file).unwrap();
    server.signal(Signal::TERM);
    server.signal(Signal::CONT);
    server.says("[STORE_STOPPED]").await;
    assert_eq!(server.exit_code().await, Some(4));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn no_second_server_starts_beside_one_whose_lock_file_is_gone() {
    let (_directory, file) = place("tasks.db");
    let (server, _client) = start(&file).await;
    // A stopped process cannot notice the loss and end before the second one starts.
    server.signal(Signal::STOP);
    std::fs::remove_file(format!("{}.lock", file.display())).unwrap();
    let store = format!("sqlite:{}", file.display());
    let second = in_time("the refusal", run(&["serve", "--listen", "127.0.0.1:0", "--store", &store])).await;
    second.fails(4, "STORE_LOCKED");
    server.signal(Signal::CONT);
    assert_eq!(server.exit_code().await, Some(4));
}

/// A server with 20 tasks that end while its disk is full.
#[cfg(target_os = "linux")]
async fn ends_on_a_full_disk(file: &Path) -> (ServerProcess, Vec<String>) {
    let (server, mut client) = Launch::conformance().under(IGNORE_FILE_LIMIT).store(file).start_with_client().await;
    let mut tasks = Vec::new();
    for _ in 0..20 {
        tasks.push(client.create("slow_compute", json!({ "seconds": 1 })).await.unwrap());
    }
    client.until_metric("longhaul_tasks_running", 20.0).await;
    server.limit_files(Some(1));
    server.says("operation=\"settle\"").await;
    (server, tasks)
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_stop_on_a_full_disk_says_how_many_ends_are_lost() {
    let (_directory, file) = place("tasks.db");
    let (server, tasks) = ends_on_a_full_disk(&file).await;
    server.signal(Signal::TERM);
    server.says("the results or last steps of 20 tasks could not be stored").await;
    let log = server.log();
    let complaints = log.lines().filter(|line| line.contains("WARN") || line.contains("ERROR")).count();
    assert!(complaints <= 4, "one line in ten seconds, and two at the stop:\n{log}");
    assert_eq!(server.exit_code().await, Some(4));

    let (server, mut client) = start(&file).await;
    for id in tasks {
        assert_eq!(client.get(&id).await.unwrap().value["error"]["data"]["code"], "CRASH_RECOVERY");
    }
    assert!(server.stop().await);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn ends_are_stored_at_a_stop_if_there_is_room_again_in_time() {
    let (_directory, file) = place("tasks.db");
    let (server, tasks) = ends_on_a_full_disk(&file).await;
    server.signal(Signal::TERM);
    server.says("Stopping").await;
    server.limit_files(None);
    assert_eq!(server.exit_code().await, Some(0));

    let (server, mut client) = start(&file).await;
    for id in tasks {
        assert_eq!(client.get(&id).await.unwrap().status(), "completed");
    }
    assert!(server.stop().await);
}

#[tokio::test]
async fn a_check_finds_what_is_damaged_with_a_server_and_without() {
    let (_directory, file) = place("tasks.db");
    let (server, mut client) = start(&file).await;
    let mut ids = Vec::new();
    for n in 0..3 {
        ids.push(client.create("echo", json!({ "text": format!("number {n}") })).await.unwrap());
        client.settled(&ids[n]).await;
    }
    let store = format!("sqlite:{}", file.display());
    let check = async |more: &[&str]| run(&[&["store", "check", "--store", &store], more].concat()).await;
    let sound = "The store is sound: all of its 3 tasks can be read.\n";
    assert_eq!(check(&[]).await.succeeded(), sound);
    assert!(server.stop().await);
    assert_eq!(check(&[]).await.succeeded(), sound);

    let mut bytes = std::fs::read(&file).unwrap();
    let at = bytes.windows(8).rposition(|text| text == b"number 1").unwrap();
    bytes[at] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let damaged = check(&[]).await;
    assert_eq!(damaged.code, 4, "{}", damaged.err);
    assert!(damaged.out.starts_with(&format!("task {} of anonymous: ", ids[1])), "{}", damaged.out);
    assert!(damaged.err.contains("1 tasks are damaged or lost [STORE_DAMAGED]"), "{}", damaged.err);
    let damaged: serde_json::Value = serde_json::from_str(&check(&["--json"]).await.out).unwrap();
    assert_eq!((&damaged["sound"], &damaged["tasks"], &damaged["damagedTasks"]), (&json!(false), &json!(3), &json!(1)));
    assert_eq!(damaged["damage"][0]["taskId"], *ids[1]);

    // The task is not served, and the others are.
    let (server, mut client) = start(&file).await;
    assert!(client.get(&ids[1]).await.is_err());
    assert_eq!(client.get(&ids[2]).await.unwrap().result_text(), "number 2");
    server.kill().await;
}

#[tokio::test]
async fn a_server_starts_although_tasks_that_ran_at_the_crash_are_damaged() {
    let (_directory, file) = place("tasks.db");
    let (server, mut client) = start(&file).await;
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(client.create("slow_compute", json!({ "seconds": 1_000 })).await.unwrap());
    }
    client.until_metric("longhaul_tasks_running", 4.0).await;
    server.kill().await;
    // One bit of a phase, of the time since when a task runs, and of its node.
    let damage = [
        format!("UPDATE task SET phase = 'runniog' WHERE id = '{}'", ids[0]),
        format!("UPDATE task SET run_since = run_since + 4 WHERE id = '{}'", ids[1]),
        format!("UPDATE task SET node = replace(node, substr(node, 1, 1), 'x') WHERE id = '{}'", ids[2]),
    ];
    rusqlite::Connection::open(&file).unwrap().execute_batch(&damage.join(";")).unwrap();

    let (server, mut client) = start(&file).await;
    for id in &ids[..3] {
        server.says(&format!("task={id}")).await;
        assert!(client.get(id).await.is_err(), "{id} is told");
    }
    assert_eq!(client.get(&ids[3]).await.unwrap().value["error"]["data"]["code"], "CRASH_RECOVERY");
    let id = client.create("echo", json!({ "text": "on we go" })).await.unwrap();
    assert_eq!(client.settled(&id).await.result_text(), "on we go");
    assert!(server.stop().await);
}

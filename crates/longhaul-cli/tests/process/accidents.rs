//! Accidents of operators: files that vanish under a server, a full disk at a stop.

use std::path::Path;

use longhaul_testkit::{StatelessClient, in_time};
use rustix::process::Signal;
use serde_json::json;

use crate::kit::{Launch, ServerProcess, place};
use crate::operator::run;

async fn start(file: &Path) -> (ServerProcess, StatelessClient) {
    let server = Launch::conformance().store(file).start().await;
    let client = StatelessClient::connect(server.address()).await.unwrap();
    (server, client)
}

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

/// A running server whose disk is full, or has room again: no file may grow past this size.
#[cfg(target_os = "linux")]
fn limit_files(server: &ServerProcess, bytes_max: Option<u64>) {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};
    let limit = Rlimit { current: bytes_max, maximum: None };
    prlimit(Pid::from_raw(server.pid()), Resource::Fsize, limit).unwrap();
}

/// A server with 20 tasks that end while its disk is full.
#[cfg(target_os = "linux")]
async fn ends_on_a_full_disk(file: &Path) -> (ServerProcess, Vec<String>) {
    // Past the limit a write fails only if the signal is ignored.
    let server = Launch::conformance().under(["sh", "-c", r#"trap "" XFSZ; exec "$0" "$@""#]).store(file).start().await;
    let mut client = StatelessClient::connect(server.address()).await.unwrap();
    let mut tasks = Vec::new();
    for _ in 0..20 {
        tasks.push(client.create("slow_compute", json!({ "seconds": 1 })).await.unwrap());
    }
    client.until_metric("longhaul_tasks_running", 20.0).await;
    limit_files(&server, Some(1));
    server.says("operation=\"settle\"").await;
    (server, tasks)
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_stop_on_a_full_disk_says_how_many_ends_are_lost() {
    let (_directory, file) = place("tasks.db");
    let (server, tasks) = ends_on_a_full_disk(&file).await;
    server.signal(Signal::TERM);
    server.says("the results of 20 tasks could not be stored").await;
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
    limit_files(&server, None);
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

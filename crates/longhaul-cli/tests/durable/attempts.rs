//! A task that is started again after a kill: how often, and when.

use std::path::Path;
use std::time::{Duration, SystemTime};

use longhaul_testkit::{StatelessClient, until};
use serde_json::json;

use crate::kit::{Launch, place};
use crate::lines;

/// How long the handler sleeps: longer than any test runs.
const ENDLESS_MS: u64 = 900_000_000;

async fn attempt(number: usize, file: &Path) {
    until(&format!("attempt {number}"), async || {
        tokio::time::sleep(Duration::from_millis(1)).await;
        lines(file).len() >= number
    })
    .await;
}

fn attempts(count: usize) -> Vec<String> {
    (1..=count).map(|number| format!("attempt {number}")).collect()
}

#[tokio::test]
async fn a_task_that_dies_with_its_server_is_started_only_so_often() {
    let (directory, store) = place("tasks.db");
    let file = directory.path().join("attempts");
    let launch = || Launch::conformance().store(&store).arg("--attempts-max=4").arg("--backoff-ms=10");
    let (mut server, mut client) = launch().start_with_client().await;
    let id = client.create("retry_job", json!({ "millis": ENDLESS_MS, "file": file })).await.unwrap();
    for number in 1..=4 {
        attempt(number, &file).await;
        server.kill().await;
        server = launch().start().await;
    }
    let mut client = StatelessClient::connect(server.address()).await.unwrap();
    let end = client.settled(&id).await;
    assert_eq!(
        (end.status(), &end.value["error"]["data"]["code"]),
        ("failed", &json!("CRASH_RECOVERY")),
        "{}",
        end.text
    );
    assert!(end.text.contains("started 4 times"), "{}", end.text);
    assert_eq!(lines(&file), attempts(4));
}

#[tokio::test]
async fn the_wait_before_the_next_attempt_survives_another_kill() {
    const BACKOFF: Duration = Duration::from_secs(3);
    let (directory, store) = place("tasks.db");
    let file = directory.path().join("attempts");
    let launch = || Launch::conformance().store(&store).arg(format!("--backoff-ms={}", BACKOFF.as_millis()));
    let (server, mut client) = launch().start_with_client().await;
    let id = client.create("retry_job", json!({ "millis": ENDLESS_MS, "file": file })).await.unwrap();
    attempt(1, &file).await;
    server.kill().await;

    // This start finds the lost attempt, and the wait begins.
    let (server, mut client) = launch().start_with_client().await;
    let lost_at = client.get(&id).await.unwrap().value["lastUpdatedAt"].clone();
    server.kill().await;

    let (server, mut client) = launch().start_with_client().await;
    assert_eq!(client.get(&id).await.unwrap().value["lastUpdatedAt"], lost_at, "this start changed nothing");
    attempt(2, &file).await;
    assert_eq!(lines(&file), attempts(2), "a kill during the wait is not an attempt");
    let lost_at: jiff::Timestamp = lost_at.as_str().unwrap().parse().unwrap();
    // The wait is at least a half of the backoff. The modification time of a file can be a few milliseconds early,
    // because it is the time of the kernel's last tick.
    let not_before = SystemTime::from(lost_at) + BACKOFF / 2 - Duration::from_millis(20);
    assert!(std::fs::metadata(&file).unwrap().modified().unwrap() >= not_before);
    server.kill().await;
}

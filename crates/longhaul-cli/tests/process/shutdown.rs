//! The shutdown of a server.

use longhaul_testkit::raw::{RawConnection, RawRequest};
use longhaul_testkit::{StatelessClient, in_time, names};
use rustix::process::Signal;
use serde_json::json;

use crate::kit::{Launch, longhaul, place};
use crate::start;

#[tokio::test]
async fn short_tasks_finish_long_ones_fail_or_go_to_the_next_process() {
    let directory = tempfile::tempdir().unwrap();
    let (file, trace) = (directory.path().join("tasks.db"), directory.path().join("trace"));
    let (server, mut client) = start(&file).await;
    let short = client.create("slow_compute", json!({ "seconds": 1, "label": "short" })).await.unwrap();
    let long = client.create("slow_compute", json!({ "seconds": 1_000 })).await.unwrap();
    let again = client.create("retry_job", json!({ "millis": 1_000_000, "file": trace })).await.unwrap();
    let asks = client.create("retry_confirm", json!({})).await.unwrap();
    let first_key = client.asked(&asks, 1).await;
    client.until_metric("longhaul_tasks_running", 3.0).await;

    server.signal(Signal::TERM);
    server.says("Stopping").await;
    assert_eq!(server.exit_code().await, Some(0));

    let (server, mut client) = start(&file).await;
    let done = client.get(&short).await.unwrap();
    assert_eq!((done.status(), done.result_text()), ("completed", "short: done after 1 s"), "it was let finish");
    let failed = client.get(&long).await.unwrap();
    assert_eq!(failed.status(), "failed");
    assert_eq!(failed.value["error"]["data"]["code"], "CRASH_RECOVERY");
    let message = failed.value["error"]["message"].as_str().unwrap();
    assert!(message.contains("The server stopped while this task was running"), "{message}");

    // The new process runs the second attempt, which asks again under a new key.
    let keys = client.asked(&asks, 1).await;
    assert_ne!(keys, first_key);
    client.update(&asks, json!({ &keys[0]: { "action": "accept", "content": { "confirm": true } } })).await.unwrap();
    assert_eq!(client.settled(&asks).await.result_text(), "attempt 2");
    in_time("the second attempt", async {
        while std::fs::read_to_string(&trace).unwrap() != "attempt 1\nattempt 2\n" {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(client.get(&again).await.unwrap().status(), "working");
    client.cancel(&again).await.unwrap();
    server.kill().await;
}

#[tokio::test]
async fn a_server_that_is_stopping_takes_nothing_new_and_says_so() {
    let (_directory, file) = place("tasks.db");
    let (server, mut client) = start(&file).await;
    let mut events = client.listen(&[]).await;
    events.next().await.unwrap();
    let (message, _) = client.message("tools/call", json!({ "name": "echo", "arguments": { "text": "late" } }));
    let request = RawRequest::rpc(&message).with("Expect", "100-continue");
    let mut late = RawConnection::open(server.address());
    late.write(&request.head(request.body.len()));
    assert_eq!(late.answer().map(|interim| interim.status), Some(100), "the server waits for the body");

    server.signal(Signal::TERM);
    assert_eq!(events.rest().await.len(), 1, "the subscription ends first");
    late.write(&request.body);
    let answer = tokio::task::spawn_blocking(move || late.answer()).await.unwrap();
    let answer = answer.expect("a request that had begun is answered");
    let error = &answer.json()["error"];
    assert_eq!((&error["code"], &error["data"]["code"]), (&json!(-32603), &json!("DRAINING")), "{error}");
    assert_eq!(error["data"]["retryAfterMs"], 1_000, "{error}");
    assert!(error["message"].as_str().unwrap().contains("shutting down"), "{error}");
    assert_eq!(server.exit_code().await, Some(0));
}

#[tokio::test]
async fn a_second_signal_ends_it_at_once_and_nothing_is_lost() {
    let (_directory, file) = place("tasks.db");
    let (server, mut client) = start(&file).await;
    let done = client.create("echo", json!({ "text": "kept" })).await.unwrap();
    let before = client.settled(&done).await;
    let long = client.create("slow_compute", json!({ "seconds": 1_000 })).await.unwrap();
    client.until_metric("longhaul_tasks_running", 1.0).await;
    server.signal(Signal::INT);
    server.says("A second signal stops at once").await;
    server.signal(Signal::TERM);
    assert_eq!(server.exit_code().await, Some(1));

    let (server, mut client) = start(&file).await;
    assert_eq!(client.get(&done).await.unwrap().text, before.text);
    assert_eq!(client.get(&long).await.unwrap().value["error"]["data"]["code"], "CRASH_RECOVERY");
    assert!(server.stop().await);
}

#[tokio::test]
async fn an_idle_server_ends_well_on_either_signal() {
    for signal in [Signal::TERM, Signal::INT] {
        let server = Launch::longhaul().arg("--demo").start().await;
        // A silent connection does not delay the shutdown.
        let _idle = RawConnection::open(server.address());
        let client = StatelessClient::connect(server.address()).await.unwrap();
        server.signal(signal);
        assert_eq!(server.exit_code().await, Some(0), "{signal:?}");
        drop(client);
    }
}

#[tokio::test]
async fn after_a_clean_stop_one_file_is_the_whole_store() {
    for signal in [Signal::TERM, Signal::INT] {
        let (directory, file) = place("tasks.db");
        let (server, mut client) = start(&file).await;
        let mut settled = Vec::new();
        for n in 0..50 {
            let id = client.create("echo", json!({ "text": format!("number {n}") })).await.unwrap();
            settled.push(client.settled(&id).await);
        }
        assert!(names(directory.path()).contains(&"tasks.db.sock".to_owned()));
        server.signal(signal);
        assert_eq!(server.exit_code().await, Some(0));
        assert_eq!(names(directory.path()), ["tasks.db"], "after {signal:?}");

        let elsewhere = tempfile::tempdir().unwrap();
        let copy = elsewhere.path().join("copy.db");
        std::fs::copy(&file, &copy).unwrap();
        let (server, mut client) = start(&copy).await;
        for task in &settled {
            let id = task.value["taskId"].as_str().unwrap();
            assert_eq!(client.get(id).await.unwrap().value["result"], task.value["result"]);
        }
        assert!(server.stop().await);
        assert_eq!(names(elsewhere.path()), ["copy.db"]);
    }
}

#[tokio::test]
async fn a_server_whose_standard_error_is_closed_still_stops() {
    use std::process::Stdio;
    use tokio::io::{AsyncBufReadExt, BufReader};

    let mut server = tokio::process::Command::new(longhaul())
        .args(["serve", "--demo", "--listen", "127.0.0.1:0", "--store", "memory:"])
        .env("RUST_LOG", "debug")
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(server.stderr.take().unwrap()).lines();
    let address = in_time("the address", async {
        loop {
            let line = lines.next_line().await.unwrap().expect("a line");
            if let Some((_, address)) = line.split_once("listening on http://") {
                return address.trim_end_matches("/mcp").parse::<std::net::SocketAddr>().unwrap();
            }
        }
    })
    .await;
    drop(lines);
    let mut client = StatelessClient::connect(address).await.unwrap();
    client.create("generate_report", json!({ "topic": "Silence", "seconds": 0 })).await.unwrap();
    let pid = rustix::process::Pid::from_raw(server.id().unwrap().cast_signed()).unwrap();
    rustix::process::kill_process(pid, Signal::TERM).unwrap();
    let status = in_time("the end", server.wait()).await.unwrap();
    assert_eq!(status.code(), Some(0));
}

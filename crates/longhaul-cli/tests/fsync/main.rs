//! Acknowledged changes are on the disk, as the system calls of the server show.
//!
//! After a kill the system still writes the data of the process to the disk; only a crash of the machine would lose it.
//! So the server runs under `strace`, and its log must have been synced before each acknowledgement.

mod trace;

#[path = "../kit/mod.rs"]
mod kit;

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use longhaul_testkit::GetTaskResult;
use serde_json::json;

use crate::kit::Launch;
use crate::trace::Trace;

const ROUNDS: usize = 10;

#[tokio::test]
async fn a_completed_sync_lies_between_each_request_and_its_acknowledgement() {
    let directory = tempfile::tempdir().unwrap();
    let traced = creations_cancellations_and_answers(directory.path(), &[]).await;
    let checked = traced.acknowledgements();
    // Two creations, a cancellation and an answer in each round.
    assert_eq!(checked.acknowledged, 4 * ROUNDS);
    assert_eq!(checked.too_early, Vec::<String>::new());
    assert_eq!(checked.times_read, 0);
    let count = checked.acknowledged;
    // Not with `println!`: the test harness hides the output of a passing test.
    let _ = writeln!(std::io::stderr(), "fsync: {count} acknowledgements, each after a completed sync of the log");
}

#[tokio::test]
async fn a_store_that_does_not_sync_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let traced = creations_cancellations_and_answers(directory.path(), &["--unsafe-no-fsync"]).await;
    let checked = traced.acknowledgements();
    assert_eq!(checked.acknowledged, 4 * ROUNDS);
    assert_eq!(checked.too_early.len(), 4 * ROUNDS, "found only {:#?}", checked.too_early);
}

#[tokio::test]
async fn the_log_of_a_killed_process_is_synced_before_it_is_served() {
    let directory = tempfile::tempdir().unwrap();
    let (file, trace) = (directory.path().join("tasks.db"), directory.path().join("trace"));
    let (server, mut client) = Launch::conformance().store(&file).start_with_client().await;
    let id = client.create("echo", json!({ "text": "hello" })).await.unwrap();
    let before = client.get_until(&id, GetTaskResult::is_settled).await.unwrap();
    server.kill().await;

    let (server, mut client) = Launch::conformance().store(&file).under(strace(&trace)).start_with_client().await;
    assert_eq!(client.get(&id).await.unwrap().text, before.text);
    assert!(server.stop().await);
    assert!(Trace::read(&trace).syncs_before_it_listens() > 0, "the log of the dead process was not synced");
}

/// Sends one request at a time over one connection. The server does nothing else during a request.
async fn creations_cancellations_and_answers(directory: &Path, arguments: &[&str]) -> Trace {
    let (file, trace) = (directory.join("tasks.db"), directory.join("trace"));
    let mut launch = Launch::conformance().store(&file).under(strace(&trace));
    for argument in arguments {
        launch = launch.arg(argument);
    }
    let (server, mut client) = launch.start_with_client().await;
    for round in 0..ROUNDS {
        let id = client.create("slow_compute", json!({ "seconds": 900_000, "label": "endless" })).await.unwrap();
        client.cancel(&id).await.unwrap();
        let filename = format!("file-{round}");
        let id = client.create("confirm_delete", json!({ "filename": filename })).await.unwrap();
        let asks = client.get_until(&id, |view| !view.questions().is_empty()).await.unwrap();
        let yes = json!({ "action": "accept", "content": { "confirm": true } });
        client.update(&id, json!({ asks.questions()[0].as_str(): yes })).await.unwrap();
        // The end of the task is a separate write, which must come before the next request.
        client.get_until(&id, GetTaskResult::is_settled).await.unwrap();
    }
    assert!(server.stop().await);
    Trace::read(&trace)
}

/// The command that writes the system calls of a server to this file. `-y` adds the path of each descriptor.
fn strace(trace: &Path) -> Vec<String> {
    let is_there = Command::new("strace").arg("--version").stdout(Stdio::null()).status().is_ok();
    assert!(is_there, "this test needs strace: install it (apt-get install strace), or run `cargo xtask test`");
    let calls = "trace=recvfrom,read,write,writev,sendto,sendmsg,pwrite64,pwritev,fsync,fdatasync,listen,/stat";
    let trace = trace.display().to_string();
    ["strace", "-f", "-y", "-s", "4096", "-e", calls, "-e", "signal=none", "-o", &trace].map(str::to_owned).to_vec()
}

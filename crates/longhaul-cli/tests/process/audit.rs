//! `--audit`: where the audit log is written.

use std::path::Path;

use longhaul_testkit::{StatelessClient, in_time};
use serde_json::{Value, json};

use crate::kit::Launch;
use crate::operator::run;

fn parsed(lines: &str) -> Vec<Value> {
    lines.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}"))).collect()
}

async fn echo(address: std::net::SocketAddr) -> String {
    let mut client = StatelessClient::connect(address).await.unwrap();
    let id = client.create("echo", json!({ "text": "hello" })).await.unwrap();
    client.settled(&id).await;
    id
}

#[tokio::test]
async fn the_file_is_appended_to_and_made_anew_after_a_rename() {
    let directory = tempfile::tempdir().unwrap();
    let (file, renamed) = (directory.path().join("audit.jsonl"), directory.path().join("audit.1.jsonl"));
    let mut ids = Vec::new();
    let lines = |file: &Path| parsed(&std::fs::read_to_string(file).unwrap());
    let names = |file: &Path, id: &str| lines(file).iter().any(|line| line["task"] == *id);
    for _ in 0..2 {
        let server = Launch::conformance().arg("--audit").arg(&file).start().await;
        ids.push(echo(server.address()).await);
        assert!(!server.log().contains("task.created"), "{}", server.log());
        server.kill().await;
    }
    assert!(ids.iter().all(|id| names(&file, id)), "{:?}", lines(&file));

    let server = Launch::conformance().arg("--audit").arg(&file).start().await;
    std::fs::rename(&file, &renamed).unwrap();
    let later = echo(server.address()).await;
    assert!(names(&file, &later) && !names(&renamed, &later));
    assert!(ids.iter().all(|id| names(&renamed, id)));
    server.kill().await;
}

#[tokio::test]
async fn a_dash_is_standard_error() {
    let server = Launch::conformance().arg("--audit").arg("-").start().await;
    let id = echo(server.address()).await;
    server.says(&format!(r#""event":"task.created","owner":"anonymous","task":"{id}""#)).await;
    server.kill().await;
}

#[tokio::test]
async fn a_disk_that_is_full_is_said_once_and_stops_nothing() {
    let server = Launch::conformance().arg("--audit").arg("/dev/full").start().await;
    for _ in 0..3 {
        echo(server.address()).await;
    }
    server.says("cannot write to the audit log").await;
    echo(server.address()).await;
    assert_eq!(server.log().matches("cannot write to the audit log").count(), 1, "{}", server.log());
    server.kill().await;
}

#[tokio::test]
async fn a_file_that_cannot_be_opened_is_an_error_at_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let audit = directory.path().to_str().unwrap();
    let said = run(&["serve", "--listen", "127.0.0.1:0", "--store", "memory:", "--audit", audit]).await;
    said.fails(1, "BAD_AUDIT_FILE");
}

#[tokio::test]
async fn a_pipe_is_used_if_a_program_reads_it_and_is_an_error_otherwise() {
    let (_directory, pipe) = crate::kit::place("audit.pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let serve = ["serve", "--listen", "127.0.0.1:0", "--store", "memory:", "--audit", pipe.to_str().unwrap()];
    let said = in_time("the refusal", run(&serve)).await;
    said.fails(1, "BAD_AUDIT_FILE");
    assert!(said.err.contains("no program reads"), "{}", said.err);

    // Opened for both directions, the end that reads does not wait for the other.
    let reader = std::fs::OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
    let server = Launch::conformance().arg("--audit").arg(&pipe).start().await;
    let id = echo(server.address()).await;
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(reader), &mut line).unwrap();
    assert_eq!(parsed(&line)[0]["task"], *id);
    server.kill().await;
}

//! One creation under an ID of the client's own (SEP-1686), sent again and again from several connections while the server
//! is killed: it runs once.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use longhaul_testkit::{FailureReport, SessionClient, StatelessClient, in_time};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::json;
use tokio::sync::watch;

use crate::job::attempt;
use crate::kit::{Launch, ServerProcess, longhaul, place};
use crate::{JITTER, from_environment, operator, say};

const CONNECTIONS: usize = 8;
const CALLS: usize = 400;
const ID: &str = "chosen-by-the-client";

/// How one repetition of the creation was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CreationAnswer {
    Created,
    Exists,
}

struct Load {
    token: String,
    session: String,
    trace: PathBuf,
    /// The address of the server; `None` between a kill and the next start.
    address: watch::Sender<Option<SocketAddr>>,
    answers: watch::Sender<usize>,
}

impl Load {
    async fn repeat(self: Arc<Self>, connection: usize, times: usize) -> Vec<CreationAnswer> {
        let mut address = self.address.subscribe();
        let mut answers = Vec::new();
        while answers.len() < times {
            let up = in_time("a server", address.wait_for(Option::is_some)).await.unwrap().unwrap();
            let answer = match StatelessClient::connect(up).await {
                Ok(mut client) => self.create(&mut client, connection * times + answers.len()).await,
                Err(_) => Err(FailureReport::Lost(String::new())),
            };
            match answer {
                Ok(answer) => {
                    answers.push(answer);
                    self.answers.send_modify(|answers| *answers += 1);
                }
                Err(FailureReport::Lost(_)) => {
                    in_time("the end of a process", address.wait_for(|now| *now != Some(up))).await.unwrap();
                }
                Err(refused) => panic!("{refused:?}"),
            }
        }
        answers
    }

    /// Sends the creation, and reads up to the announcement or the refusal. The connection is dropped then: the answer of the
    /// call is not waited for.
    async fn create(&self, client: &mut StatelessClient, number: usize) -> Result<CreationAnswer, FailureReport> {
        let bearer = format!("Bearer {}", self.token);
        let headers = [
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("mcp-session-id", &*self.session),
            ("mcp-protocol-version", "2025-06-18"),
            ("authorization", &bearer),
        ];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let message = json!({ "jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {
            "name": "retry_job",
            "arguments": { "millis": 3_600_000, "file": self.trace },
            "_meta": { "modelcontextprotocol.io/task": { "taskId": ID } }
        } });
        let mut reply = client.post(message.to_string(), &headers).await?;
        let mut text = String::new();
        if reply.is_stream() {
            while let Some(event) = reply.event().await {
                text.push_str(&event.data);
                if text.contains("notifications/tasks/created") {
                    return Ok(CreationAnswer::Created);
                }
            }
            if !text.contains("already exists") {
                return Err(FailureReport::Lost("the stream ended before the announcement".into()));
            }
        } else {
            text.push_str(reply.read_whole().await?.text());
        }
        assert!(text.contains("Task ID already exists"), "{text}");
        Ok(CreationAnswer::Exists)
    }

    async fn answered(&self, answers: usize) {
        let mut count = self.answers.subscribe();
        in_time("answers", count.wait_for(|count| *count >= answers)).await.unwrap();
    }
}

async fn start(file: &Path, tokens: &Path) -> ServerProcess {
    Launch::conformance().store(file).arg("--token-file").arg(tokens).start().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_creation_repeated_under_its_own_id_across_kills_runs_once() {
    let seed = from_environment("LONGHAUL_SEED", rand::random());
    say(&format!("kill: LONGHAUL_SEED={seed}"));
    let mut rng = StdRng::seed_from_u64(seed);
    let (directory, file) = place("tasks.db");
    let (tokens, trace) = (directory.path().join("tokens"), directory.path().join("attempts"));
    let made = Command::new(longhaul()).args(["token", "new", "ada", "--token-file"]).arg(&tokens).output().unwrap();
    let token = String::from_utf8(made.stdout).unwrap().trim().to_owned();
    let mut server = start(&file, &tokens).await;
    let client = SessionClient::new(server.address()).with_token(&token).initialize("2025-06-18", json!({})).await;
    let session = client.session.clone().expect("a session");
    let address = watch::Sender::new(Some(server.address()));
    let load = Arc::new(Load { token, session, trace: trace.clone(), address, answers: watch::Sender::new(0) });
    let clients: Vec<_> = (0..CONNECTIONS)
        .map(|connection| tokio::spawn(Arc::clone(&load).repeat(connection, CALLS / CONNECTIONS)))
        .collect();
    let kills = [0, rng.random_range(1..CALLS / 4), rng.random_range(CALLS / 4..CALLS / 2)];
    for answers in kills {
        // The first kill falls near the creation.
        load.answered(answers).await;
        tokio::time::sleep(rng.random_range(Duration::ZERO..JITTER)).await;
        load.address.send_replace(None);
        server.kill().await;
        server = start(&file, &tokens).await;
        load.address.send_replace(Some(server.address()));
    }
    let mut answers = Vec::new();
    for client in clients {
        answers.extend(client.await.expect("every call is answered"));
    }
    let created = answers.iter().filter(|answer| **answer == CreationAnswer::Created).count();
    // A kill can take the announcement with it; then every client learns that the task exists.
    assert!(created <= 1, "announced {created} times");
    assert_eq!(operator::list(&file).keys().collect::<Vec<_>>(), [ID]);
    // The job is started again after each kill. A second run would have a first attempt of its own.
    let lines = std::fs::read_to_string(&trace).unwrap_or_default();
    let attempts: Vec<u32> = lines.lines().filter_map(attempt).collect();
    assert_eq!(attempts.iter().collect::<BTreeSet<_>>().len(), attempts.len(), "an attempt ran twice: {attempts:?}");
    assert!(attempts.len() <= kills.len() + 1, "{attempts:?}");
    server.kill().await;
    say(&format!("kill: {CALLS} answers to one creation, {created} of them new, {} attempts", attempts.len()));
}

//! One creation under an ID of the client's own (SEP-1686), sent again and again from several connections while the server
//! is killed: it runs once.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use longhaul_testkit::{FailureReport, SessionClient, StatelessClient, in_time, number_from_environment, until};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::json;
use tokio::sync::watch;

use crate::job::attempt;
use crate::kit::{Launch, ServerProcess, longhaul, place};
use crate::{JITTER, operator, say};

const CONNECTIONS: usize = 8;
/// The answers that each connection gets from one process, if the process lives long enough.
const ANSWERS: usize = 12;
const KILLS: usize = 3;
const ID: &str = "chosen-by-the-client";

/// How one repetition of the creation was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CreationAnswer {
    Created,
    Exists,
}

/// The server of the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Up {
    /// How many processes there were before it.
    process: usize,
    address: SocketAddr,
}

struct Load {
    token: String,
    trace: PathBuf,
    /// `None` between a kill and the next start.
    up: watch::Sender<Option<Up>>,
    /// The answers of the server of the moment.
    answers: watch::Sender<usize>,
}

impl Load {
    /// Sends the creation to each process in turn, in a session of its own.
    async fn repeat(self: Arc<Self>, session: String) -> Vec<CreationAnswer> {
        let mut up = self.up.subscribe();
        let mut answers = Vec::new();
        for process in 0..=KILLS {
            let is_next = |now: &Option<Up>| now.is_some_and(|now| now.process >= process);
            let server = in_time("a server", up.wait_for(is_next)).await.unwrap().unwrap();
            if server.process > process {
                continue;
            }
            for number in 0..ANSWERS {
                let answer = match StatelessClient::connect(server.address).await {
                    Ok(mut client) => self.create(&mut client, &session, process * ANSWERS + number).await,
                    Err(_) => Err(FailureReport::Lost(String::new())),
                };
                match answer {
                    Ok(answer) => {
                        answers.push(answer);
                        self.answers.send_modify(|answers| *answers += 1);
                    }
                    Err(FailureReport::Lost(why)) => {
                        assert!(process < KILLS, "the last process lives: {why}");
                        break;
                    }
                    Err(refused) => panic!("{refused:?}"),
                }
            }
        }
        answers
    }

    /// Sends the creation, and reads up to the announcement or the refusal. The connection is dropped then: the answer of the
    /// call is not waited for.
    async fn create(
        &self,
        client: &mut StatelessClient,
        session: &str,
        number: usize,
    ) -> Result<CreationAnswer, FailureReport> {
        let bearer = format!("Bearer {}", self.token);
        let headers = [
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("mcp-session-id", session),
            ("mcp-protocol-version", "2025-06-18"),
            ("authorization", &bearer),
        ];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let message = json!({ "jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {
            "name": "retry_job",
            // Longer than any run of this test.
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

    /// Waits until the server of the moment has given this many answers.
    async fn answered(&self, answers: usize) {
        let mut count = self.answers.subscribe();
        in_time("answers", count.wait_for(|count| *count >= answers)).await.unwrap();
    }

    /// The attempts that have begun, in order.
    fn attempts(&self) -> Vec<u32> {
        let lines = std::fs::read_to_string(&self.trace).unwrap_or_default();
        lines.lines().filter_map(attempt).collect()
    }
}

async fn start(file: &Path, tokens: &Path) -> ServerProcess {
    Launch::conformance().store(file).arg("--token-file").arg(tokens).start().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_creation_repeated_under_its_own_id_across_kills_runs_once() {
    let seed = number_from_environment("LONGHAUL_SEED", rand::random());
    say(&format!("kill: LONGHAUL_SEED={seed}"));
    let mut rng = StdRng::seed_from_u64(seed);
    let (directory, file) = place("tasks.db");
    let (tokens, trace) = (directory.path().join("tokens"), directory.path().join("attempts"));
    let made = Command::new(longhaul()).args(["token", "new", "ada", "--token-file"]).arg(&tokens).output().unwrap();
    let token = String::from_utf8(made.stdout).unwrap().trim().to_owned();
    let mut server = start(&file, &tokens).await;
    let up = watch::Sender::new(None);
    let load = Arc::new(Load { token: token.clone(), trace, up, answers: watch::Sender::new(0) });
    let mut clients = Vec::new();
    for _ in 0..CONNECTIONS {
        let client = SessionClient::new(server.address()).with_token(&token).initialize("2025-06-18", json!({})).await;
        clients.push(tokio::spawn(Arc::clone(&load).repeat(client.session.expect("a session"))));
    }
    // The attempts of earlier processes.
    let mut before = 0;
    for process in 0..KILLS {
        load.up.send_replace(Some(Up { process, address: server.address() }));
        if process == 0 {
            // The first kill falls near the creation, before it or after it.
            load.answered(rng.random_range(0..4)).await;
        } else {
            // The others fall into a run, which is the only one of its process.
            load.answered(rng.random_range(1..=ANSWERS)).await;
            until("a run", async || load.attempts().len() > before).await;
        }
        tokio::time::sleep(rng.random_range(Duration::ZERO..JITTER)).await;
        load.up.send_replace(None);
        server.kill().await;
        load.answers.send_replace(0);
        before = load.attempts().len();
        server = start(&file, &tokens).await;
    }
    load.up.send_replace(Some(Up { process: KILLS, address: server.address() }));
    let mut answers = Vec::new();
    for client in clients {
        answers.extend(client.await.expect("every repetition is answered"));
    }
    assert!(answers.len() >= CONNECTIONS * ANSWERS, "those of the last process alone: {}", answers.len());
    let created = answers.iter().filter(|answer| **answer == CreationAnswer::Created).count();
    // A kill can take the announcement with it; then every client learns that the task exists.
    assert!(created <= 1, "announced {created} times");
    until("a run in the last process", async || load.attempts().len() > before).await;
    let task = operator::list(&file);
    assert_eq!(task.keys().collect::<Vec<_>>(), [ID]);
    assert_eq!(task[ID].status, "running");
    // One run in each process, except that the first kill can precede it. A second run of the creation would have a first
    // attempt of its own.
    let attempts = load.attempts();
    assert!(attempts.is_sorted_by(|earlier, later| earlier < later), "an attempt ran twice: {attempts:?}");
    assert!((KILLS..=KILLS + 1).contains(&attempts.len()), "{attempts:?}");
    server.kill().await;
    say(&format!("kill: {} answers to one creation, {created} of them new, {attempts:?} attempts", answers.len()));
}

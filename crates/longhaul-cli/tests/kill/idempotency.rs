//! One call, sent again and again under the same idempotency key while the server is killed: one task.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use longhaul_testkit::{FailureReport, SessionClient, StatelessClient, in_time, number_from_environment};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::kit::{Launch, ServerProcess, longhaul, place};
use crate::{JITTER, operator, say};

const CONNECTIONS: usize = 50;
const CALLS: usize = 1_000;

#[derive(Debug, Clone, Copy)]
enum CallForm {
    Ext2026,
    Core2025,
}

/// What the clients share. A client whose connection broke waits for the address of the next process.
struct Load {
    token: String,
    /// The session of all connections, in `Core2025`.
    session: Option<String>,
    address: watch::Sender<Option<SocketAddr>>,
    answers: watch::Sender<usize>,
}

impl Load {
    /// Sends the call until it has been answered so many times, and returns the IDs in the answers.
    async fn repeat(self: Arc<Self>, connection: usize, times: usize) -> Vec<String> {
        let mut address = self.address.subscribe();
        let mut ids = Vec::new();
        while ids.len() < times {
            let up = in_time("a server", address.wait_for(Option::is_some)).await.unwrap().unwrap();
            let Ok(mut client) = StatelessClient::connect(up).await else {
                gone(&mut address, up).await;
                continue;
            };
            client.token = Some(self.token.clone());
            while ids.len() < times {
                match self.call(&mut client, connection * times + ids.len()).await {
                    Ok(id) => ids.push(id),
                    Err(FailureReport::Lost(_)) => {
                        gone(&mut address, up).await;
                        break;
                    }
                    Err(refused) => panic!("{refused:?}"),
                }
                self.answers.send_modify(|answers| *answers += 1);
            }
        }
        ids
    }

    /// One call, and the ID of the task in its answer.
    async fn call(&self, client: &mut StatelessClient, number: usize) -> Result<String, FailureReport> {
        let arguments = json!({ "topic": "Once", "seconds": 1_000 });
        let mut params = json!({ "name": "generate_report", "arguments": arguments });
        let reply = if let Some(session) = &self.session {
            params["task"] = json!({});
            params["_meta"]["longhaul/idempotency-key"] = json!("once");
            let bearer = format!("Bearer {}", self.token);
            let headers = [
                ("content-type", "application/json"),
                ("accept", "application/json, text/event-stream"),
                ("mcp-session-id", session),
                ("mcp-protocol-version", "2025-11-25"),
                ("authorization", &bearer),
            ];
            let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
            // Open requests of one session have different IDs.
            let message = json!({ "jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params });
            client.post(message.to_string(), &headers).await?.read_whole().await?
        } else {
            let (message, mut headers) = client.message("tools/call", params);
            headers.push(("idempotency-key".to_owned(), "once".to_owned()));
            client.exchange(message.to_string(), &headers).await?
        };
        // On a slow machine the answer is the last event of a stream.
        let text = reply.text().lines().filter_map(|line| line.strip_prefix("data: ")).next_back();
        let answer: Value = serde_json::from_str(text.unwrap_or(reply.text())).expect("an answer");
        let result = &answer["result"];
        let id = result["taskId"].as_str().or(result["task"]["taskId"].as_str());
        let refused = || FailureReport::Refused { status: reply.status, body: answer.to_string() };
        id.map(str::to_owned).ok_or_else(refused)
    }

    /// Waits until the clients have had this many answers.
    async fn answered(&self, answers: usize) {
        let mut count = self.answers.subscribe();
        in_time("answers", count.wait_for(|count| *count >= answers)).await.unwrap();
    }
}

/// Waits until the process at this address is known to be dead.
async fn gone(address: &mut watch::Receiver<Option<SocketAddr>>, was: SocketAddr) {
    in_time("the end of a process", address.wait_for(|now| *now != Some(was))).await.unwrap();
}

async fn start(file: &Path, tokens: &Path, audit: &Path) -> ServerProcess {
    let launch = Launch::longhaul().store(file).arg("--demo").arg("--token-file").arg(tokens);
    launch.arg("--audit").arg(audit).start().await
}

fn new_token(tokens: &Path) -> String {
    let made = Command::new(longhaul()).args(["token", "new", "ada", "--token-file"]).arg(tokens).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    String::from_utf8(made.stdout).unwrap().trim().to_owned()
}

async fn one_task(form: CallForm, rng: &mut StdRng) {
    let (directory, file) = place("tasks.db");
    let (tokens, audit): (PathBuf, PathBuf) = (directory.path().join("tokens"), directory.path().join("audit"));
    let token = new_token(&tokens);
    let mut server = start(&file, &tokens, &audit).await;
    let session = match form {
        CallForm::Ext2026 => None,
        CallForm::Core2025 => {
            let client = SessionClient::new(server.address()).with_token(&token);
            client.initialize("2025-11-25", json!({})).await.session
        }
    };
    let address = watch::Sender::new(Some(server.address()));
    let load = Arc::new(Load { token, session, address, answers: watch::Sender::new(0) });
    let clients: Vec<_> = (0..CONNECTIONS)
        .map(|connection| tokio::spawn(Arc::clone(&load).repeat(connection, CALLS / CONNECTIONS)))
        .collect();
    // The first kill falls near the creation, the second somewhere later.
    let first = rng.random_range(0..CONNECTIONS);
    for answers in [first, rng.random_range(first..CALLS / 2)] {
        load.answered(answers).await;
        tokio::time::sleep(rng.random_range(Duration::ZERO..JITTER)).await;
        load.address.send_replace(None);
        server.kill().await;
        server = start(&file, &tokens, &audit).await;
        load.address.send_replace(Some(server.address()));
    }
    let mut ids = Vec::new();
    for client in clients {
        ids.extend(client.await.expect("every call is answered"));
    }
    assert_eq!(ids.len(), CALLS);
    assert!(ids.iter().all(|id| *id == ids[0]), "not one task");
    assert_eq!(operator::list(&file).keys().collect::<Vec<_>>(), [&ids[0]]);
    let audited = std::fs::read_to_string(&audit).unwrap();
    let created = audited.lines().filter(|line| line.contains("\"task.created\"")).count();
    // A kill between the commit and the line leaves none.
    assert!(created <= 1, "{created} creations in the audit log");
    assert!(server.stop().await, "the server ends well when it is asked to");
    say(&format!("kill: {CALLS} answers to one call in {form:?}, the first kill after {first} of them: one task"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_repeated_under_its_key_across_kills_makes_one_task() {
    let seed = number_from_environment("LONGHAUL_SEED", rand::random());
    say(&format!("kill: LONGHAUL_SEED={seed}"));
    let mut rng = StdRng::seed_from_u64(seed);
    for form in [CallForm::Ext2026, CallForm::Core2025] {
        one_task(form, &mut rng).await;
    }
}

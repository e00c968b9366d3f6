//! Questions that are asked before a kill of the server, and answered after it by a client in another process.

use std::net::SocketAddr;

use longhaul_testkit::{SessionClient, StatelessClient};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::kit::{Launch, place};

/// The environment variable with the work of the other process: a generation, an address and a task.
const WORK: &str = "LONGHAUL_TEST_ANSWER";

/// A tool that asks, its arguments, the number of its questions and the result.
const TOOLS: [(&str, &str, usize, &str); 3] = [
    ("confirm_delete", r#"{"filename":"a.txt"}"#, 1, "a.txt is deleted."),
    ("multi_input", "{}", 2, "Ada said yes."),
    ("ask_model", r#"{"prompt":"How are you?"}"#, 1, "Very well."),
];

fn capabilities() -> Value {
    json!({ "elicitation": {}, "sampling": {}, "extensions": { "io.modelcontextprotocol/tasks": {} } })
}

#[tokio::test]
async fn a_question_of_ext2026_is_answered_after_a_kill_by_another_client() {
    let (_directory, store) = place("tasks.db");
    let (server, mut client) = Launch::conformance().store(&store).start_with_client().await;
    client.capabilities = capabilities();
    let mut tasks = Vec::new();
    for (tool, arguments, questions, result) in TOOLS {
        let id = client.create(tool, serde_json::from_str(arguments).unwrap()).await.unwrap();
        tasks.push((client.asked(&id, questions).await, id, result));
    }
    server.kill().await;

    let server = Launch::conformance().store(&store).start().await;
    for (questions, id, result) in tasks {
        let (asked, text) = answer_in_another_process("ext2026", server.address(), &id).await;
        assert_eq!((asked, text.as_str()), (questions, result), "the same questions, once");
    }
}

#[tokio::test]
async fn a_question_of_core2025_is_answered_after_a_kill_by_another_client() {
    let (_directory, store) = place("tasks.db");
    let server = Launch::conformance().store(&store).start().await;
    let client = SessionClient::open(server.address(), json!({ "elicitation": {}, "sampling": {} })).await;
    let mut tasks = Vec::new();
    for (tool, arguments, questions, result) in TOOLS {
        let id = client.create(tool, serde_json::from_str(arguments).unwrap()).await;
        client.until(&id, "input_required").await;
        tasks.push((questions, id, result));
    }
    server.kill().await;

    let server = Launch::conformance().store(&store).start().await;
    for (questions, id, result) in tasks {
        let (asked, text) = answer_in_another_process("core2025", server.address(), &id).await;
        assert_eq!((asked.len(), text.as_str()), (questions, result), "asked once");
    }
}

/// Runs the function below in a process of its own. Returns what it was asked, and the result.
async fn answer_in_another_process(generation: &str, address: SocketAddr, id: &str) -> (Vec<String>, String) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "questions::the_client_that_answers", "--ignored", "--nocapture"]);
    let output = command.env(WORK, format!("{generation} {address} {id}")).output().await.unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{stdout}\n{}", String::from_utf8_lossy(&output.stderr));
    let report = stdout.lines().find_map(|line| line.split_once("REPORT ")).expect("a report").1;
    serde_json::from_str(report).unwrap()
}

#[tokio::test]
#[ignore = "the tests above run this in another process"]
async fn the_client_that_answers() {
    let work = std::env::var(WORK).expect("work");
    let words: Vec<&str> = work.split(' ').collect();
    let (address, id) = (words[1].parse::<SocketAddr>().unwrap(), words[2]);
    let report =
        if words[0] == "ext2026" { answer_ext2026(address, id).await } else { answer_core2025(address, id).await };
    println!("REPORT {}", json!(report));
}

async fn answer_ext2026(address: SocketAddr, id: &str) -> (Vec<String>, String) {
    let mut client = StatelessClient::connect(address).await.unwrap();
    client.capabilities = capabilities();
    let open = client.get(id).await.unwrap().value["inputRequests"].clone();
    let open = open.as_object().expect("open questions");
    let answers: serde_json::Map<_, _> = open.iter().map(|(key, request)| (key.clone(), answer(request))).collect();
    let asked = answers.keys().cloned().collect();
    client.update(id, answers.into()).await.unwrap();
    // A question that was asked again would show here.
    let end = client.get_until(id, |task| task.is_settled() || !task.questions().is_empty()).await.unwrap();
    (asked, end.result_text().to_owned())
}

async fn answer_core2025(address: SocketAddr, id: &str) -> (Vec<String>, String) {
    let client = SessionClient::open(address, json!({ "elicitation": {}, "sampling": {} })).await;
    let mut result = client.send("tasks/result", json!({ "taskId": id })).await;
    let mut asked = Vec::new();
    loop {
        let message = result.must_next().await;
        match message["method"].as_str() {
            Some(method @ ("elicitation/create" | "sampling/createMessage")) => {
                asked.push(method.to_owned());
                client.respond(&message, answer(&message)).await;
            }
            Some(_) => {}
            None => {
                let text = message["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{message}"));
                return (asked, text.to_owned());
            }
        }
    }
}

/// Says yes to everything, and that its name is Ada.
fn answer(request: &Value) -> Value {
    if request["method"] == "sampling/createMessage" {
        let content = json!({ "type": "text", "text": "Very well." });
        return json!({ "role": "assistant", "model": "a model", "content": content });
    }
    let fields = &request["params"]["requestedSchema"]["properties"];
    let content = if fields.get("name").is_some() { json!({ "name": "Ada" }) } else { json!({ "confirm": true }) };
    json!({ "action": "accept", "content": content })
}

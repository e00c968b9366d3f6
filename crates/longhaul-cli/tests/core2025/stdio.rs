//! A session on the standard streams.

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::kit::{forms, named};
use crate::support::schema::Asked;
use crate::support::{VERSION, in_time, longhaul};

struct Pipe {
    child: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
    revision: String,
    asked: Asked,
}

impl Pipe {
    /// Starts the example and opens a session.
    async fn open(revision: &str, capabilities: Value) -> Self {
        let program = longhaul().with_file_name("examples").join("conformance");
        let mut command = Command::new(program);
        command.args(["--stdio", "--store", "memory:"]).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the example is built");
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()).lines());
        let mut pipe = Self { child, input, output, revision: revision.to_owned(), asked: Asked::default() };
        let info = json!({ "name": "test", "version": "1" });
        let params = json!({ "protocolVersion": revision, "capabilities": capabilities, "clientInfo": info });
        assert_eq!(pipe.result("initialize", params).await["protocolVersion"], revision);
        pipe.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        pipe
    }

    async fn send(&mut self, message: &Value) {
        let line = format!("{message}\n");
        self.asked.sends(line.as_bytes());
        self.input.as_mut().unwrap().write_all(line.as_bytes()).await.expect("a server that reads");
    }

    async fn ask(&mut self, id: &str, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
    }

    /// The next line, a message or several, which are checked.
    async fn line(&mut self) -> Option<Value> {
        let line = in_time("a line from the server", self.output.next_line()).await.expect("UTF-8")?;
        self.asked.hears_body(Some(&self.revision), Some("application/json"), line.as_bytes());
        Some(serde_json::from_str(&line).expect("it was parsed before"))
    }

    async fn next(&mut self) -> Value {
        self.line().await.expect("a message")
    }

    async fn next_of(&mut self, method: &str) -> Value {
        loop {
            let message = self.next().await;
            if message["method"] == method {
                return message;
            }
        }
    }

    /// The response to a request; what comes before it is passed over.
    async fn response(&mut self, id: &str) -> Value {
        loop {
            let message = self.next().await;
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
        }
    }

    async fn result(&mut self, method: &str, params: Value) -> Value {
        self.ask("r", method, params).await;
        let mut response = self.response("r").await;
        assert!(response.get("result").is_some(), "{response}");
        response["result"].take()
    }

    async fn finish(mut self) -> Option<i32> {
        drop(self.input.take());
        while self.line().await.is_some() {}
        in_time("the end of the server", self.child.wait()).await.expect("a child").code()
    }
}

#[tokio::test]
async fn a_session_works_as_over_http() {
    let mut pipe = Pipe::open("2025-11-25", forms()).await;
    assert_eq!(pipe.result("ping", json!({})).await, json!({}));
    let tools = pipe.result("tools/list", json!({})).await;
    assert!(tools["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "echo"));
    let echo = json!({ "name": "echo", "arguments": { "text": "hi" } });
    assert_eq!(pipe.result("tools/call", echo).await["content"][0]["text"], "hi");

    let delete = json!({ "name": "confirm_delete", "arguments": { "filename": "a.txt" }, "task": {} });
    pipe.ask("make", "tools/call", delete).await;
    // Nothing is heard of the task before its own answer.
    let made = pipe.next().await;
    assert_eq!(made["id"], "make", "{made}");
    let id = made["result"]["task"]["taskId"].clone();
    let question = pipe.next_of("elicitation/create").await;
    let yes = json!({ "action": "accept", "content": { "confirm": true } });
    pipe.ask("wait", "tasks/result", json!({ "taskId": id })).await;
    pipe.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": yes })).await;
    assert_eq!(pipe.response("wait").await["result"]["content"][0]["text"], "a.txt is deleted.");
    let listed = pipe.result("tasks/list", json!({})).await;
    assert_eq!(listed["tasks"].as_array().unwrap().len(), 1, "who has started the server is known");
    assert_eq!(pipe.finish().await, Some(0));
}

#[tokio::test]
async fn a_call_asks_and_is_cancelled_on_the_same_pipe() {
    let mut pipe = Pipe::open("2025-06-18", forms()).await;
    let ask = json!({ "name": "test_input_required_result_elicitation", "arguments": {} });
    pipe.ask("a", "tools/call", ask.clone()).await;
    let question = pipe.next_of("elicitation/create").await;
    pipe.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": named("Ada") })).await;
    assert_eq!(pipe.response("a").await["result"]["content"][0]["text"], "Hello, Ada!");

    pipe.ask("b", "tools/call", ask).await;
    pipe.next_of("elicitation/create").await;
    pipe.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "b" } })).await;
    pipe.ask("c", "ping", json!({})).await;
    loop {
        let message = pipe.next().await;
        assert_ne!(message["id"], "b", "a cancelled request is never answered");
        if message["id"] == "c" {
            break;
        }
    }
    assert_eq!(pipe.finish().await, Some(0));
}

#[tokio::test]
async fn both_eras_are_spoken_on_one_pipe_and_a_second_handshake_is_refused() {
    let mut pipe = Pipe::open("2025-11-25", forms()).await;
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": { "extensions": { "io.modelcontextprotocol/tasks": {} } },
    });
    let params = json!({ "name": "echo", "arguments": { "text": "hi" }, "_meta": meta });
    pipe.ask("newest", "tools/call", params).await;
    let made = pipe.line().await.unwrap();
    assert_eq!(made["result"]["resultType"], "task", "{made}");
    let id = &made["result"]["taskId"];
    let result = pipe.result("tasks/result", json!({ "taskId": id })).await;
    assert_eq!(result["content"][0]["text"], "hi");
    pipe.ask("again", "initialize", json!({})).await;
    assert_eq!(pipe.response("again").await["error"]["code"], -32600);
    pipe.send(&json!({ "jsonrpc": "2.0", "id": "never asked", "result": {} })).await;
    assert_eq!(pipe.result("ping", json!({})).await, json!({}));
    assert_eq!(pipe.finish().await, Some(0));
}

#[tokio::test]
async fn a_batch_is_answered_on_one_line() {
    let mut pipe = Pipe::open("2025-03-26", forms()).await;
    let ping = |id: &str| json!({ "jsonrpc": "2.0", "id": id, "method": "ping" });
    pipe.send(&json!([ping("a"), ping("b")])).await;
    let answers = pipe.line().await.unwrap();
    assert_eq!(answers.as_array().map(Vec::len), Some(2), "{answers}");
    assert_eq!(pipe.finish().await, Some(0));
}

#[tokio::test]
async fn whoever_waits_for_a_result_at_the_end_of_file_is_told() {
    let mut pipe = Pipe::open("2025-11-25", forms()).await;
    let slow = json!({ "name": "slow_compute", "arguments": { "seconds": 1_000 }, "task": {} });
    let id = pipe.result("tools/call", slow).await["task"]["taskId"].clone();
    pipe.ask("wait", "tasks/result", json!({ "taskId": id })).await;
    drop(pipe.input.take());
    assert_eq!(pipe.response("wait").await["error"]["data"]["code"], "DRAINING");
    assert_eq!(pipe.finish().await, Some(0));
}

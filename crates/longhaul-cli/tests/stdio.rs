//! `--stdio`: the same server on the standard streams, one message a line.

mod support;

use std::process::Stdio;

use longhaul::Limits;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use support::schema::Asked;
use support::{VERSION, in_time, longhaul, names};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// A client that has started its server.
struct Pipe {
    child: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
    asked: Asked,
}

impl Pipe {
    fn start(store: &str) -> Self {
        let program = longhaul().with_file_name("examples").join("conformance");
        let mut command = Command::new(program);
        command.args(["--stdio", "--store", store]).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the example is built");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, input, output, asked: Asked::default() }
    }

    async fn write(&mut self, bytes: &[u8]) {
        self.asked.sends(bytes);
        self.input.as_mut().expect("an open input").write_all(bytes).await.expect("a server that reads");
    }

    async fn send(&mut self, message: &Value) {
        self.write(format!("{message}\n").as_bytes()).await;
    }

    /// The next line, which must be a message that fits.
    async fn next(&mut self) -> Option<Value> {
        let line = in_time("a line from the server", self.output.next_line()).await.expect("UTF-8")?;
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error} in {line:?}"));
        assert_eq!(message["jsonrpc"], "2.0", "{line}");
        self.asked.hears(None, &message);
        Some(message)
    }

    async fn must_next(&mut self) -> Value {
        self.next().await.expect("a message")
    }

    /// A request and its response, nothing else being under way.
    async fn request(&mut self, method: &str, params: Value) -> Value {
        self.send(&message(&json!("r"), method, params)).await;
        let response = self.must_next().await;
        assert_eq!(response["id"], "r", "{response}");
        response
    }

    async fn result(&mut self, method: &str, params: Value) -> Value {
        let mut response = self.request(method, params).await;
        assert!(response.get("result").is_some(), "{response}");
        response["result"].take()
    }

    async fn create(&mut self, tool: &str, arguments: Value) -> String {
        let made = self.result("tools/call", json!({ "name": tool, "arguments": arguments })).await;
        made["taskId"].as_str().expect("a task").to_owned()
    }

    async fn get_until(&mut self, id: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        in_time("a change of a task", async {
            loop {
                let task = self.result("tasks/get", json!({ "taskId": id })).await;
                if wanted(&task) {
                    return task;
                }
            }
        })
        .await
    }

    /// Closes the input, and gives back what is still said and the exit code.
    async fn finish(mut self) -> (Vec<Value>, Option<i32>) {
        drop(self.input.take());
        self.ended().await
    }

    async fn ended(mut self) -> (Vec<Value>, Option<i32>) {
        let mut rest = Vec::new();
        while let Some(message) = self.next().await {
            rest.push(message);
        }
        let status = in_time("the end of the server", self.child.wait()).await.expect("a child");
        (rest, status.code())
    }
}

fn message(id: &Value, method: &str, params: Value) -> Value {
    let tasks = json!({ "elicitation": {}, "extensions": { "io.modelcontextprotocol/tasks": {} } });
    message_of(tasks, id, method, params)
}

fn message_of(capabilities: Value, id: &Value, method: &str, mut params: Value) -> Value {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(VERSION);
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities;
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

/// A call that is answered with its result, and takes longer than any test.
fn endless(id: &Value) -> Value {
    let params = json!({ "name": "slow_compute", "arguments": { "seconds": 1_000_000 } });
    message_of(json!({}), id, "tools/call", params)
}

fn cancelled(id: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } })
}

#[tokio::test]
async fn every_operation_works_as_over_http() {
    let mut pipe = Pipe::start("memory:");
    let found = pipe.result("server/discover", json!({})).await;
    assert_eq!(found["supportedVersions"], json!([VERSION]));
    assert_eq!(found["capabilities"]["extensions"], json!({ "io.modelcontextprotocol/tasks": {} }));
    let listed = pipe.result("tools/list", json!({})).await;
    assert!(listed["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "echo"));
    let hello = pipe.result("tools/call", json!({ "name": "greet", "arguments": { "name": "Ada" } })).await;
    assert_eq!(hello["content"][0]["text"], "Hello, Ada!");

    let echo = pipe.create("echo", json!({ "text": "done" })).await;
    let done = pipe.get_until(&echo, |task| task["status"] == "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "done");

    let asks = pipe.create("confirm_delete", json!({ "filename": "a.txt" })).await;
    let task = pipe.get_until(&asks, |task| task["status"] == "input_required").await;
    let key = task["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let yes = json!({ "action": "accept", "content": { "confirm": true } });
    pipe.result("tasks/update", json!({ "taskId": asks, "inputResponses": { key: yes } })).await;
    let done = pipe.get_until(&asks, |task| task["status"] == "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "a.txt is deleted.");

    let slow = pipe.create("slow_compute", json!({ "seconds": 1_000 })).await;
    pipe.result("tasks/cancel", json!({ "taskId": slow })).await;
    assert_eq!(pipe.result("tasks/get", json!({ "taskId": slow })).await["status"], "cancelled");
    assert_eq!(pipe.request("tasks/get", json!({ "taskId": "unknown" })).await["error"]["code"], -32602);

    let (rest, code) = pipe.finish().await;
    assert_eq!((rest, code), (vec![], Some(0)));
}

#[tokio::test]
async fn a_cancelled_request_is_never_answered() {
    let mut pipe = Pipe::start("memory:");
    pipe.send(&endless(&json!("slow"))).await;
    pipe.send(&cancelled(&json!("slow"))).await;
    // What was never asked, or is no ID, is ignored.
    pipe.send(&cancelled(&json!("unknown"))).await;
    pipe.send(&cancelled(&json!(null))).await;
    pipe.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled" })).await;
    pipe.send(&json!({ "jsonrpc": "2.0", "method": "notifications/unknown" })).await;
    pipe.result("tools/list", json!({})).await;
    let (rest, code) = pipe.finish().await;
    assert_eq!((rest, code), (vec![], Some(0)));
}

#[tokio::test]
async fn cancelling_the_request_never_cancels_the_task_it_made() {
    let mut pipe = Pipe::start("memory:");
    let id = pipe.create("slow_compute", json!({ "seconds": 1_000 })).await;
    pipe.send(&cancelled(&json!("r"))).await;
    assert_eq!(pipe.result("tasks/get", json!({ "taskId": id })).await["status"], "working");
    pipe.result("tasks/cancel", json!({ "taskId": id })).await;
    assert_eq!(pipe.finish().await, (vec![], Some(0)));
}

#[tokio::test]
async fn a_cancelled_subscription_is_silent_from_then_on() {
    let mut pipe = Pipe::start("memory:");
    let id = pipe.create("slow_compute", json!({ "seconds": 1_000 })).await;
    for subscription in ["gone", "stays"] {
        let params = json!({ "notifications": { "taskIds": [id] } });
        pipe.send(&message(&json!(subscription), "subscriptions/listen", params)).await;
        let first = pipe.must_next().await;
        assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
        assert_eq!(first["params"]["_meta"][SUBSCRIPTION], subscription);
        let second = pipe.must_next().await;
        assert_eq!((&second["method"], &second["params"]["taskId"]), (&json!("notifications/tasks"), &json!(id)));
        assert_eq!(second["params"]["_meta"][SUBSCRIPTION], subscription);
    }
    pipe.send(&cancelled(&json!("gone"))).await;
    pipe.send(&message(&json!("c"), "tasks/cancel", json!({ "taskId": id }))).await;
    // The other one shows the end of its task, beside the answer to whoever ended it, and at last ends with a word.
    let both = [pipe.must_next().await, pipe.must_next().await];
    let pushed = both.iter().find(|message| message["method"] == "notifications/tasks").expect("a push");
    assert_eq!(
        (&pushed["params"]["_meta"][SUBSCRIPTION], &pushed["params"]["status"]),
        (&json!("stays"), &json!("cancelled"))
    );
    assert!(both.iter().any(|message| message["id"] == "c"), "{both:?}");
    let (rest, code) = pipe.finish().await;
    assert_eq!(rest.len(), 1, "{rest:?}");
    assert_eq!((&rest[0]["id"], &rest[0]["result"]["_meta"][SUBSCRIPTION]), (&json!("stays"), &json!("stays")));
    assert_eq!(code, Some(0));
}

#[tokio::test]
async fn progress_comes_before_the_result_and_requests_do_not_wait_for_each_other() {
    let mut pipe = Pipe::start("memory:");
    pipe.send(&endless(&json!("endless"))).await;
    let params = json!({ "name": "test_tool_with_progress", "_meta": { "progressToken": "p" } });
    pipe.send(&message(&json!("progress"), "tools/call", params)).await;
    pipe.send(&message(&json!("list"), "tools/list", json!({}))).await;
    let (mut progress, mut answered) = (Vec::new(), Vec::new());
    while answered.len() < 2 {
        let message = pipe.must_next().await;
        if message["method"] == "notifications/progress" {
            assert_eq!(message["params"]["progressToken"], "p");
            assert!(!answered.contains(&json!("progress")), "progress after the result");
            progress.push(message["params"]["progress"].as_f64().unwrap());
        } else {
            answered.push(message["id"].clone());
        }
    }
    assert_eq!(progress, [0.0, 50.0, 100.0]);
    assert_eq!(answered, [json!("list"), json!("progress")], "the quick one does not wait for the slow ones");
    pipe.send(&cancelled(&json!("endless"))).await;
    assert_eq!(pipe.finish().await, (vec![], Some(0)));
}

#[tokio::test]
async fn an_id_that_is_under_way_is_refused_and_can_still_be_cancelled() {
    let mut pipe = Pipe::start("memory:");
    pipe.send(&endless(&json!(5))).await;
    pipe.send(&message(&json!(5), "tools/list", json!({}))).await;
    let refused = pipe.must_next().await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(5), &json!(-32600)), "{refused}");
    // A number is not the text of it.
    pipe.send(&message(&json!("5"), "tools/list", json!({}))).await;
    assert_eq!(pipe.must_next().await["id"], "5");

    pipe.send(&cancelled(&json!(5))).await;
    pipe.send(&message(&json!(5), "tools/list", json!({}))).await;
    let answered = pipe.must_next().await;
    assert!(answered["id"] == 5 && answered.get("result").is_some(), "the ID is free again: {answered}");
    assert_eq!(pipe.finish().await, (vec![], Some(0)), "the first request is gone and not waited for");
}

#[tokio::test]
async fn a_line_that_is_no_message_is_refused_and_the_next_one_answered() {
    let mut pipe = Pipe::start("memory:");
    let limit = Limits::default().message_bytes_max;
    let good = message(&json!(1), "tools/list", json!({})).to_string();
    let at_the_limit = format!("{good}{}", " ".repeat(limit - good.len()));
    let too_long = format!("{at_the_limit} ");
    let way_too_long = "x".repeat(3 * limit);
    let table: &[(&[u8], Option<i64>, Value)] = &[
        (b"nonsense", Some(-32700), Value::Null),
        (b"{", Some(-32700), Value::Null),
        (b"\xff\xfe", Some(-32700), Value::Null),
        (b"\0", Some(-32700), Value::Null),
        (b"[]", Some(-32600), Value::Null),
        (b"null", Some(-32600), Value::Null),
        (br#"{"jsonrpc":"2.0","id":1,"result":{}}"#, Some(-32600), Value::Null),
        (br#"{"jsonrpc":"2.0","id":7,"method":5}"#, Some(-32600), json!(7)),
        (br#"{"jsonrpc":"2.0","id":null,"method":"tools/list"}"#, Some(-32600), Value::Null),
        (br#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#, Some(-32602), json!(7)),
        (br#"{"jsonrpc":"2.0","id":7,"method":"initialize","params":{}}"#, Some(-32602), json!(7)),
        (at_the_limit.as_bytes(), None, json!(1)),
        (too_long.as_bytes(), Some(-32600), Value::Null),
        (way_too_long.as_bytes(), Some(-32600), Value::Null),
    ];
    for (line, code, id) in table {
        pipe.write(line).await;
        pipe.write(b"\n").await;
        let answer = pipe.must_next().await;
        let shown = String::from_utf8_lossy(&line[..line.len().min(60)]);
        assert_eq!(answer["error"]["code"].as_i64(), *code, "{shown}: {answer}");
        assert_eq!(answer.get("id").cloned().unwrap_or_default(), *id, "{shown}: {answer}");
    }
    // Empty lines are nothing, and some clients end theirs with both characters.
    pipe.write(b"\n  \r\n\n").await;
    pipe.write(format!("{good}\r\n").as_bytes()).await;
    assert_eq!(pipe.must_next().await["id"], 1);
    assert_eq!(pipe.finish().await, (vec![], Some(0)));
}

#[tokio::test]
async fn what_was_asked_before_the_end_of_file_is_answered() {
    let mut pipe = Pipe::start("memory:");
    for id in 0..20 {
        pipe.send(&message(&json!(id), "tools/list", json!({}))).await;
    }
    // The last line of a file may have no end.
    pipe.write(message(&json!(20), "server/discover", json!({})).to_string().as_bytes()).await;
    let (answers, code) = pipe.finish().await;
    let mut ids: Vec<i64> = answers.iter().map(|answer| answer["id"].as_i64().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..=20).collect::<Vec<_>>());
    assert_eq!(code, Some(0));
}

#[tokio::test]
async fn tasks_survive_into_the_next_process() {
    let directory = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", directory.path().join("tasks.db").display());
    let mut pipe = Pipe::start(&store);
    let done = pipe.create("echo", json!({ "text": "still here" })).await;
    let before = pipe.get_until(&done, |task| task["status"] == "completed").await;
    assert_eq!(pipe.finish().await, (vec![], Some(0)));

    let mut pipe = Pipe::start(&store);
    let after = pipe.result("tasks/get", json!({ "taskId": done })).await;
    assert_eq!(after, before);
    assert_eq!(pipe.finish().await, (vec![], Some(0)));
    assert_eq!(names(directory.path()), ["tasks.db"], "the end of input is a clean stop");
}

#[tokio::test]
async fn a_signal_ends_it_gracefully_while_the_client_still_holds_the_line() {
    let mut pipe = Pipe::start("memory:");
    let params = json!({ "notifications": { "taskIds": [] } });
    pipe.send(&message(&json!("s"), "subscriptions/listen", params)).await;
    assert_eq!(pipe.must_next().await["method"], "notifications/subscriptions/acknowledged");
    let id = pipe.child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?)).unwrap();
    kill_process(id, Signal::TERM).unwrap();
    let input = pipe.input.take();
    let (rest, code) = pipe.ended().await;
    assert_eq!(rest.len(), 1, "{rest:?}");
    assert_eq!((&rest[0]["id"], &rest[0]["result"]["_meta"][SUBSCRIPTION]), (&json!("s"), &json!("s")));
    assert_eq!(code, Some(0));
    drop(input);
}

//! Several clients that start `longhaul serve --stdio` on one store at once.

use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use longhaul_testkit::{PipeClient, until};
use serde_json::{Value, json};
use tokio::process::{Child, Command};

use crate::kit::longhaul;

const CONFIG: &str = r#"
[tool.work]
shell = true
command = 'echo "$NAME" >> starts; while [ ! -e "go-$NAME" ]; do sleep 0.02; done; echo "$NAME done"'
args.name = { type = "string" }
env.NAME = "{name}"
on_crash = "retry"
backoff = "10ms"

[tool.once]
shell = true
command = 'echo once >> starts; while [ ! -e go-once ]; do sleep 0.02; done'
task = "forbidden"

[tool.ask]
shell = true
command = '''
echo 'longhaul: {"ask": "ok", "message": "Go on?"}'
read -r answer
echo "$answer"
'''
messages = "stdout"
on_crash = "retry"
backoff = "10ms"
"#;

struct Client {
    child: Child,
    pipe: PipeClient,
}

fn start(folder: &Path) -> Client {
    let mut command = Command::new(longhaul());
    command.args(["serve", "--stdio", "--config"]).arg(folder.join("longhaul.toml"));
    command.arg("--store").arg(format!("sqlite:{}", folder.join("tasks.db").display()));
    command.env("LONGHAUL_PROCESS_DIR", folder.join("processes")).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let pipe = PipeClient::new(child.stdin.take().unwrap(), child.stdout.take().unwrap());
    Client { child, pipe }
}

fn folder() -> tempfile::TempDir {
    folder_with(CONFIG)
}

fn folder_with(config: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("longhaul.toml"), config).unwrap();
    folder
}

fn starts(folder: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(folder.join("starts")).unwrap_or_default();
    let mut starts: Vec<String> = text.lines().map(str::to_owned).collect();
    starts.sort();
    starts
}

fn is_completed(task: &Value) -> bool {
    task["status"] == "completed"
}

#[tokio::test]
async fn three_clients_work_on_one_store_and_go_on_after_a_kill_of_the_server() {
    let folder = folder();
    let path = folder.path();
    let mut first = start(path);
    let a = first.pipe.create("work", json!({ "name": "a" })).await;
    let (mut second, mut third) = (start(path), start(path));
    let b = second.pipe.create("work", json!({ "name": "b" })).await;
    let c = third.pipe.create("work", json!({ "name": "c" })).await;
    until("three commands that run", async || starts(path).len() == 3).await;
    let seen = third.pipe.result("tasks/get", json!({ "taskId": a })).await;
    assert_eq!(seen["status"], "working", "they share their tasks");

    // The second client has a request open while the server dies.
    second.pipe.send_request("open", "subscriptions/listen", json!({ "notifications": { "taskIds": [&b] } })).await;
    assert_eq!(
        second.pipe.next_of("notifications/subscriptions/acknowledged").await["params"]["notifications"]["taskIds"],
        json!([&b])
    );
    first.child.kill().await.unwrap();
    until("the second attempts", async || starts(path).len() == 6).await;
    assert_eq!(starts(path), ["a", "a", "b", "b", "c", "c"], "each once on each server");
    for name in ["go-a", "go-b", "go-c"] {
        std::fs::write(path.join(name), "").unwrap();
    }
    // The subscription goes on at the new server, and tells the end.
    loop {
        let message = second.pipe.must_next().await;
        if message["params"]["status"] == "completed" {
            assert_eq!(message["params"]["taskId"], json!(b));
            break;
        }
    }
    for (id, name) in [(&a, "a"), (&b, "b"), (&c, "c")] {
        let end = third.pipe.get_until(id, is_completed).await;
        assert_eq!(end["result"]["content"][0]["text"], format!("{name} done"));
    }
    assert_eq!(starts(path).len(), 6);
    let made = second.pipe.request("tools/list", json!({})).await;
    assert!(made["result"]["tools"].is_array(), "{made}");
    drop(second.pipe);
    third.pipe.finish().await;
    second.child.wait().await.unwrap();
    third.child.wait().await.unwrap();
}

#[tokio::test]
async fn a_server_that_takes_over_offers_what_the_config_file_says_then() {
    let folder = folder();
    let path = folder.path();
    let mut first = start(path);
    first.pipe.result("tools/list", json!({})).await;
    let mut second = start(path);
    second.pipe.result("tools/list", json!({})).await;

    let file = path.join("longhaul.toml");
    std::fs::write(&file, format!("{CONFIG}\n[tool.later]\ncommand = [\"true\"]\n")).unwrap();
    let an_hour_ago = SystemTime::now() - Duration::from_secs(3_600);
    File::options().append(true).open(&file).unwrap().set_modified(an_hour_ago).unwrap();
    first.child.kill().await.unwrap();
    until("the later tool is listed", async || {
        let listed = second.pipe.result("tools/list", json!({})).await;
        listed["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "later")
    })
    .await;
}

#[tokio::test]
async fn a_session_survives_the_end_of_its_server_with_its_task_and_question() {
    let folder = folder();
    let path = folder.path();
    let mut first = start(path);
    first.pipe.result("tools/list", json!({})).await;
    let second = start(path);
    let mut session = second.pipe.initialize("2025-11-25", json!({ "elicitation": {} })).await;
    let params = json!({ "name": "ask", "arguments": {}, "task": {} });
    let made = session.session_result("tools/call", params).await;
    let id = made["task"]["taskId"].as_str().unwrap().to_owned();
    session.send_session_request("result", "tasks/result", json!({ "taskId": id })).await;
    session.next_of("elicitation/create").await;
    first.child.kill().await.unwrap();

    // The new server asks again; the client waits for its result as before.
    let asked = session.next_of("elicitation/create").await;
    session
        .send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "action": "accept", "content": {} } }))
        .await;
    let end = session.response("result").await;
    let text = end["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{end}"));
    assert!(text.contains(r#""action":"accept""#), "{text}");
    session.finish().await;
}

#[tokio::test]
async fn a_call_of_a_client_without_tasks_goes_on_at_the_next_server_and_none_runs_twice() {
    let folder = folder();
    let path = folder.path();
    let mut first = start(path);
    first.pipe.result("tools/list", json!({})).await;
    let (second, third) = (start(path), start(path));
    let mut host = second.pipe.initialize("2025-06-18", json!({})).await;
    host.send_session_request("work", "tools/call", json!({ "name": "work", "arguments": { "name": "a" } })).await;
    host.send_session_request("once", "tools/call", json!({ "name": "once", "arguments": {} })).await;
    let mut stateless = third.pipe;
    stateless.send_request("once", "tools/call", json!({ "name": "once", "arguments": {} })).await;
    until("three commands that run", async || starts(path).len() == 3).await;
    first.child.kill().await.unwrap();
    assert_eq!(host.response("once").await["error"]["data"]["code"], "ANSWER_LOST");
    assert_eq!(stateless.response("once").await["error"]["data"]["code"], "ANSWER_LOST");
    until("the second attempt", async || starts(path).len() == 4).await;
    std::fs::write(path.join("go-a"), "").unwrap();
    let done = host.response("work").await;
    assert_eq!(done["result"]["content"][0]["text"], "a done", "{done}");
    assert_eq!(starts(path), ["a", "a", "once", "once"]);
    drop(stateless);
    host.finish().await;
}

#[tokio::test]
async fn a_call_that_has_chosen_the_id_of_its_task_is_answered_by_the_next_server() {
    let folder = folder();
    let path = folder.path();
    let mut first = start(path);
    first.pipe.result("tools/list", json!({})).await;
    let second = start(path);
    let mut client = second.pipe.initialize("2025-06-18", json!({})).await;
    let meta = json!({ "modelcontextprotocol.io/task": { "taskId": "mine", "keepAlive": 60_000 } });
    let call = json!({ "name": "work", "arguments": { "name": "a" }, "_meta": meta });
    client.send_session_request("work", "tools/call", call.clone()).await;
    client.next_of("notifications/tasks/created").await;
    until("the first attempt", async || starts(path).len() == 1).await;
    first.child.kill().await.unwrap();
    until("the second attempt", async || starts(path).len() == 2).await;
    // Only the relay repeats a call. A client that uses the ID again is refused as before.
    client.send_session_request("again", "tools/call", call).await;
    assert_eq!(client.response("again").await["error"]["message"], "Task ID already exists: mine");
    std::fs::write(path.join("go-a"), "").unwrap();
    let done = client.response("work").await;
    assert_eq!(done["result"]["content"][0]["text"], "a done", "{done}");
    assert_eq!(starts(path), ["a", "a"]);
    client.finish().await;
}

#[tokio::test]
async fn a_prompt_with_a_chosen_id_is_answered_by_the_next_server() {
    let directory = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", directory.path().join("tasks.db").display());
    let (mut first, mut direct) = crate::stdio::start(&store);
    direct.result("tools/list", json!({})).await;
    let (_second, passed_on) = crate::stdio::start(&store);
    let mut client = passed_on.initialize("2025-06-18", json!({ "elicitation": {} })).await;
    let meta = json!({ "modelcontextprotocol.io/task": { "taskId": "mine" } });
    let get = json!({ "name": "test_input_required_result_prompt", "_meta": meta });
    client.send_session_request("get", "prompts/get", get).await;
    client.next_of("elicitation/create").await;
    first.kill().await.unwrap();
    let asked = client.next_of("elicitation/create").await;
    let answer = json!({ "action": "accept", "content": { "context": "bees" } });
    client.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": answer })).await;
    let prompt = client.response("get").await;
    assert_eq!(prompt["result"]["messages"][0]["content"]["text"], "Use this context: bees", "{prompt}");
    client.finish().await;
}

#[tokio::test]
async fn the_same_call_joins_the_running_task_whichever_process_its_client_started() {
    let config = CONFIG.replacen("[tool.work]", "[tool.work]\nhints.idempotent = true", 1);
    let folder = folder_with(&format!("{config}[clients_without_tasks]\npatience = \"1ms\"\n"));
    let path = folder.path();
    let first = start(path);
    let mut direct = first.pipe.initialize("2025-06-18", json!({})).await;
    let second = start(path);
    let mut passed_on = second.pipe.initialize("2025-06-18", json!({})).await;
    let call = || json!({ "name": "work", "arguments": { "name": "a" } });
    let mut ids = Vec::new();
    for client in [&mut passed_on, &mut direct] {
        for _ in 0..2 {
            let ticket = client.session_result("tools/call", call()).await;
            ids.push(ticket["_meta"]["longhaul/task"]["taskId"].clone());
        }
    }
    assert!(ids[0].is_string() && ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    std::fs::write(path.join("go-a"), "").unwrap();
    passed_on.finish().await;
    direct.finish().await;
}

#[tokio::test]
async fn a_client_that_has_closed_its_input_is_answered_after_a_kill_of_the_server() {
    let folder = folder_with(&format!(
        "{CONFIG}[clients_without_tasks]\npatience = \"1h\"\n[limits]\nserver.close_time_max = \"1h\"\n"
    ));
    let path = folder.path();
    let mut first = start(path);
    first.pipe.result("tools/list", json!({})).await;
    let second = start(path);
    let mut host = second.pipe.initialize("2025-06-18", json!({})).await;
    host.send_session_request("work", "tools/call", json!({ "name": "work", "arguments": { "name": "a" } })).await;
    until("a command that runs", async || starts(path).len() == 1).await;
    host.close();
    first.child.kill().await.unwrap();
    // The next server stops at once, because its only client has closed its input.
    let ticket = host.response("work").await;
    assert_eq!(ticket["result"]["_meta"]["longhaul/task"]["status"], "working", "{ticket}");
    std::fs::write(path.join("go-a"), "").unwrap();
    assert!(host.next().await.is_none());
}

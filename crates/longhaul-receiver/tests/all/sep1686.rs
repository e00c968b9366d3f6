//! SEP-1686: IDs that the requestor chooses, the announcement of a task, the response that still follows, cancellation
//! by request ID, deletion.

use std::sync::Arc;

use longhaul_store::SystemClock;
use longhaul_store_sqlite::SqliteOptions;
use longhaul_testkit::tools::{self, Door, accepted_name, start};
use longhaul_testkit::{ReplyMessages, SessionClient, TestServer, until};
use serde_json::{Value, json};

const TASK: &str = "modelcontextprotocol.io/task";
const RELATED: &str = "modelcontextprotocol.io/related-task";

/// A client that can answer forms, in a session whose revision has no tasks of its own.
async fn open(server: &TestServer, token: Option<&str>) -> SessionClient {
    let mut client = SessionClient::new(server);
    client.token = token.map(str::to_owned);
    client.initialize("2025-06-18", json!({ "elicitation": {} })).await
}

fn creation(tool: &str, id: &str) -> Value {
    let arguments = json!({ "text": "hello", "tools": ["wait", "greet"] });
    json!({ "name": tool, "arguments": arguments, "_meta": { TASK: { "taskId": id, "keepAlive": 60_000 } } })
}

fn about(id: &str) -> Value {
    json!({ "taskId": id, "_meta": { RELATED: { "taskId": id } } })
}

/// Calls a tool as a task and reads the announcement. Returns the stream of the call.
async fn create(client: &SessionClient, tool: &str, id: &str) -> ReplyMessages {
    let mut call = client.send("tools/call", creation(tool, id)).await;
    let created = call.next_of("notifications/tasks/created").await;
    assert_eq!(created["params"], json!({ "_meta": { RELATED: { "taskId": id } } }));
    call
}

async fn status(client: &SessionClient, id: &str) -> Value {
    client.result("tasks/get", about(id)).await["status"].take()
}

#[tokio::test]
async fn a_call_is_announced_as_a_task_and_still_answered_with_its_result() {
    let (server, door) = start().await;
    let client = open(&server, Some("ada")).await;
    let mut call = create(&client, "wait", "mine").await;
    let task = client.result("tasks/get", about("mine")).await;
    assert_eq!((&task["status"], &task["keepAlive"]), (&json!("working"), &json!(60_000)), "{task}");
    let early = client.error("tasks/result", about("mine")).await;
    assert_eq!(early["message"], "Cannot retrieve result: Task status is 'working', not 'completed'");
    door.open(1);
    let answer = call.last().await;
    assert_eq!(answer["result"]["content"][0]["text"], "waited");
    assert_eq!(answer["result"]["_meta"], json!({ RELATED: { "taskId": "mine" } }));
    assert_eq!(client.result("tasks/result", about("mine")).await, answer["result"], "as often as it is asked for");
    assert_eq!(client.result("tasks/list", json!({})).await["tasks"][0]["taskId"], "mine");
}

#[tokio::test]
async fn an_id_that_is_too_long_is_refused_with_the_limit() {
    let (server, _door) = start().await;
    let (anonymous, ada) = (open(&server, None).await, open(&server, Some("ada")).await);
    for (client, bytes, expected) in
        [(&anonymous, 222, "has 222 bytes; the limit here is 221"), (&ada, 257, "has 257 bytes; the limit is 256")]
    {
        let refused = client.error("tools/call", creation("echo", &"x".repeat(bytes))).await;
        assert!(refused["message"].as_str().unwrap().contains(expected), "{refused}");
    }
    create(&anonymous, "echo", &"x".repeat(221)).await.last().await;
    let params = json!({ "name": "echo", "arguments": {}, "_meta": { "progressToken": "x".repeat(513) } });
    let refused = ada.error("tools/call", params).await;
    assert!(refused["message"].as_str().unwrap().contains("at most 512 bytes"), "{refused}");
}

#[tokio::test]
async fn an_error_of_the_protocol_answers_the_call_and_is_the_error_of_the_task() {
    let (server, _door) = start().await;
    let client = open(&server, Some("ada")).await;
    let answer = create(&client, "break", "mine").await.last().await;
    assert_eq!((&answer["error"]["code"], &answer["error"]["message"]), (&json!(-32_001), &json!("hello")));
    let task = client.result("tasks/get", about("mine")).await;
    assert_eq!((&task["status"], &task["error"]), (&json!("failed"), &json!("hello")));
    assert_eq!(client.error("tasks/result", about("mine")).await["code"], -32_602);
    // A tool's own error is a result.
    let answer = create(&client, "fail", "other").await.last().await;
    assert_eq!(answer["result"]["isError"], true);
    assert_eq!(status(&client, "other").await, "completed");
}

#[tokio::test]
async fn an_id_is_used_once_by_its_owner_and_others_can_use_it_too() {
    let (server, door) = start().await;
    let client = open(&server, Some("ada")).await;
    let _first = create(&client, "wait", "mine").await;
    let again = open(&server, Some("ada")).await;
    for session in [&client, &again] {
        for tool in ["wait", "echo"] {
            let refused = session.error("tools/call", creation(tool, "mine")).await;
            let expected = json!({ "code": -32_602, "message": "Task ID already exists: mine" });
            assert_eq!(refused, expected);
        }
    }
    let bob = open(&server, Some("bob")).await;
    assert_eq!(bob.error("tasks/get", about("mine")).await["code"], -32_602);
    let mut his = create(&bob, "echo", "mine").await;
    assert_eq!(his.last().await["result"]["content"][0]["text"], "hello");
    door.open(1);
    until("the end", async || status(&again, "mine").await == "completed").await;
    assert_eq!(again.error("tools/call", creation("wait", "mine")).await["code"], -32_602, "also after its end");
}

#[tokio::test]
async fn without_an_identity_an_id_belongs_to_its_session() {
    let (server, door) = start().await;
    let (one, other) = (open(&server, None).await, open(&server, None).await);
    let mut first = create(&one, "wait", "mine").await;
    assert_eq!(other.error("tasks/get", about("mine")).await["code"], -32_602);
    assert_eq!(other.error("tasks/delete", about("mine")).await["code"], -32_602);
    let mut second = create(&other, "echo", "mine").await;
    assert_eq!(second.last().await["result"]["content"][0]["text"], "hello");
    assert_eq!(status(&one, "mine").await, "working");
    assert_eq!(one.error("tools/call", creation("echo", "mine")).await["message"], "Task ID already exists: mine");
    door.open(1);
    let answer = first.last().await;
    assert_eq!(answer["result"]["_meta"], json!({ RELATED: { "taskId": "mine" } }), "shown as it was chosen");
    // A task of another generation is found by its ID alone, in any session.
    let made = SessionClient::open(&server, json!({})).await.create("echo", json!({ "text": "x" })).await;
    until("its end", async || status(&other, &made).await == "completed").await;
    let long = "x".repeat(250);
    assert_eq!(one.error("tools/call", creation("echo", &long)).await["code"], -32_602);
}

#[tokio::test]
async fn cancelling_the_request_cancels_its_task_and_no_answer_comes() {
    let (server, _door) = start().await;
    let client = open(&server, Some("ada")).await;
    let message = client.message("tools/call", creation("wait", "mine"));
    let mut call = client.post(message.to_string()).await;
    call.next_of("notifications/tasks/created").await;
    assert_eq!(client.notify("notifications/cancelled", json!({ "requestId": message["id"] })).await, 202);
    assert_eq!(call.rest().await, Vec::<Value>::new());
    assert_eq!(status(&client, "mine").await, "cancelled");
    assert_eq!(client.error("tasks/result", about("mine")).await["code"], -32_602);
    // A task that has ended stays as it is.
    let message = client.message("tools/call", creation("echo", "done"));
    let mut call = client.post(message.to_string()).await;
    call.next_of("notifications/tasks/created").await;
    call.last().await;
    client.notify("notifications/cancelled", json!({ "requestId": message["id"] })).await;
    assert_eq!(status(&client, "done").await, "completed");
}

/// On a disk, because the cancellation has to take longer than the end of the call's stream.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_question_of_a_cancelled_call_is_withdrawn_and_not_asked_again() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tasks.db");
    let store = longhaul_store_sqlite::open(&file, &SqliteOptions::default(), SystemClock).unwrap();
    let server = TestServer::start_on(tools::server(&Door::closed()), Arc::new(store)).await;
    let client = open(&server, Some("ada")).await;
    let mut events = client.listen(None).await;
    let message = client.message("tools/call", creation("greet", "mine"));
    let mut call = client.post(message.to_string()).await;
    let question = call.next_of("elicitation/create").await;
    client.notify("notifications/cancelled", json!({ "requestId": message["id"] })).await;
    let mut messages = call.rest().await;
    // The withdrawal comes on either stream.
    if messages.is_empty() {
        messages.push(events.must_next().await);
    }
    server.begin_stop();
    messages.extend(events.rest().await);
    let methods: Vec<_> = messages.iter().map(|message| message["method"].as_str().unwrap_or_default()).collect();
    assert_eq!(methods, ["notifications/cancelled"], "{messages:?}");
    assert_eq!(messages[0]["params"]["requestId"], question["id"]);
}

/// The cancellation and the wait that it ends run on different threads. Which is first must not matter.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_cancellation_of_a_request_is_lost_to_the_end_of_its_wait() {
    let (server, _door) = start().await;
    let client = open(&server, Some("ada")).await;
    for number in 0..200 {
        let id = format!("mine-{number}");
        let message = client.message("tools/call", creation("wait", &id));
        let mut call = client.post(message.to_string()).await;
        call.next_of("notifications/tasks/created").await;
        client.notify("notifications/cancelled", json!({ "requestId": message["id"] })).await;
        until("the cancellation", async || status(&client, &id).await == "cancelled").await;
    }
}

#[tokio::test]
async fn without_an_identity_the_id_of_a_task_of_another_generation_is_used_too() {
    let (server, _door) = start().await;
    let client = SessionClient::new(&server).initialize("2025-11-25", json!({})).await;
    let call = json!({ "name": "wait", "arguments": {}, "task": {} });
    let id = client.result("tools/call", call).await["task"]["taskId"].as_str().unwrap().to_owned();
    let refused = client.error("tools/call", creation("echo", &id)).await;
    assert_eq!(refused["message"], format!("Task ID already exists: {id}"));
}

#[tokio::test]
async fn a_question_is_a_request_that_names_the_task() {
    let (server, _door) = start().await;
    let client = open(&server, Some("ada")).await;
    let mut call = create(&client, "greet", "mine").await;
    let question = call.next_of("elicitation/create").await;
    assert_eq!(question["params"]["_meta"], json!({ RELATED: { "taskId": "mine" } }));
    assert_eq!(status(&client, "mine").await, "input_required");
    client.respond(&question, accepted_name("Ada")).await;
    assert_eq!(call.last().await["result"]["content"][0]["text"], "Hello, Ada!");
}

#[tokio::test]
async fn progress_keeps_its_token_and_names_the_task() {
    let (server, door) = start().await;
    let client = open(&server, Some("ada")).await;
    let mut params = creation("steps", "mine");
    params["_meta"]["progressToken"] = json!("token");
    let mut call = client.send("tools/call", params).await;
    let told = call.next_of("notifications/progress").await;
    assert_eq!(told["params"]["progressToken"], "token");
    assert_eq!(told["params"]["_meta"], json!({ RELATED: { "taskId": "mine" } }));
    door.open(3);
    assert_eq!(call.last().await["result"]["content"][0]["text"], "three steps");
}

#[tokio::test]
async fn children_are_announced_and_are_not_deleted_alone() {
    let (server, door) = start().await;
    let client = open(&server, Some("ada")).await;
    let mut call = create(&client, "family", "mine").await;
    let mut children = Vec::new();
    for _ in 0..2 {
        let created = call.next_of("notifications/tasks/created").await;
        let related = &created["params"]["_meta"][RELATED];
        assert_eq!(related["parentTaskId"], "mine", "{created}");
        children.push(related["taskId"].clone());
    }
    let parent = client.result("tasks/get", about("mine")).await;
    assert_eq!(parent["childTaskIds"], json!(children));
    let child = children[0].as_str().unwrap();
    assert_eq!(client.result("tasks/get", about(child)).await["parentTaskId"], "mine");
    let question = call.next_of("elicitation/create").await;
    assert_eq!(question["params"]["_meta"][RELATED]["taskId"], children[1]);
    client.respond(&question, accepted_name("Ada")).await;
    let open = client.error("tasks/delete", about("mine")).await;
    assert_eq!(open["code"], -32_602);
    let message =
        "Cannot delete task: it has not ended. Cancel it first, with `notifications/cancelled` or `tasks/cancel`.";
    assert_eq!(open["message"], message);
    door.open(1);
    call.last().await;
    let refused = client.error("tasks/delete", about(child)).await;
    assert!(refused["message"].as_str().unwrap().contains("together with its parent"), "{refused}");
    client.result("tasks/delete", about("mine")).await;
    for id in ["mine", child] {
        assert_eq!(client.error("tasks/get", about(id)).await["message"], "Failed to retrieve task: Task not found");
    }
}

#[tokio::test]
async fn a_deleted_task_is_gone_and_its_id_free() {
    let (server, _door) = start().await;
    let client = open(&server, Some("ada")).await;
    create(&client, "echo", "mine").await.last().await;
    let deleted = client.result("tasks/delete", about("mine")).await;
    assert_eq!(deleted, json!({ "_meta": { RELATED: { "taskId": "mine" } } }));
    for (method, verb) in [
        ("tasks/get", "retrieve"),
        ("tasks/result", "retrieve"),
        ("tasks/delete", "delete"),
        ("tasks/cancel", "cancel"),
    ] {
        let message = format!("Failed to {verb} task: Task not found");
        assert_eq!(client.error(method, about("mine")).await, json!({ "code": -32_602, "message": message }));
        let never = json!({ "taskId": "\n" });
        assert_eq!(client.error(method, never).await["message"], message, "what cannot be an ID names no task either");
    }
    create(&client, "echo", "mine").await.last().await;
}

#[tokio::test]
async fn the_key_is_ignored_by_a_tool_that_never_runs_as_a_task() {
    let (server, _door) = start().await;
    let client = open(&server, Some("ada")).await;
    let result = client.result("tools/call", creation("never_task", "mine")).await;
    assert_eq!(result["content"][0]["text"], "no task");
    assert_eq!(client.error("tasks/get", about("mine")).await["code"], -32_602);
    for malformed in [json!(5), json!({}), json!({ "taskId": 5 }), json!({ "taskId": "t", "keepAlive": -1 })] {
        let call = |tool| json!({ "name": tool, "arguments": {}, "_meta": { TASK: malformed } });
        assert_eq!(client.result("tools/call", call("never_task")).await["content"][0]["text"], "no task");
        assert_eq!(client.error("tools/call", call("only_task")).await["code"], -32_602, "{malformed}");
    }
    // A tool that always runs as a task uses the key.
    create(&client, "only_task", "other").await.last().await;
}

#[tokio::test]
async fn a_call_is_answered_on_a_stream_that_was_resumed() {
    let (server, door) = start().await;
    let client = open(&server, Some("ada")).await;
    let call = create(&client, "wait", "mine").await;
    let last = call.last_event.clone().unwrap();
    drop(call);
    let mut resumed = client.listen(Some(&last)).await;
    door.open(1);
    assert_eq!(resumed.last().await["result"]["content"][0]["text"], "waited");
}

#[tokio::test]
async fn keep_alive_is_the_same_before_and_after_the_end_if_none_was_requested() {
    const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
    let (server, door) = start().await;
    let client = open(&server, Some("ada")).await;
    for (id, task) in [("none", json!({ "taskId": "none" })), ("null", json!({ "taskId": "null", "keepAlive": null }))]
    {
        let params = json!({ "name": "wait", "arguments": {}, "_meta": { TASK: task } });
        let mut call = client.send("tools/call", params).await;
        call.next_of("notifications/tasks/created").await;
        // The tool's own time.
        assert_eq!(client.result("tasks/get", about(id)).await["keepAlive"], DAY_MS, "{id}, before its end");
        door.open(1);
        call.last().await;
        assert_eq!(client.result("tasks/get", about(id)).await["keepAlive"], DAY_MS, "{id}, after its end");
    }
}

#[tokio::test]
async fn keep_alive_is_brought_within_the_limits() {
    const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
    let (server, _door) = start().await;
    let client = open(&server, Some("ada")).await;
    for (index, (keep_alive, kept)) in [
        ("60000", 60_000),
        ("0", 1_000),
        ("1.5", 1_000),
        ("60000.2", 60_001),
        ("18446744073709551616", DAY_MS),
        ("1e300", DAY_MS),
        ("null", DAY_MS),
    ]
    .into_iter()
    .enumerate()
    {
        let id = format!("kept-{index}");
        let mut params = creation("echo", &id);
        params["_meta"][TASK]["keepAlive"] = serde_json::from_str(keep_alive).unwrap();
        let mut call = client.send("tools/call", params).await;
        call.next_of("notifications/tasks/created").await;
        call.last().await;
        let shown = client.result("tasks/get", about(&id)).await["keepAlive"].as_u64().unwrap();
        assert_eq!(shown, kept, "{keep_alive}");
    }
    for wrong in ["-1", "\"60000\"", "true", "[]", "{}"] {
        let mut params = creation("echo", "wrong");
        params["_meta"][TASK]["keepAlive"] = serde_json::from_str(wrong).unwrap();
        let refused = client.error("tools/call", params).await;
        let message = "`modelcontextprotocol.io/task` is not valid: `keepAlive` must be null or a number of milliseconds that is \
                       not negative.";
        assert_eq!(refused, json!({ "code": -32_602, "message": message }), "{wrong}");
    }
    assert_eq!(client.error("tasks/get", about("wrong")).await["code"], -32_602);
}

#[tokio::test]
async fn an_id_may_have_any_characters_but_control_characters() {
    let (server, _door) = start().await;
    let client = open(&server, Some("ada")).await;
    let longest = "é".repeat(128);
    for id in
        ["x", " ", "a b", "\"\\/", "../../etc/passwd", "%00", "'; DROP TABLE tasks;--", "日本", "\u{202e}", &longest]
    {
        let mut call = create(&client, "echo", id).await;
        assert_eq!(call.last().await["result"]["_meta"][RELATED]["taskId"], id);
        assert_eq!(client.result("tasks/result", about(id)).await["content"][0]["text"], "hello", "{id}");
        assert_eq!(client.error("tools/call", creation("echo", id)).await["code"], -32_602, "{id}");
        client.result("tasks/delete", about(id)).await;
    }
    for id in ["", "a\nb", "\u{0}", &format!("{longest}x")] {
        assert_eq!(client.error("tools/call", creation("echo", id)).await["code"], -32_602, "{id:?}");
    }
}

#[tokio::test]
async fn in_a_batch_an_id_is_used_once_and_the_task_is_announced_before_the_responses() {
    let (server, _door) = start().await;
    let client = SessionClient::new(&server).with_token("ada").initialize("2025-03-26", json!({})).await;
    let batch = json!([
        client.message("tools/call", creation("echo", "mine")),
        client.message("tools/call", creation("echo", "mine")),
        client.message("ping", json!({})),
    ]);
    let messages = client.post(batch.to_string()).await.rest().await;
    let announced: Vec<_> =
        messages.iter().filter(|message| message["method"] == "notifications/tasks/created").collect();
    assert_eq!(announced.len(), 1, "{messages:?}");
    let responses: Vec<_> = messages.iter().filter(|message| message.get("id").is_some()).collect();
    assert_eq!(responses.len(), 3);
    let refused = responses.iter().filter(|response| response["error"]["code"] == -32_602).count();
    let done = responses.iter().filter(|response| response["result"]["content"][0]["text"] == "hello").count();
    assert_eq!((refused, done), (1, 1), "{responses:?}");
}

#[tokio::test]
async fn cancelling_the_request_cancels_the_whole_family() {
    let (server, _door) = start().await;
    let client = open(&server, Some("ada")).await;
    let message = client.message("tools/call", creation("family", "mine"));
    let mut call = client.post(message.to_string()).await;
    for _ in 0..3 {
        call.next_of("notifications/tasks/created").await;
    }
    client.notify("notifications/cancelled", json!({ "requestId": message["id"] })).await;
    let parent = client.result("tasks/get", about("mine")).await;
    for id in parent["childTaskIds"].as_array().unwrap().iter().chain([&json!("mine")]) {
        assert_eq!(status(&client, id.as_str().unwrap()).await, "cancelled", "{id}");
    }
}

/// The same request again would be refused, because its ID is used.
#[tokio::test]
async fn a_call_that_is_open_when_the_server_stops_learns_how_to_get_its_result() {
    let (server, _door) = start().await;
    let client = open(&server, Some("ada")).await;
    let mut call = create(&client, "greet", "mine").await;
    call.next_of("elicitation/create").await;
    server.begin_stop();
    let error = call.last().await["error"].take();
    assert_eq!(error["data"], json!({ "code": "DRAINING" }), "{error}");
    let expected = "The server is stopping, and the task mine has not ended. The task is kept. Do not send this request again: when \
                    the server is back, ask for the task by its ID, with `tasks/get` and then `tasks/result`.";
    assert_eq!(error["message"], expected);
    server.stop().await;
}

/// The ID means nothing there, or another task.
#[tokio::test]
async fn the_parent_of_an_anonymous_task_is_shown_only_in_its_session() {
    let (server, _door) = start().await;
    let (own, other) = (open(&server, None).await, open(&server, None).await);
    let mut call = create(&own, "family", "mine").await;
    let created = call.next_of("notifications/tasks/created").await;
    let child = created["params"]["_meta"][RELATED]["taskId"].as_str().unwrap();
    let shown = own.result("tasks/get", about(child)).await;
    assert_eq!((&shown["parentTaskId"], &shown["_meta"][RELATED]["parentTaskId"]), (&json!("mine"), &json!("mine")));
    let shown = other.result("tasks/get", about(child)).await;
    assert_eq!((&shown["taskId"], &shown["_meta"][RELATED]), (&json!(child), &json!({ "taskId": child })));
    let stateless = server.client().await.get(child).await.unwrap().value;
    let cancelled = other.result("tasks/cancel", json!({ "taskId": child })).await;
    for shown in [shown, stateless, cancelled] {
        assert_eq!(shown.get("parentTaskId"), None, "{shown}");
    }
}

//! `subscriptions/listen` with tasks: the acknowledgement, then the state of each task, then every change.

use longhaul_testkit::tools::{Door, server};
use longhaul_testkit::{ReplyMessages, StatelessClient, TestServer, conformance};
use serde_json::{Value, json};

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

async fn start() -> (TestServer, StatelessClient) {
    let server = TestServer::start(conformance()).await;
    let client = server.client().await;
    (server, client)
}

/// The first message, which must be the acknowledgement. Returns the task IDs in it.
async fn acknowledged(events: &mut ReplyMessages) -> Vec<Value> {
    let first = events.next().await.expect("an acknowledgement");
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "{first}");
    assert_eq!(first["params"]["_meta"][SUBSCRIPTION], 1, "{first}");
    let honoured = first["params"]["notifications"].as_object().expect("a filter").clone();
    assert_eq!(honoured.keys().collect::<Vec<_>>(), ["taskIds"], "{first}");
    honoured["taskIds"].as_array().expect("IDs").clone()
}

async fn pushed(events: &mut ReplyMessages) -> Value {
    let mut message = events.next().await.expect("a push");
    assert_eq!(message["jsonrpc"], "2.0");
    assert_eq!(message["method"], "notifications/tasks", "{message}");
    assert!(message.get("id").is_none(), "a notification: {message}");
    let meta = message["params"].as_object_mut().unwrap().remove("_meta");
    assert_eq!(meta, Some(json!({ SUBSCRIPTION: 1 })), "{message}");
    message["params"].take()
}

/// The result of `tasks/get` without the members that only a response has.
async fn got(client: &mut StatelessClient, id: &str) -> Value {
    let mut task = client.get(id).await.unwrap().value;
    let response = task.as_object_mut().unwrap();
    assert_eq!(response.remove("resultType"), Some(json!("complete")));
    response.remove("_meta");
    task
}

#[tokio::test]
async fn a_task_is_followed_from_its_beginning_through_its_question_to_its_end() {
    let (_server, mut client) = start().await;
    let id = client.create("confirm_delete", json!({ "filename": "a.txt" })).await.unwrap();
    let mut events = client.listen(&[&id]).await;
    assert_eq!(acknowledged(&mut events).await, [json!(id)]);

    let mut seen = Vec::new();
    let asks = loop {
        let task = pushed(&mut events).await;
        seen.push(task.clone());
        if task["status"] == "input_required" {
            break task;
        }
        assert_eq!(task["status"], "working", "{task}");
    };
    assert_eq!(asks, got(&mut client, &id).await, "a push shows what a poll shows");
    let key = asks["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let yes = json!({ "action": "accept", "content": { "confirm": true } });
    client.update(&id, json!({ key: yes })).await.unwrap();
    let last = loop {
        let task = pushed(&mut events).await;
        seen.push(task.clone());
        if task["status"] != "working" {
            break task;
        }
    };
    assert_eq!(last["status"], "completed", "{last}");
    assert_eq!(last["result"]["content"][0]["text"], "a.txt is deleted.");
    assert_eq!(last, got(&mut client, &id).await);

    let time = |task: &Value| task["lastUpdatedAt"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    let times: Vec<jiff::Timestamp> = seen.iter().map(time).collect();
    assert!(times.is_sorted(), "a push went back in time: {seen:#?}");
    for pair in seen.windows(2) {
        assert_ne!(pair[0], pair[1], "the same was pushed twice");
    }
    for task in &seen {
        assert_eq!(task["taskId"], json!(id));
        assert_eq!(task["createdAt"], seen[0]["createdAt"]);
        assert_eq!(task["status"] == "input_required", task.get("inputRequests").is_some(), "{task}");
        assert_eq!(task["status"] == "completed", task.get("result").is_some(), "{task}");
    }
}

#[tokio::test]
async fn every_way_to_end_is_pushed_as_a_poll_shows_it() {
    let (_server, mut client) = start().await;
    let completes = client.create("echo", json!({ "text": "done" })).await.unwrap();
    let fails = client.create("protocol_error_job", json!({})).await.unwrap();
    let reports = client.create("failing_job", json!({})).await.unwrap();
    let cancelled = client.create("slow_compute", json!({ "seconds": 1_000 })).await.unwrap();
    let ids = [&*completes, &*fails, &*reports, &*cancelled];
    let mut events = client.listen(&ids).await;
    assert_eq!(acknowledged(&mut events).await, ids.map(|id| json!(id)));
    client.cancel(&cancelled).await.unwrap();

    let mut ends = std::collections::HashMap::new();
    while ends.len() < ids.len() {
        let task = pushed(&mut events).await;
        let id = task["taskId"].as_str().unwrap().to_owned();
        assert!(!ends.contains_key(&id), "something was pushed after the end: {task}");
        if task["status"] != "working" {
            ends.insert(id, task);
        }
    }
    for (id, status) in
        [(&completes, "completed"), (&fails, "failed"), (&reports, "completed"), (&cancelled, "cancelled")]
    {
        assert_eq!(ends[id]["status"], status);
        assert_eq!(ends[id], got(&mut client, id).await);
    }
    assert_eq!(ends[&reports]["result"]["isError"], true);
    assert_eq!(ends[&fails]["error"]["code"], -32603);
}

#[tokio::test]
async fn a_finished_task_is_shown_once_and_then_there_is_silence_until_the_end() {
    let (server, mut client) = start().await;
    let done = client.create("echo", json!({ "text": "done" })).await.unwrap();
    client.settled(&done).await;
    let mut events = client.listen(&[&done]).await;
    assert_eq!(acknowledged(&mut events).await, [json!(done)]);
    let shown = pushed(&mut events).await;
    assert_eq!(shown, got(&mut client, &done).await);

    let mut nothing = client.listen(&[]).await;
    acknowledged(&mut nothing).await;
    server.begin_stop();
    for mut events in [events, nothing] {
        let rest = events.rest().await;
        assert_eq!(rest.len(), 1, "{rest:?}");
        assert_eq!(rest[0]["id"], 1);
        assert_eq!(rest[0]["result"]["resultType"], "complete", "{}", rest[0]);
        assert_eq!(rest[0]["result"]["_meta"][SUBSCRIPTION], 1);
    }
    server.stop().await;
}

#[tokio::test]
async fn progress_is_pushed_in_the_task_and_never_by_itself() {
    let door = Door::closed();
    let server = TestServer::start(server(&door)).await;
    let mut client = server.client().await;
    let id = client.create("steps", json!({})).await.unwrap();
    let mut events = client.listen(&[&id]).await;
    acknowledged(&mut events).await;
    let mut messages: Vec<String> = Vec::new();
    let last = loop {
        let task = pushed(&mut events).await;
        if task["status"] == "completed" {
            break task;
        }
        if let Some(message) = task["statusMessage"].as_str()
            && messages.last().is_none_or(|last| last != message)
        {
            messages.push(message.to_owned());
            door.open(1);
        }
    };
    assert_eq!(messages, ["step 1", "step 2", "step 3"]);
    assert_eq!(last, got(&mut client, &id).await);
}

#[tokio::test]
async fn ids_that_are_not_the_callers_are_left_out_in_silence() {
    let (_server, mut client) = start().await;
    let mine = client.create("slow_compute", json!({ "seconds": 1_000 })).await.unwrap();
    let long = "x".repeat(10_000);
    let mut events = client.listen(&["unknown", &mine, "", "line\nbreak", &long]).await;
    assert_eq!(acknowledged(&mut events).await, [json!(mine)]);
    assert_eq!(pushed(&mut events).await["taskId"], json!(mine));
    client.cancel(&mine).await.unwrap();
    assert_eq!(pushed(&mut events).await["status"], "cancelled");

    let mut none = client.listen(&["unknown"]).await;
    assert_eq!(acknowledged(&mut none).await, [] as [Value; 0]);
}

#[tokio::test]
async fn a_task_that_is_named_twice_is_followed_once() {
    let (_server, mut client) = start().await;
    let id = client.create("slow_compute", json!({ "seconds": 1_000 })).await.unwrap();
    let mut events = client.listen(&[&id, &id]).await;
    assert_eq!(acknowledged(&mut events).await, [json!(id)]);
    assert_eq!(pushed(&mut events).await["status"], "working");
    client.cancel(&id).await.unwrap();
    assert_eq!(pushed(&mut events).await["status"], "cancelled");
}

#[tokio::test]
async fn two_subscriptions_on_one_task_each_hear_of_it() {
    let (_server, mut client) = start().await;
    let id = client.create("slow_compute", json!({ "seconds": 1_000 })).await.unwrap();
    let (mut one, mut other) = (client.listen(&[&id]).await, client.listen(&[&id]).await);
    for events in [&mut one, &mut other] {
        assert_eq!(acknowledged(events).await, [json!(id)]);
        assert_eq!(pushed(events).await["status"], "working");
    }
    client.cancel(&id).await.unwrap();
    let ends = [pushed(&mut one).await, pushed(&mut other).await];
    assert_eq!(ends[0]["status"], "cancelled");
    assert_eq!(ends[0], ends[1]);
}

#[tokio::test]
async fn a_subscription_carries_the_id_of_its_request_whatever_that_is() {
    let (_server, client) = start().await;
    for id in [json!("a \"quoted\" id"), json!(-7), json!("")] {
        let mut client = client.again().await;
        let (mut message, headers) =
            client.message("subscriptions/listen", json!({ "notifications": { "taskIds": [] } }));
        message["id"] = id.clone();
        let mut events = client.post_stream(message.to_string(), &headers).await;
        assert_eq!(events.next().await.unwrap()["params"]["_meta"][SUBSCRIPTION], id);
    }
}

#[tokio::test]
async fn following_tasks_needs_the_capability_and_other_kinds_do_not() {
    let (_server, mut client) = start().await;
    let id = client.create("echo", json!({ "text": "x" })).await.unwrap();
    client.capabilities = json!({});
    let params = json!({ "notifications": { "taskIds": [id] } });
    let refused = client.send("subscriptions/listen", params).await;
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (400, &json!(-32021)));

    // Unsupported kinds and unknown resources are not in the acknowledgement.
    let asked = json!({ "notifications": { "toolsListChanged": true, "otherListChanged": true,
        "resourceSubscriptions": ["file:///x", "test://static-text"] } });
    let mut events = client.stream("subscriptions/listen", asked).await;
    let first = events.next().await.unwrap();
    let honoured = json!({ "toolsListChanged": true, "resourceSubscriptions": ["test://static-text"] });
    assert_eq!(first["params"]["notifications"], honoured, "{first}");
}

#[tokio::test]
async fn log_lines_come_to_a_call_that_asked_for_them_and_to_no_other() {
    let (_server, mut client) = start().await;
    let declared = client.request("server/discover", json!({})).await.unwrap();
    assert!(declared.get().contains(r#""logging":{}"#), "{declared}");
    let mut lines_at = async |level: Option<&str>| {
        let (mut message, headers) = client.message("tools/call", json!({ "name": "test_logging_tool" }));
        if let Some(level) = level {
            message["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = json!(level);
        }
        let answer = client.exchange(message.to_string(), &headers).await.unwrap();
        let text = String::from_utf8(answer.body.to_vec()).unwrap();
        assert!(text.contains("Three lines were logged."), "{text}");
        (answer.status, text.matches("notifications/message").count())
    };
    for (level, lines) in
        [(None, 0), (Some("debug"), 3), (Some("info"), 3), (Some("notice"), 0), (Some("emergency"), 0)]
    {
        assert_eq!(lines_at(level).await, (200, lines), "{level:?}");
    }
    let (mut message, headers) = client.message("tools/call", json!({ "name": "test_logging_tool" }));
    message["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = json!("loud");
    let refused = client.exchange(message.to_string(), &headers).await.unwrap();
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (400, &json!(-32602)));
}

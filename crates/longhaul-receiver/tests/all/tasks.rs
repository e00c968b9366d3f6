use std::collections::HashSet;

use longhaul_testkit::tools::{Door, forms, open, open_session, server, start};
use longhaul_testkit::{SessionClient, TestServer, in_time};
use serde_json::{Value, json};

const RELATED: &str = "io.modelcontextprotocol/related-task";

#[tokio::test]
async fn a_task_is_made_polled_and_its_result_fetched() {
    let (_server, door, client) = open_session().await;
    let made = client.result("tools/call", json!({ "name": "wait", "arguments": {}, "task": { "ttl": 60_000 } })).await;
    let task = &made["task"];
    assert_eq!((&task["status"], &task["ttl"], &task["pollInterval"]), (&json!("working"), &json!(60_000), &json!(50)));
    let id = task["taskId"].as_str().unwrap();
    assert_eq!(client.get(id).await["status"], "working");
    door.open(1);
    let done = client.until(id, "completed").await;
    assert!(done.get("result").is_none() && done.get("_meta").is_none());
    for _ in 0..2 {
        let result = client.result("tasks/result", json!({ "taskId": id })).await;
        assert_eq!(result["content"][0]["text"], "waited");
        assert_eq!(result["_meta"][RELATED], json!({ "taskId": id }));
    }
}

#[tokio::test]
async fn the_immediate_response_is_the_tools_own() {
    let (_server, _, client) = open_session().await;
    let made = client.result("tools/call", json!({ "name": "echo", "arguments": { "text": "x" }, "task": {} })).await;
    assert_eq!(made["_meta"]["io.modelcontextprotocol/model-immediate-response"], "It is being echoed.");
    let made = client.result("tools/call", json!({ "name": "wait", "arguments": {}, "task": {} })).await;
    assert!(made.get("_meta").is_none());
}

#[tokio::test]
async fn a_mismatch_of_call_and_tool_is_refused_either_way() {
    let (_server, _, client) = open_session().await;
    let forbidden = client.error("tools/call", json!({ "name": "never_task", "arguments": {}, "task": {} })).await;
    let required = client.error("tools/call", json!({ "name": "only_task", "arguments": {} })).await;
    assert_eq!((&forbidden["code"], &required["code"]), (&json!(-32601), &json!(-32601)));
    let wrong = client.result("tools/call", json!({ "name": "echo", "arguments": {}, "task": {} })).await;
    assert_eq!(wrong["isError"], true, "arguments that do not fit make no task");
    let odd = client.error("tools/call", json!({ "name": "echo", "arguments": { "text": "x" }, "task": 5 })).await;
    assert_eq!(odd["code"], -32602);
}

#[tokio::test]
async fn every_wait_for_a_result_gets_it_though_others_were_dropped() {
    let (server, door, client) = open_session().await;
    let id = client.create("wait", json!({})).await;
    let other = open(&server).await;
    let mut waiting = Vec::new();
    for place in 0..20 {
        let client = if place % 2 == 0 { client.clone() } else { other.clone() };
        let id = id.clone();
        let wait = tokio::spawn(async move { client.result("tasks/result", json!({ "taskId": id })).await });
        if place % 5 == 4 {
            wait.abort();
        } else {
            waiting.push(wait);
        }
    }
    door.open(1);
    for wait in waiting {
        assert_eq!(wait.await.unwrap()["content"][0]["text"], "waited");
    }
}

#[tokio::test]
async fn cancelling_a_wait_ends_the_wait_and_not_the_task() {
    let (_server, door, client) = open_session().await;
    let _listening = client.listening().await;
    let create = client.message("tools/call", json!({ "name": "steps", "arguments": {}, "task": {} }));
    let made = client.post(create.to_string()).await.last().await;
    let id = made["result"]["task"]["taskId"].as_str().unwrap().to_owned();
    // The request that created the task has its response, so its cancellation is too late.
    client.notify("notifications/cancelled", json!({ "requestId": create["id"] })).await;
    let wait = client.message("tasks/result", json!({ "taskId": id }));
    let waiting = tokio::spawn({
        let (client, wait) = (client.clone(), wait.clone());
        async move { client.post(wait.to_string()).await.rest().await }
    });
    in_time("the end of the wait", async {
        while !waiting.is_finished() {
            client.notify("notifications/cancelled", json!({ "requestId": wait["id"] })).await;
        }
    })
    .await;
    assert!(waiting.await.unwrap().iter().all(|message| message.get("id").is_none()), "it was not answered");
    assert_eq!(client.get(&id).await["status"], "working");
    door.open(3);
    client.until(&id, "completed").await;
}

#[tokio::test]
async fn a_cancelled_task_stays_cancelled_and_an_ended_one_cannot_be() {
    let (_server, _, client) = open_session().await;
    let id = client.create("wait", json!({})).await;
    let waiting = tokio::spawn({
        let (client, id) = (client.clone(), id.clone());
        async move { client.error("tasks/result", json!({ "taskId": id })).await }
    });
    let cancelled = client.result("tasks/cancel", json!({ "taskId": id })).await;
    assert_eq!((&cancelled["taskId"], &cancelled["status"]), (&json!(id), &json!("cancelled")));
    assert_eq!(waiting.await.unwrap()["code"], -32603);
    let again = client.error("tasks/cancel", json!({ "taskId": id })).await;
    assert_eq!(again["code"], -32602);
    assert!(again["message"].as_str().unwrap().contains("cancelled"));
}

#[tokio::test]
async fn a_list_has_each_task_of_its_owner_once() {
    let (server, _) = start().await;
    let ada = SessionClient::new(&server).with_token("ada").initialize("2025-11-25", forms()).await;
    let bob = SessionClient::new(&server).with_token("bob").initialize("2025-11-25", forms()).await;
    let mut made = Vec::new();
    for count in 0..120 {
        made.push(ada.create("echo", json!({ "text": count.to_string() })).await);
    }
    let mut newest = server.client().await.with_token("ada");
    made.push(newest.create("echo", json!({ "text": "of another generation" })).await.unwrap());
    let mut listed = Vec::new();
    let mut cursors: Vec<Value> = Vec::new();
    loop {
        let params = cursors.last().map_or(json!({}), |cursor| json!({ "cursor": cursor }));
        let page = ada.result("tasks/list", params).await;
        listed.extend(page["tasks"].as_array().unwrap().iter().map(|task| task["taskId"].as_str().unwrap().to_owned()));
        match page.get("nextCursor") {
            Some(cursor) => cursors.push(cursor.clone()),
            None => break,
        }
    }
    assert_eq!(cursors.len(), 2);
    listed.sort();
    made.sort();
    assert_eq!(listed, made);
    assert_eq!(bob.result("tasks/list", json!({})).await["tasks"], json!([]));
    let good = cursors[0].as_str().unwrap();
    let touched = format!("{}{}", if good.starts_with('A') { 'B' } else { 'A' }, &good[1..]);
    for (client, cursor) in [(&bob, good), (&ada, touched.as_str()), (&ada, ""), (&ada, &made[0]), (&ada, "x")] {
        assert_eq!(client.error("tasks/list", json!({ "cursor": cursor })).await["code"], -32602, "{cursor}");
    }
    // The token of a session is not a cursor, although it is sealed with the same key.
    assert_eq!(ada.error("tasks/list", json!({ "cursor": ada.session })).await["code"], -32602);
}

#[tokio::test]
async fn a_requested_ttl_is_kept_within_the_tools_limits() {
    let (server, clock) = TestServer::start_with_clock(server(&Door::closed())).await;
    let client = SessionClient::new(&server).with_token("ada").initialize("2025-11-25", forms()).await;
    let day = 24 * 60 * 60 * 1_000;
    for (task, ttl) in [
        (json!({}), day),
        (json!({ "ttl": null }), day),
        (json!({ "ttl": 90_000 }), 90_000),
        (json!({ "ttl": 10 * day }), day),
        (json!({ "ttl": 0 }), 1_000),
    ] {
        let params = json!({ "name": "echo", "arguments": { "text": "x" }, "task": task });
        assert_eq!(client.result("tools/call", params).await["task"]["ttl"], ttl, "{task}");
    }
    let params = json!({ "name": "echo", "arguments": { "text": "x" }, "task": { "ttl": 90_000 } });
    let id = client.result("tools/call", params).await["task"]["taskId"].as_str().unwrap().to_owned();
    client.until(&id, "completed").await;
    clock.advance_ms(90_000);
    // The due service sleeps by the real clock. A task that is due earlier wakes it.
    let wakes = json!({ "name": "echo", "arguments": { "text": "x" }, "task": { "ttl": 0 } });
    client.result("tools/call", wakes).await;
    in_time("the end of its retention", async {
        while client.response("tasks/get", json!({ "taskId": id })).await.get("error").is_none() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn status_and_progress_are_pushed_where_the_client_listens() {
    let (_server, door, client) = open_session().await;
    let mut listening = client.listening().await;
    let params = json!({ "name": "steps", "arguments": {}, "task": {}, "_meta": { "progressToken": "p" } });
    let made = client.result("tools/call", params).await;
    let id = made["task"]["taskId"].clone();
    let mut steps = Vec::new();
    let end = loop {
        let message = listening.must_next().await;
        match message["method"].as_str().unwrap() {
            "notifications/progress" => {
                assert_eq!(message["params"]["progressToken"], "p");
                assert_eq!(message["params"]["_meta"][RELATED]["taskId"], id);
                steps.push(message["params"]["progress"].as_f64().unwrap());
                door.open(1);
            }
            "notifications/tasks/status" => {
                assert_eq!(message["params"]["taskId"], id);
                if message["params"]["status"] != "working" {
                    break message;
                }
            }
            other => panic!("{other}"),
        }
    };
    assert_eq!(steps, [1.0, 2.0, 3.0]);
    assert_eq!(end["params"]["status"], "completed");
    assert!(end["params"].get("_meta").is_none());
}

#[tokio::test]
async fn of_many_tasks_that_ended_unheard_the_last_100_are_told() {
    let (_server, _, client) = open_session().await;
    let mut ids = Vec::new();
    // Ten more than the limit: the last ones may end after the stream was opened.
    for _ in 0..110 {
        let id = client.create("echo", json!({ "text": "x" })).await;
        client.until(&id, "completed").await;
        ids.push(id);
    }
    let mut listening = client.listen(None).await;
    let mut awaited: HashSet<&str> = ids[10..].iter().map(String::as_str).collect();
    while !awaited.is_empty() {
        let told = listening.next_of("notifications/tasks/status").await;
        let id = told["params"]["taskId"].as_str().unwrap();
        assert_ne!(id, ids[0]);
        assert_eq!(told["params"]["status"], "completed");
        awaited.remove(id);
    }
}

#[tokio::test]
async fn a_stateless_client_that_declares_only_older_tasks_reaches_only_those() {
    let (server, door) = start().await;
    let of_session = SessionClient::open(&server, json!({})).await.create("wait", json!({})).await;
    let mut client = server.client().await;
    let of_extension = client.create("wait", json!({})).await.unwrap();
    client.capabilities = json!({ "tasks": { "cancel": {} } });
    assert_eq!(client.get(&of_session).await.unwrap().status(), "working");
    for id in [&*of_extension, "unknown"] {
        for method in ["tasks/get", "tasks/cancel"] {
            let refused = client.error(method, json!({ "taskId": id })).await;
            let needed = json!({ "requiredCapabilities": { "extensions": { "io.modelcontextprotocol/tasks": {} } } });
            assert_eq!((&refused["code"], &refused["data"]), (&json!(-32_021), &needed), "{method} {id}");
        }
    }
    client.cancel(&of_session).await.unwrap();
    assert_eq!(client.get(&of_session).await.unwrap().status(), "cancelled");
    let update = json!({ "taskId": of_session, "inputResponses": {} });
    assert_eq!(client.error("tasks/update", update).await["code"], -32_021);
    door.open(1);
    client.capabilities = longhaul_testkit::tasks_and_forms();
    assert_eq!(client.settled(&of_extension).await.status(), "completed", "it was not cancelled");
}

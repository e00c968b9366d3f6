use longhaul_testkit::tools::{Door, accepted_name, forms, open_session, open_session_without_tickets, server, start};
use longhaul_testkit::{SessionClient, TestServer};
use serde_json::json;

#[tokio::test]
async fn an_answer_that_comes_at_once_is_plain_json() {
    let (_server, _, client) = open_session().await;
    let answer = client.send("tools/call", json!({ "name": "echo", "arguments": { "text": "hi" } })).await;
    assert!(!answer.is_stream());
    let failed = client.call("fail", json!({ "text": "no" })).await;
    assert_eq!((&failed["isError"], &failed["content"][0]["text"]), (&json!(true), &json!("no")));
    let error = client.error("tools/call", json!({ "name": "break", "arguments": { "text": "broken" } })).await;
    assert_eq!((&error["code"], &error["message"]), (&json!(-32_001), &json!("broken")));
    let wrong = client.call("echo", json!({ "text": 5 })).await;
    assert_eq!(wrong["isError"], true, "arguments that do not fit are a tool result");
    assert_eq!(client.error("tools/call", json!({ "name": "unknown" })).await["code"], -32602);
    assert_eq!(client.error("tools/unknown", json!({})).await["code"], -32601);
    assert_eq!(client.error("tasks/update", json!({ "taskId": "x" })).await["code"], -32601);
    assert_eq!(client.error("tools/list", json!({ "cursor": "x" })).await["code"], -32602);
}

#[tokio::test]
async fn progress_is_streamed_under_its_token_before_the_answer() {
    let (_server, door, client) = open_session().await;
    let params = json!({ "name": "steps", "arguments": {}, "_meta": { "progressToken": "p-1" } });
    let mut call = client.send("tools/call", params).await;
    assert!(call.is_stream());
    for step in [1.0, 2.0, 3.0_f64] {
        let said = call.must_next().await;
        assert_eq!(said["method"], "notifications/progress");
        assert_eq!(
            (&said["params"]["progressToken"], &said["params"]["progress"].as_f64()),
            (&json!("p-1"), &Some(step))
        );
        door.open(1);
    }
    let answer = call.must_next().await;
    assert_eq!(answer["result"]["content"][0]["text"], "three steps");
    assert!(call.next().await.is_none());
}

#[tokio::test]
async fn a_cancelled_call_is_dropped_and_never_answered() {
    let (_server, door, client) = open_session_without_tickets(forms()).await;
    let params = json!({ "name": "steps", "arguments": {}, "_meta": { "progressToken": 7 } });
    let message = client.message("tools/call", params);
    let mut call = client.post(message.to_string()).await;
    call.next_of("notifications/progress").await;
    for unknown in [json!({ "requestId": "unknown" }), json!({}), json!({ "requestId": null })] {
        assert_eq!(client.notify("notifications/cancelled", unknown).await, 202);
    }
    assert_eq!(client.notify("notifications/cancelled", json!({ "requestId": message["id"] })).await, 202);
    assert_eq!(call.rest().await, Vec::<serde_json::Value>::new());
    // The ID of the request can be used again, and its room is free.
    door.open(3);
    let mut again = client.post(message.to_string()).await;
    assert_eq!(again.last().await["result"]["content"][0]["text"], "three steps");
}

#[tokio::test]
async fn a_tool_that_requires_a_task_does_not_exist_in_revisions_without_tasks() {
    let server = TestServer::start(server(&Door::closed()).no_tickets()).await;
    for (revision, is_listed) in [("2025-11-25", true), ("2025-06-18", false), ("2025-03-26", false)] {
        let client = SessionClient::new(&server).initialize(revision, forms()).await;
        let tools = client.result("tools/list", json!({})).await;
        let mut tools = tools["tools"].as_array().unwrap().iter();
        assert_eq!(tools.any(|tool| tool["name"] == "only_task"), is_listed, "{revision}");
        let refused = client.error("tools/call", json!({ "name": "only_task", "arguments": {} })).await;
        assert_eq!(refused["code"], -32_601, "{revision}: {refused}");
    }
}

#[tokio::test]
async fn a_tool_that_requires_a_task_runs_as_one_in_revisions_without_tasks() {
    let (server, _) = start().await;
    for (revision, is_refused) in [("2025-11-25", true), ("2025-06-18", false), ("2025-03-26", false)] {
        let client = SessionClient::new(&server).initialize(revision, forms()).await;
        let tools = client.result("tools/list", json!({})).await;
        let mut tools = tools["tools"].as_array().unwrap().iter();
        assert!(tools.any(|tool| tool["name"] == "only_task"), "{revision}");
        let call = json!({ "name": "only_task", "arguments": {} });
        if is_refused {
            assert_eq!(client.error("tools/call", call).await["code"], -32_601, "{revision}");
        } else {
            assert!(client.result("tools/call", call).await["content"].is_array(), "{revision}");
        }
    }
}

#[tokio::test]
async fn clients_of_revisions_without_tasks_call_tools_as_usual() {
    let (server, _) = start().await;
    let client = SessionClient::new(&server).initialize("2025-06-18", forms()).await;
    let params = json!({ "name": "echo", "arguments": { "text": "x" }, "task": { "ttl": 5 } });
    assert_eq!(client.result("tools/call", params).await["content"][0]["text"], "x", "the parameter means nothing");
    let (mut call, question) = client.call_until_form("greet").await;
    client.respond(&question, accepted_name("Ada")).await;
    assert_eq!(call.last().await["result"]["content"][0]["text"], "Hello, Ada!");
    let oldest = SessionClient::new(&server).initialize("2025-03-26", forms()).await;
    let link = oldest.call("link", json!({})).await;
    assert_eq!(link["content"][0]["type"], "text", "a kind of block that its revision has");
}

//! Responses that a client does not read.

use std::time::Duration;

use longhaul::{Ctx, Server, ServerLimits, TaskSupport, Tool};
use longhaul_testkit::{FailureReport, StatelessClient, TestServer, in_time};
use serde_json::{Value, json};

#[derive(serde::Deserialize, longhaul::JsonSchema)]
struct SizeArguments {
    bytes: usize,
}

/// Checks the error that replaces a response without room.
fn is_refused(error: &Value) {
    assert_eq!((&error["code"], &error["data"]["code"]), (&json!(-32603), &json!("TOO_MUCH_UNREAD")), "{error}");
    assert!(error["data"]["retryAfterMs"].as_u64().is_some_and(|ms| ms > 0), "{error}");
}

/// More than the buffers of the system hold for a connection.
const LARGE: usize = 15_000_000;

/// A server whose tool returns a large result, and a settled task of this tool.
async fn with_large_result(limits: ServerLimits) -> (TestServer, StatelessClient, String) {
    let large = |name: &str| Tool::new(name, |_: Ctx, SizeArguments { bytes }| async move { Ok("x".repeat(bytes)) });
    let tools = [large("large"), large("call").task_support(TaskSupport::Forbidden)];
    let server = TestServer::listen(Server::new("test").tools(tools).limits(limits)).await;
    let mut client = server.client().await;
    let id = client.create("large", json!({ "bytes": LARGE })).await.unwrap();
    // The response is not read here, because that can take too long under a low limit.
    client.until_metric("longhaul_tasks_running", 0.0).await;
    (server, client, id)
}

/// Requests the task and returns the response without reading its body.
async fn unread(client: &mut StatelessClient, id: &str) -> impl Sized + use<> {
    let (message, headers) = client.message("tasks/get", json!({ "taskId": id }));
    let response = client.post(message.to_string(), &headers).await.unwrap();
    assert_eq!(response.status, 200);
    response
}

async fn until_there_is_room(client: &mut StatelessClient, id: &str) {
    in_time("room for an answer", async {
        loop {
            match client.get(id).await {
                Ok(_) => break,
                Err(FailureReport::Refused { status: 503, body }) => {
                    let body: Value = serde_json::from_str(&body).unwrap();
                    is_refused(&body["error"]);
                }
                // Under a low limit the server also drops a reader that was delayed for a moment.
                Err(FailureReport::Lost(_)) => *client = client.again().await,
                Err(other) => panic!("{other:?}"),
            }
        }
    })
    .await;
}

#[tokio::test]
async fn unread_responses_have_so_much_room_together() {
    let limits = ServerLimits::default().unread_bytes_max(20_000_000);
    let (server, mut client, id) = with_large_result(limits).await;
    let mut other = server.client().await;
    let held = unread(&mut other, &id).await;
    match client.get(&id).await {
        Err(FailureReport::Refused { status: 503, body }) => {
            is_refused(&serde_json::from_str::<Value>(&body).unwrap()["error"]);
        }
        refused => panic!("{refused:?}"),
    }
    // A call on a stream gets the error, too. Without it the client would keep waiting.
    let (mut message, headers) =
        client.message("tools/call", json!({ "name": "call", "arguments": { "bytes": LARGE } }));
    message["params"]["_meta"]["progressToken"] = json!("how far");
    let streamed = client.exchange(message.to_string(), &headers).await.unwrap();
    let last = streamed.text().lines().rfind(|line| line.starts_with("data:")).unwrap();
    let last: Value = serde_json::from_str(last.trim_start_matches("data:")).unwrap();
    assert_eq!(last["id"], message["id"]);
    is_refused(&last["error"]);
    // Small responses are not affected, and the room is free again when the connection has ended.
    client.request("tools/list", json!({})).await.unwrap();
    drop((held, other));
    until_there_is_room(&mut client, &id).await;
    server.stop().await;
}

#[tokio::test]
async fn a_client_that_reads_nothing_is_disconnected() {
    let limits = ServerLimits::default().unread_bytes_max(20_000_000).write_time_max(Duration::from_millis(50));
    let (server, mut client, id) = with_large_result(limits).await;
    let mut other = server.client().await;
    let _held = unread(&mut other, &id).await;
    until_there_is_room(&mut client, &id).await;
    server.stop().await;
}

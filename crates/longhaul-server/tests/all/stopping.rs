//! Requests that are under way when the server stops.

use longhaul::{Ctx, NoArgs, Server, TaskSupport, Tool};
use longhaul_testkit::tools::{Door, forms};
use longhaul_testkit::{SessionClient, StatelessClient, TestServer};
use serde_json::{Value, json};

/// A tool whose calls do not end. Each opens the door when it has begun.
fn endless(door: &Door) -> Tool {
    door.tool("endless", |door, _: Ctx, _: NoArgs| async move {
        door.open(1);
        std::future::pending::<()>().await;
        Ok("never")
    })
    .task_support(TaskSupport::Forbidden)
}

async fn stateless_call(mut client: StatelessClient, meta: Value) -> Value {
    let params = json!({ "name": "endless", "arguments": {}, "_meta": meta });
    let reply = client.send("tools/call", params).await;
    let message = reply.text().lines().find_map(|line| line.strip_prefix("data: ")).unwrap_or(reply.text());
    serde_json::from_str(message).unwrap()
}

#[tokio::test]
async fn an_ordinary_call_gets_a_response_when_the_server_stops() {
    let door = Door::closed();
    let server = TestServer::listen(Server::new("test").tool(endless(&door))).await;
    let session = SessionClient::open(&server, forms()).await;
    let calls = [
        tokio::spawn(stateless_call(server.client().await, json!({}))),
        tokio::spawn(stateless_call(server.client().await, json!({ "progressToken": "p" }))),
        tokio::spawn(
            async move { session.response("tools/call", json!({ "name": "endless", "arguments": {} })).await },
        ),
    ];
    for _ in &calls {
        door.pass().await;
    }
    server.begin_stop();
    for call in calls {
        let response = call.await.expect("a response");
        assert_eq!(response["error"]["data"]["code"], "DRAINING", "{response}");
    }
    server.stop().await;
}

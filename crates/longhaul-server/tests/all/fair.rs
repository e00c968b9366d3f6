//! What one owner uses does not harm another.

use longhaul::{Ctx, NoArgs, Server, ServerLimits, Tool};
use longhaul_testkit::tools::tokens;
use longhaul_testkit::{FailureReport, Reply, StatelessClient, TestServer};
use serde_json::{Value, json};

/// More than the buffers of the system hold for a connection.
const LARGE: usize = 15_000_000;

async fn listen(limits: ServerLimits) -> TestServer {
    let large = Tool::new("large", |_: Ctx, _: NoArgs| async move { Ok("x".repeat(LARGE)) });
    TestServer::listen(Server::new("test").tool(large).tokens(tokens(&["ada", "bob"])).limits(limits)).await
}

/// Requests a task on a new connection and does not read the response.
async fn unread(client: &StatelessClient, id: &str) -> (StatelessClient, Reply) {
    let mut client = client.again().await;
    let (message, headers) = client.message("tasks/get", json!({ "taskId": id }));
    let response = client.post(message.to_string(), &headers).await.unwrap();
    (client, response)
}

#[tokio::test]
async fn slow_readers_of_one_owner_leave_room_for_another() {
    let server = listen(ServerLimits::default().unread_bytes_max(100_000_000)).await;
    let mut ada = server.client().await.with_token("ada");
    let mut bob = server.client().await.with_token("bob");
    let (large, other) = (ada.create("large", json!({})).await.unwrap(), bob.create("large", json!({})).await.unwrap());
    bob.until_metric("longhaul_tasks_running", 0.0).await;
    let mut held = Vec::new();
    let refused = loop {
        let (client, mut response) = unread(&ada, &large).await;
        if response.status == 503 {
            break serde_json::from_slice::<Value>(&response.bytes().await.unwrap()).unwrap();
        }
        held.push((client, response));
    };
    assert_eq!(refused["error"]["data"]["code"], "TOO_MUCH_UNREAD");
    assert_eq!(bob.get(&other).await.unwrap().result_text().len(), LARGE);
    drop(held);
    server.stop().await;
}

#[tokio::test]
async fn connections_of_one_owner_leave_some_for_another() {
    let server = listen(ServerLimits::default().connections_max(8)).await;
    let mut held = Vec::new();
    let refused = loop {
        let mut client = server.client().await.with_token("ada");
        match client.request("tools/list", json!({})).await {
            Ok(_) => held.push(client),
            Err(FailureReport::Refused { .. }) => break client.again().await.send("tools/list", json!({})).await,
            Err(lost) => panic!("{lost:?}"),
        }
        assert!(held.len() < 8, "every connection is taken");
    };
    assert_eq!((refused.status, refused.header("connection")), (503, Some("close")));
    let error = &refused.json()["error"];
    assert_eq!(error["data"]["code"], "TOO_MANY_CONNECTIONS");
    assert_eq!(refused.header("retry-after"), Some("1"));
    let mut bob = server.client().await.with_token("bob");
    bob.request("tools/list", json!({})).await.unwrap();
    assert_eq!(bob.metric_of("longhaul_budget_capacity", "connections").await, Some(8.0));
    let used = u32::try_from(held.len()).unwrap() + 1;
    assert_eq!(bob.metric_of("longhaul_budget_used", "connections").await, Some(f64::from(used)));
    assert!(bob.metric_of("longhaul_budget_refused_total", "connections").await >= Some(2.0));
    // Each connection counts until it is closed, however many requests it carries.
    for _ in 0..20 {
        held[0].request("tools/list", json!({})).await.unwrap();
    }
    held.pop();
    longhaul_testkit::until("room for a connection of the owner", async || {
        let mut client = server.client().await.with_token("ada");
        client.request("tools/list", json!({})).await.is_ok()
    })
    .await;
    server.stop().await;
}

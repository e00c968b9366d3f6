//! Calls of clients without tasks that wait for their tasks when the server stops.

use longhaul_testkit::tools::{Door, server};
use longhaul_testkit::{SessionClient, TestServer, until};
use serde_json::{Value, json};

#[tokio::test]
async fn a_call_whose_task_ends_while_the_server_stops_gets_the_result_and_no_ticket() {
    let door = Door::closed();
    let server = TestServer::start(server(&door).patience(std::time::Duration::from_secs(600))).await;
    let session = SessionClient::open(&server, json!({})).await;
    let mut stateless = server.client().await;
    stateless.capabilities = json!({});
    let mut stopping = server.client().await.listen(&[]).await;
    stopping.next().await.unwrap();
    let calls = [
        tokio::spawn(async move { session.call("wait", json!({})).await }),
        tokio::spawn(async move { stateless.call("wait", json!({})).await.unwrap() }),
    ];
    let running = || server.receiver().engine().load().iter().map(|(_, running, _)| running).sum::<usize>();
    until("a task of each call", async || running() == calls.len()).await;

    server.begin_stop();
    // The end of a subscription shows that the server has told its requests that it stops.
    stopping.rest().await;
    assert_eq!(running(), calls.len());
    door.open(calls.len());
    for call in calls {
        let result: Value = call.await.unwrap();
        assert_eq!(result["content"][0]["text"], "waited", "{result}");
        assert_eq!(result["_meta"].get("longhaul/task"), None, "{result}");
    }
    server.stop().await;
}

use longhaul_testkit::SessionClient;
use longhaul_testkit::tools::{forms, start};
use longhaul_wire::jsonrpc::BATCH_MAX;
use serde_json::{Value, json};

#[tokio::test]
async fn the_oldest_revision_accepts_a_batch_and_responds_with_a_batch() {
    let (server, _) = start().await;
    let client = SessionClient::new(&server).initialize("2025-03-26", forms()).await;
    let batch = json!([
        client.message("ping", json!({})),
        client.message("tools/call", json!({ "name": "echo", "arguments": { "text": "one" } })),
        { "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "unknown" } },
        client.message("tools/unknown", json!({})),
        5,
        client.message("tools/call", json!({ "name": "echo", "arguments": { "text": "two" } })),
    ]);
    let mut reply = client.post(batch.to_string()).await;
    assert!(!reply.is_stream());
    let responses = reply.rest().await;
    assert_eq!(responses.len(), 5);
    let response_to = |id: &Value| responses.iter().find(|response| response.get("id") == Some(id)).unwrap();
    assert_eq!(response_to(&batch[0]["id"])["result"], json!({}));
    assert_eq!(response_to(&batch[1]["id"])["result"]["content"][0]["text"], "one");
    assert_eq!(response_to(&batch[3]["id"])["error"]["code"], -32601);
    assert_eq!(response_to(&batch[5]["id"])["result"]["content"][0]["text"], "two");
    let is_invalid = |response: &Value| response.get("id").is_none() && response["error"]["code"] == -32600;
    assert!(responses.iter().any(is_invalid));
}

#[tokio::test]
async fn a_batch_whose_calls_send_notifications_gets_a_stream() {
    let (server, door) = start().await;
    let client = SessionClient::new(&server).initialize("2025-03-26", forms()).await;
    let params = json!({ "name": "steps", "arguments": {}, "_meta": { "progressToken": "p" } });
    let batch = json!([client.message("tools/call", params), client.message("ping", json!({}))]);
    let mut reply = client.post(batch.to_string()).await;
    assert!(reply.is_stream());
    door.open(3);
    let messages = reply.rest().await;
    assert!(messages.iter().any(|message| message["method"] == "notifications/progress"));
    assert_eq!(messages.iter().filter(|message| message.get("result").is_some()).count(), 2);
}

#[tokio::test]
async fn a_batch_is_refused_by_newer_revisions_and_past_its_limit() {
    let (server, _) = start().await;
    let ping = |client: &SessionClient| client.message("ping", json!({}));
    for revision in ["2025-06-18", "2025-11-25"] {
        let client = SessionClient::new(&server).initialize(revision, forms()).await;
        let mut reply = client.post(json!([ping(&client)]).to_string()).await;
        assert_eq!((reply.status, reply.must_next().await["error"]["code"].clone()), (400, json!(-32600)));
    }
    let client = SessionClient::new(&server).initialize("2025-03-26", forms()).await;
    let largest: Vec<Value> = (0..BATCH_MAX).map(|_| ping(&client)).collect();
    assert_eq!(client.post(json!(largest).to_string()).await.rest().await.len(), BATCH_MAX);
    let too_large: Vec<Value> = (0..=BATCH_MAX).map(|_| ping(&client)).collect();
    assert_eq!(client.post(json!(too_large).to_string()).await.status, 400);
    assert_eq!(client.post("[]").await.status, 400);
    let only_notifications = json!([{ "jsonrpc": "2.0", "method": "notifications/initialized" }]);
    assert_eq!(client.post(only_notifications.to_string()).await.status, 202);
}

#[tokio::test]
async fn a_batch_in_a_batch_is_refused_alone_and_the_error_says_so() {
    let (server, _) = start().await;
    let client = SessionClient::new(&server).initialize("2025-03-26", forms()).await;
    let batch = json!([[client.message("ping", json!({}))], client.message("ping", json!({}))]);
    let responses = client.post(batch.to_string()).await.rest().await;
    let refused = responses.iter().find_map(|response| response.get("error")).unwrap();
    assert_eq!(refused["message"], "Invalid request: a batch contains messages, not batches");
    assert!(responses.iter().any(|response| response.get("result").is_some()), "{responses:?}");
    let too_large: Vec<Value> = (0..=BATCH_MAX).map(|_| client.message("ping", json!({}))).collect();
    let refused = client.post(json!(too_large).to_string()).await.must_next().await;
    assert_eq!(refused["error"]["message"], "Invalid request: a batch has at most 100 messages");
}

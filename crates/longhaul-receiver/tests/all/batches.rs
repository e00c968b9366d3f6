use longhaul_testkit::SessionClient;
use longhaul_testkit::tools::{forms, start};
use longhaul_wire::jsonrpc::BATCH_MAX;
use serde_json::{Value, json};

#[tokio::test]
async fn the_oldest_revision_takes_batches_and_answers_with_one() {
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
    let mut answer = client.post(batch.to_string()).await;
    assert!(!answer.is_stream());
    let answers = answer.rest().await;
    assert_eq!(answers.len(), 5);
    let of = |id: &Value| answers.iter().find(|answer| answer.get("id") == Some(id)).unwrap();
    assert_eq!(of(&batch[0]["id"])["result"], json!({}));
    assert_eq!(of(&batch[1]["id"])["result"]["content"][0]["text"], "one");
    assert_eq!(of(&batch[3]["id"])["error"]["code"], -32601);
    assert_eq!(of(&batch[5]["id"])["result"]["content"][0]["text"], "two");
    assert!(answers.iter().any(|answer| answer.get("id").is_none() && answer["error"]["code"] == -32600));
}

#[tokio::test]
async fn messages_before_the_answers_of_a_batch_are_streamed() {
    let (server, door) = start().await;
    let client = SessionClient::new(&server).initialize("2025-03-26", forms()).await;
    let params = json!({ "name": "steps", "arguments": {}, "_meta": { "progressToken": "p" } });
    let batch = json!([client.message("tools/call", params), client.message("ping", json!({}))]);
    let mut answer = client.post(batch.to_string()).await;
    assert!(answer.is_stream());
    door.open(3);
    let messages = answer.rest().await;
    assert!(messages.iter().any(|message| message["method"] == "notifications/progress"));
    assert_eq!(messages.iter().filter(|message| message.get("result").is_some()).count(), 2);
}

#[tokio::test]
async fn a_batch_is_refused_by_newer_revisions_and_past_its_limit() {
    let (server, _) = start().await;
    let ping = |client: &SessionClient| client.message("ping", json!({}));
    for revision in ["2025-06-18", "2025-11-25"] {
        let client = SessionClient::new(&server).initialize(revision, forms()).await;
        let mut answer = client.post(json!([ping(&client)]).to_string()).await;
        assert_eq!((answer.status, answer.must_next().await["error"]["code"].clone()), (400, json!(-32600)));
    }
    let client = SessionClient::new(&server).initialize("2025-03-26", forms()).await;
    let most: Vec<Value> = (0..BATCH_MAX).map(|_| ping(&client)).collect();
    assert_eq!(client.post(json!(most).to_string()).await.rest().await.len(), BATCH_MAX);
    let more: Vec<Value> = (0..=BATCH_MAX).map(|_| ping(&client)).collect();
    assert_eq!(client.post(json!(more).to_string()).await.status, 400);
    assert_eq!(client.post("[]").await.status, 400);
    let told = json!([{ "jsonrpc": "2.0", "method": "notifications/initialized" }]);
    assert_eq!(client.post(told.to_string()).await.status, 202);
}

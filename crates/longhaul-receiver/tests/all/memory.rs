//! Tests of [`MemoryClient`], a client in the same process that uses both eras on one connection.

use longhaul_receiver::{Caller, MemoryClient};
use longhaul_testkit::tools::{accepted_name, forms, start};
use longhaul_testkit::{LATEST, in_time, initialize_params, stateless_message, tasks_and_forms};
use serde_json::{Value, json};

async fn next(client: &mut MemoryClient) -> Value {
    let text = in_time("a message", client.next()).await.expect("a message");
    serde_json::from_str(&text).expect("JSON")
}

#[tokio::test]
async fn a_memory_client_answers_in_a_session_and_sends_stateless_calls() {
    let (server, _) = start().await;
    let caller = Caller::known(longhaul::Owner::parse("ada").unwrap());
    let mut client = server.receiver().connect_in_memory(caller);
    let initialize = initialize_params(LATEST, forms());
    let request = |id: &str, method: &str, params: &Value| {
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
    };
    client.send(request("initialize", "initialize", &initialize)).await;
    assert_eq!(next(&mut client).await["result"]["protocolVersion"], LATEST);
    client.send(request("call", "tools/call", &json!({ "name": "greet", "arguments": {} }))).await;
    let question = next(&mut client).await;
    assert_eq!(question["method"], "elicitation/create", "{question}");
    client.send(json!({ "jsonrpc": "2.0", "id": question["id"], "result": accepted_name("Ada") }).to_string()).await;
    let response = next(&mut client).await;
    assert_eq!((&response["id"], &response["result"]["content"][0]["text"]), (&json!("call"), &json!("Hello, Ada!")));

    let echo = json!({ "name": "echo", "arguments": { "text": "hi" } });
    client.send(stateless_message(&json!("task"), "tools/call", echo, &tasks_and_forms()).to_string()).await;
    let created = next(&mut client).await;
    assert_eq!((&created["id"], &created["result"]["resultType"]), (&json!("task"), &json!("task")), "{created}");
}

#[tokio::test]
async fn past_a_thousand_open_requests_a_memory_client_is_refused_until_one_has_ended() {
    let (server, _) = start().await;
    let caller = Caller::known(longhaul::Owner::parse("ada").unwrap());
    let mut client = server.receiver().connect_in_memory(caller);
    let subscribe = |id: usize| {
        let filter = json!({ "notifications": { "toolsListChanged": true } });
        stateless_message(&json!(id), "subscriptions/listen", filter, &tasks_and_forms()).to_string()
    };
    for id in 0..1_000 {
        client.send(subscribe(id)).await;
        assert_eq!(next(&mut client).await["method"], "notifications/subscriptions/acknowledged");
    }
    client.send(subscribe(1_000)).await;
    let refused = next(&mut client).await;
    assert_eq!((&refused["id"], &refused["error"]["data"]["code"]), (&json!(1_000), &json!("TOO_MANY_IN_FLIGHT")));
    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 0 } });
    client.send(cancelled.to_string()).await;
    client.send(subscribe(1_000)).await;
    assert_eq!(next(&mut client).await["method"], "notifications/subscriptions/acknowledged");
}

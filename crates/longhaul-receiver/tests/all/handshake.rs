use longhaul_testkit::tools::{forms, open, open_session, start};
use longhaul_testkit::{LATEST, SessionClient, initialize_params};
use serde_json::json;

#[tokio::test]
async fn each_revision_is_spoken_and_any_other_gets_the_newest() {
    let (server, _) = start().await;
    for (asked, got) in [
        ("2025-11-25", "2025-11-25"),
        ("2025-06-18", "2025-06-18"),
        ("2025-03-26", "2025-03-26"),
        ("2024-11-05", "2025-11-25"),
        ("2099-01-01", "2025-11-25"),
    ] {
        let client = SessionClient::new(&server).initialize(asked, forms()).await;
        assert_eq!(client.revision, got);
        assert_eq!(client.result("ping", json!({})).await, json!({}));
        let tools = client.result("tools/list", json!({})).await;
        let echo = tools["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "echo").unwrap();
        let support = (got == "2025-11-25").then(|| json!({ "taskSupport": "optional" }));
        assert_eq!(echo.get("execution"), support.as_ref());
        assert_eq!(client.call("echo", json!({ "text": "hi" })).await["content"][0]["text"], "hi");
    }
}

#[tokio::test]
async fn declared_capabilities_hold_for_this_client() {
    let (server, _) = start().await;
    let anonymous = open(&server).await;
    let declared = json!({ "cancel": {}, "requests": { "tools": { "call": {} } } });
    assert_eq!(anonymous.initialize_result["capabilities"]["tasks"], declared, "an anonymous client lists nothing");
    assert_eq!(anonymous.error("tasks/list", json!({})).await["code"], -32601);
    let older = SessionClient::new(&server).initialize("2025-06-18", forms()).await;
    assert!(older.initialize_result["capabilities"].get("tasks").is_none());

    let ada = SessionClient::new(&server).with_token("ada").initialize("2025-11-25", forms()).await;
    assert_eq!(ada.initialize_result["capabilities"]["tasks"]["list"], json!({}));
    assert_eq!(ada.result("tasks/list", json!({})).await["tasks"], json!([]));
    // The stateless era has neither method.
    for mut newest in [server.client().await, server.client().await.with_token("ada")] {
        assert_eq!(newest.error("tasks/list", json!({})).await["code"], -32601);
    }
}

#[tokio::test]
async fn a_malformed_handshake_opens_no_session() {
    let (server, _) = start().await;
    let client = SessionClient::new(&server);
    for params in [json!({}), json!({ "protocolVersion": 5 }), json!({ "protocolVersion": "2025-11-25" })] {
        let mut answer = client.send("initialize", params).await;
        assert!(answer.headers.get("mcp-session-id").is_none());
        assert_eq!(answer.must_next().await["error"]["code"], -32602);
    }
    let client = open(&server).await;
    let again = initialize_params(LATEST, json!({}));
    let mut answer = client.send("initialize", again).await;
    assert_eq!((answer.status, answer.must_next().await["error"]["code"].clone()), (400, json!(-32600)));
}

#[tokio::test]
async fn the_stateless_era_is_served_at_the_same_endpoint_whatever_the_session() {
    let (server, _, client) = open_session().await;
    let id = client.create("echo", json!({ "text": "both" })).await;
    let mut newest = server.client().await;
    let done = newest.settled(&id).await;
    assert_eq!(done.result_text(), "both");
    // A message with the version of the stateless era belongs to it, even within a session.
    let (message, headers) = newest.message("tasks/get", json!({ "taskId": id }));
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let mut answer = client.http("POST", &headers, message.to_string()).await;
    assert_eq!(answer.must_next().await["result"]["resultType"], "complete");
    // This client can follow a task that was created in the newest revision.
    let id = newest.create("fail", json!({ "text": "no luck" })).await.unwrap();
    let failed = client.until(&id, "failed").await;
    assert_eq!(failed["statusMessage"], "no luck", "a tool error has failed here");
    let result = client.result("tasks/result", json!({ "taskId": id })).await;
    assert_eq!((&result["isError"], &result["content"][0]["text"]), (&json!(true), &json!("no luck")));
}

//! Nothing of another owner's session can be reached.

use longhaul_testkit::{LATEST, SessionClient, TestServer, conformance};
use serde_json::{Value, json};

/// A session of each of two owners.
async fn two_sessions(server: &TestServer) -> (SessionClient, SessionClient) {
    let open = |owner| SessionClient::new(server).with_token(owner).initialize(LATEST, json!({ "elicitation": {} }));
    (open("ada").await, open("bob").await)
}

fn yes(name: &str) -> Value {
    json!({ "action": "accept", "content": { "name": name } })
}

#[tokio::test]
async fn foreign_streams_questions_and_requests_are_out_of_reach() {
    let server = TestServer::start(conformance()).await;
    let (ada, bob) = two_sessions(&server).await;
    let ask = json!({ "name": "test_input_required_result_elicitation", "arguments": {} });
    let message = ada.message("tools/call", ask);
    let mut call = ada.post(message.to_string()).await;
    let question = call.next_of("elicitation/create").await;
    let event = call.last_event.clone().unwrap();

    // Her stream, by the ID of its last event and of the one before: he listens to one of his own instead.
    let (stream, _) = event.split_once('.').unwrap();
    for id in [event.clone(), format!("{stream}.0")] {
        let mut listening = bob.listen(Some(&id)).await;
        assert!(!listening.begun().await.starts_with(stream));
    }
    // Her question, by its ID; her request, by its.
    bob.respond(&question, yes("Bob")).await;
    let cancel = json!({ "requestId": message["id"], "reason": "mine" });
    assert_eq!(bob.notify("notifications/cancelled", cancel).await, 202);

    ada.respond(&question, yes("Ada")).await;
    assert_eq!(call.last().await["result"]["content"][0]["text"], "Hello, Ada!");
}

#[tokio::test]
async fn a_question_goes_only_to_the_owner_of_its_task() {
    let server = TestServer::start(conformance()).await;
    let (ada, bob) = two_sessions(&server).await;
    let mut bobs = bob.listen(None).await;
    bobs.begun().await;
    let id = ada.create("confirm_delete", json!({ "filename": "a.txt" })).await;
    let mut hers = ada.send("tasks/result", json!({ "taskId": id })).await;
    let unknown = bob.error("tasks/result", json!({ "taskId": "never was" })).await;
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        let error = bob.error(method, json!({ "taskId": id })).await;
        assert_eq!(error, unknown, "{method}");
    }
    let question = hers.next_of("elicitation/create").await;
    ada.respond(&question, json!({ "action": "accept", "content": { "confirm": true } })).await;
    assert!(hers.last().await["result"].is_object());
    bob.end().await;
    assert_eq!(bobs.rest().await, Vec::<Value>::new(), "he heard nothing of it to the end");
}

#[tokio::test]
async fn a_foreign_task_looks_like_one_that_never_was() {
    let server = TestServer::start(conformance()).await;
    let (mut ada, mut bob) = (server.client().await.with_token("ada"), server.client().await.with_token("bob"));
    let done = ada.create("echo", json!({ "text": "secret" })).await.unwrap();
    ada.settled(&done).await;
    let asks = ada.create("confirm_delete", json!({ "filename": "a.txt" })).await.unwrap();
    let key = ada.asked(&asks, 1).await.remove(0);
    let running = ada.create("slow_compute", json!({ "seconds": 1_000 })).await.unwrap();

    let yes = json!({ &key: { "action": "accept", "content": { "confirm": true } } });
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        for responses in [&yes, &json!({}), &json!({ "wrong": 5 })] {
            let mut answers = Vec::new();
            for id in ["000000000000000000000000000000000000000000", &done, &asks, &running] {
                let (mut message, headers) = bob.message(method, json!({ "taskId": id, "inputResponses": responses }));
                message["id"] = json!(1);
                let answer = bob.exchange(message.to_string(), &headers).await.unwrap();
                let kinds = answer.headers.get("content-type").cloned();
                answers.push((answer.status, kinds, answer.body));
            }
            assert!(answers.iter().all(|answer| *answer == answers[0]), "{method}: {answers:?}");
            assert_eq!(answers[0].0, 200);
        }
    }
    let mut events = bob.listen(&[&done, &asks, &running]).await;
    assert_eq!(events.next().await.unwrap()["params"]["notifications"]["taskIds"], json!([]));

    assert_eq!(ada.get(&running).await.unwrap().status(), "working", "nobody else can cancel it");
    assert_eq!(ada.get(&asks).await.unwrap().questions(), [key], "nobody else can answer it");
    ada.cancel(&running).await.unwrap();
}

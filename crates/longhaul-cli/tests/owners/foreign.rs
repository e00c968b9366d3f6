//! Nothing of somebody else's session is reached from one's own.

use std::path::Path;

use longhaul::{Owner, Tokens};
use serde_json::{Value, json};

use crate::support::stateful::{LATEST, Stateful};
use crate::support::{Launch, Server};

/// A server that knows Ada and Bob, and a session of each.
async fn two_sessions(directory: &Path) -> (Server, Stateful, Stateful) {
    let file = directory.join("tokens");
    let lines = ["ada", "bob"].map(|name| Tokens::line(&Owner::parse(name).unwrap(), name));
    std::fs::write(&file, lines.join("\n")).unwrap();
    let server = Launch::conformance().arg("--token-file").arg(file).start().await;
    let open = |token: &str| {
        let mut client = Stateful::new(server.address());
        client.token = Some(token.to_owned());
        client.initialize(LATEST, json!({ "elicitation": {} }))
    };
    let (ada, bob) = (open("ada").await, open("bob").await);
    (server, ada, bob)
}

fn yes(name: &str) -> Value {
    json!({ "action": "accept", "content": { "name": name } })
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_elses_streams_questions_and_requests_are_out_of_reach() {
    let directory = tempfile::tempdir().unwrap();
    let (_server, ada, bob) = two_sessions(directory.path()).await;
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

#[tokio::test(flavor = "multi_thread")]
async fn a_question_of_somebody_elses_task_is_put_to_nobody_else() {
    let directory = tempfile::tempdir().unwrap();
    let (_server, ada, bob) = two_sessions(directory.path()).await;
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
    assert_eq!(bob.http("DELETE", &[], "").await.status, 204);
    assert_eq!(bobs.rest().await, Vec::<Value>::new(), "he heard nothing of it to the end");
}

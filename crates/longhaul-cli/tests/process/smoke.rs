//! The real program over HTTP, from end to end.

use longhaul_testkit::SessionClient;
use longhaul_testkit::tools::{accepted_name, forms};
use serde_json::json;

use crate::kit::{Launch, place};

#[tokio::test]
async fn a_session_survives_a_kill_of_the_server() {
    let (_directory, file) = place("tasks.db");
    let first = Launch::conformance().store(&file).start().await;
    let client = SessionClient::open(first.address(), forms()).await;
    let id = client.create("echo", json!({ "text": "still here" })).await;
    client.until(&id, "completed").await;
    first.kill().await;

    let second = Launch::conformance().store(&file).start().await;
    let mut later = SessionClient::new(second.address());
    later.session.clone_from(&client.session);
    let result = later.result("tasks/result", json!({ "taskId": id })).await;
    assert_eq!(result["content"][0]["text"], "still here");
    // The capabilities of the client are still known.
    let ask = json!({ "name": "test_input_required_result_elicitation", "arguments": {} });
    let mut call = later.send("tools/call", ask).await;
    let question = call.next_of("elicitation/create").await;
    later.respond(&question, accepted_name("Ada")).await;
    assert_eq!(call.last().await["result"]["content"][0]["text"], "Hello, Ada!");
}

//! Families of tasks in a server that is killed, and in one that is told to cancel.

use longhaul_testkit::GetTaskResult;
use serde_json::{Value, json};

use crate::kit::{Launch, place};

fn children(task: &GetTaskResult) -> Vec<String> {
    let ids = task.value["childTaskIds"].as_array().cloned().unwrap_or_default();
    ids.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[tokio::test]
async fn a_family_goes_on_after_a_kill_without_a_child_twice() {
    let (_directory, store) = place("tasks.db");
    let (server, mut client) = Launch::conformance().store(&store).start_with_client().await;
    let arguments = json!({ "children": 50, "millis": 5, "fail": true, "ask": true });
    let id = client.create("fan_out", arguments).await.unwrap();
    let before = children(&client.get_until(&id, |task| children(task).len() == 50).await.unwrap());
    // The last child asks, so the family cannot end before the kill. Most of the others have ended by then.
    client.asked(&before[49], 1).await;
    client.settled(&before[48]).await;
    let ended_before = client.settled(&before[10]).await;
    server.kill().await;

    let (_server, mut client) = Launch::conformance().store(&store).start_with_client().await;
    let question = client.asked(&before[49], 1).await.remove(0);
    client
        .update(&before[49], json!({ question: { "action": "accept", "content": { "confirm": true } } }))
        .await
        .unwrap();
    let end = client.settled(&id).await;
    assert_eq!(children(&end), before, "the same children");
    assert_eq!(client.get(&before[10]).await.unwrap().text, ended_before.text, "what had ended has not changed");
    let texts: Vec<&str> = end.result_text().lines().collect();
    assert_eq!(texts.len(), 50);
    assert_eq!(texts[10], "child 11: done after 0.005 s");
    assert_eq!(texts[49], "child 50 is deleted.");
    for child in &before {
        assert_eq!(client.get(child).await.unwrap().value["parentTaskId"], json!(id));
    }
}

#[tokio::test]
async fn a_cancelled_family_is_cancelled_as_one() {
    let (_directory, store) = place("tasks.db");
    let (_server, mut client) = Launch::conformance().store(&store).start_with_client().await;
    let id = client.create("fan_out", json!({ "children": 50, "millis": 900_000, "ask": true })).await.unwrap();
    let family = children(&client.get_until(&id, |task| children(task).len() == 50).await.unwrap());
    client.asked(&family[49], 1).await;
    client.cancel(&id).await.unwrap();
    for task in family.iter().chain([&id]) {
        assert_eq!(client.get(task).await.unwrap().status(), "cancelled");
    }
    client.until_metric("longhaul_tasks_running", 0.0).await;
}

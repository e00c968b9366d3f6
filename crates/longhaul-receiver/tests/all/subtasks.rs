//! Families on the wire: a parent lists its children in order and keeps the list, a child and its messages name the
//! parent, and cancelling a parent cancels its children.

use std::collections::BTreeSet;

use longhaul_testkit::tools::{accepted_name, open_session, start};
use longhaul_testkit::{SessionClient, StatelessClient};
use serde_json::{Value, json};

const RELATED: &str = "io.modelcontextprotocol/related-task";

fn ids(task: &Value) -> Vec<String> {
    let ids = task["childTaskIds"].as_array().map(Vec::as_slice).unwrap_or_default();
    ids.iter().map(|id| id.as_str().unwrap().to_owned()).collect()
}

/// Waits until the task shows this many children.
async fn children(client: &mut StatelessClient, id: &str, count: usize) -> Vec<String> {
    let task = client.get_until(id, |task| ids(&task.value).len() == count).await.unwrap();
    ids(&task.value)
}

#[tokio::test]
async fn a_parent_lists_its_children_in_order_and_both_links_resolve() {
    let (server, door) = start().await;
    let mut client = server.client().await;
    let parent = client.create("family", json!({ "tools": ["echo", "wait", "fail"] })).await.unwrap();
    let children = children(&mut client, &parent, 3).await;
    for (child, tool) in children.iter().zip(["echo", "wait", "fail"]) {
        let child = client.get(child).await.unwrap();
        assert_eq!(child.value["parentTaskId"], parent, "{}", child.value);
        if tool == "wait" {
            assert_eq!(child.status(), "working");
        }
    }
    assert_eq!(client.get(&parent).await.unwrap().status(), "working", "it ends after its children");
    door.open(1);
    let ended = client.settled(&parent).await;
    assert_eq!(ended.result_text(), "echo, waited, fail failed: fail");
    assert_eq!(ids(&ended.value), children, "no child is removed from the list");
    for child in &children {
        let child = client.settled(child).await;
        assert!(child.value["result"]["content"][0]["text"].is_string(), "a child has a result of the same kind");
    }
}

#[tokio::test]
async fn a_waiting_child_leaves_its_parent_working_and_is_named_in_its_message() {
    let (server, _door) = start().await;
    let mut client = server.client().await;
    let parent = client.create("family", json!({ "tools": ["echo", "greet"] })).await.unwrap();
    let children = children(&mut client, &parent, 2).await;
    let keys = client.asked(&children[1], 1).await;
    let shown = client.get(&parent).await.unwrap();
    assert_eq!(shown.status(), "working");
    assert!(shown.value.get("inputRequests").is_none(), "{}", shown.value);
    let message = shown.value["statusMessage"].as_str().unwrap();
    assert!(message.contains(&children[1]) && message.contains("waits for an answer"), "{message}");
    client.update(&children[1], json!({ &keys[0]: accepted_name("Ada") })).await.unwrap();
    assert_eq!(client.settled(&parent).await.result_text(), "echo, Hello, Ada!");
}

#[tokio::test]
async fn cancelling_a_parent_cancels_every_child_that_has_not_ended() {
    let (server, _door) = start().await;
    let mut client = server.client().await;
    let parent = client.create("family", json!({ "tools": ["echo", "wait", "greet"] })).await.unwrap();
    let children = children(&mut client, &parent, 3).await;
    assert_eq!(client.settled(&children[0]).await.status(), "completed");
    client.cancel(&parent).await.unwrap();
    for (id, status) in children.iter().chain([&parent]).zip(["completed", "cancelled", "cancelled", "cancelled"]) {
        assert_eq!(client.get(id).await.unwrap().status(), status);
    }
}

#[tokio::test]
async fn a_cancelled_child_leaves_its_siblings_and_its_parent_alone() {
    let (server, door) = start().await;
    let mut client = server.client().await;
    let parent = client.create("family", json!({ "tools": ["wait", "wait"] })).await.unwrap();
    let children = children(&mut client, &parent, 2).await;
    client.cancel(&children[0]).await.unwrap();
    assert_eq!(client.get(&children[1]).await.unwrap().status(), "working");
    door.open(1);
    assert_eq!(client.settled(&parent).await.result_text(), "wait failed: it was cancelled, waited");
}

#[tokio::test]
async fn subscriptions_to_a_family_show_both_links() {
    let (server, door) = start().await;
    let mut client = server.client().await;
    let parent = client.create("family", json!({ "tools": ["wait"] })).await.unwrap();
    let child = children(&mut client, &parent, 1).await.remove(0);
    let mut events = client.listen(&[&parent, &child]).await;
    door.open(1);
    let mut ended = BTreeSet::new();
    while ended.len() < 2 {
        let message = events.next().await.expect("a push");
        let task = &message["params"];
        if task["taskId"] == child.as_str() {
            assert_eq!(task["parentTaskId"], parent, "{message}");
        } else if task["taskId"] == parent.as_str() {
            assert_eq!(ids(task), std::slice::from_ref(&child), "{message}");
        }
        if task["status"] == "completed" {
            ended.insert(task["taskId"].to_string());
        }
    }
}

/// Creates a family in a session whose client listens, and returns the parent's ID.
async fn create(client: &SessionClient, tools: &[&str]) -> String {
    client.create("family", json!({ "tools": tools })).await
}

#[tokio::test]
async fn a_session_hears_of_child_tasks_and_each_message_names_the_parent() {
    let (_server, door, client) = open_session().await;
    let mut events = client.listening().await;
    let parent = create(&client, &["wait", "echo"]).await;
    door.open(1);
    let mut ended = BTreeSet::new();
    let mut children = Vec::new();
    while ended.len() < 3 {
        let message = events.next_of("notifications/tasks/status").await;
        let task = &message["params"];
        if task["taskId"] == parent.as_str() {
            let now = ids(task);
            assert_eq!(now[..children.len()], children[..], "the list only grows");
            children = now;
        } else {
            assert_eq!(task["parentTaskId"], parent, "{message}");
        }
        if task["status"] == "completed" {
            ended.insert(task["taskId"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(ended, children.iter().cloned().chain([parent.clone()]).collect());
    assert_eq!(client.result_text(&parent).await, "waited, echo");
    // The answer to a child's `tasks/result` names the child and its parent.
    let result = client.result("tasks/result", json!({ "taskId": children[0] })).await;
    assert_eq!(result["_meta"][RELATED], json!({ "taskId": children[0], "parentTaskId": parent }), "{result}");
}

#[tokio::test]
async fn a_session_is_asked_the_questions_of_the_children_of_its_tasks() {
    let (_server, _door, client) = open_session().await;
    let mut events = client.listening().await;
    let parent = create(&client, &["greet"]).await;
    let question = events.next_of("elicitation/create").await;
    let related = &question["params"]["_meta"][RELATED];
    assert_eq!(related["parentTaskId"], parent, "{question}");
    assert_eq!(client.get(&parent).await["status"], "working");
    assert_eq!(client.get(related["taskId"].as_str().unwrap()).await["status"], "input_required");
    client.respond(&question, accepted_name("Ada")).await;
    assert_eq!(client.result_text(&parent).await, "Hello, Ada!");
}

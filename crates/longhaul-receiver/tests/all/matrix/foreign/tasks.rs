use longhaul_testkit::raw::RawRequest;
use longhaul_testkit::tools::accepted_name;
use longhaul_testkit::until;
use serde_json::{Value, json};

use super::probe::{Prober, unknown};
use crate::matrix::generation::{GENERATIONS, status};
use crate::matrix::kit::{BRIEF_MS, SteeredServer};

/// A task of another owner, and its state.
struct ForeignTask {
    state: String,
    id: String,
}

/// Every request about a task, in every generation: its name, the request, and a text that the response contains.
fn tries(bob: &Prober, id: &str) -> Vec<(&'static str, RawRequest, &'static str)> {
    let yes = json!({ "taskId": id, "inputResponses": { "name": accepted_name("Bob") } });
    let task = json!({ "taskId": id });
    let related = json!({ "taskId": id, "_meta": { "modelcontextprotocol.io/related-task": { "taskId": id } } });
    vec![
        ("Ext2026 tasks/get", bob.stateless("tasks/get", task.clone()), "-32602"),
        ("Ext2026 tasks/update", bob.stateless("tasks/update", yes.clone()), "-32602"),
        (
            "Ext2026 tasks/update without answers",
            bob.stateless("tasks/update", json!({ "taskId": id, "inputResponses": {} })),
            "-32602",
        ),
        (
            "Ext2026 tasks/update with a wrong answer",
            bob.stateless("tasks/update", json!({ "taskId": id, "inputResponses": { "name": 5 } })),
            "-32602",
        ),
        ("Ext2026 tasks/cancel", bob.stateless("tasks/cancel", task.clone()), "-32602"),
        ("Ext2026 tasks/result", bob.stateless("tasks/result", task.clone()), "-32601"),
        ("Ext2026 tasks/list", bob.stateless("tasks/list", task.clone()), "-32601"),
        (
            "Ext2026 subscriptions/listen",
            bob.stateless("subscriptions/listen", json!({ "notifications": { "taskIds": [id] } })),
            r#""taskIds":[]"#,
        ),
        ("Core2025 tasks/get", bob.stateful("tasks/get", task.clone()), "-32602"),
        ("Core2025 tasks/result", bob.stateful("tasks/result", task.clone()), "-32602"),
        ("Core2025 tasks/cancel", bob.stateful("tasks/cancel", task.clone()), "-32602"),
        ("Core2025 tasks/update", bob.stateful("tasks/update", yes), "-32601"),
        ("Sep1686 tasks/get", bob.stateful("tasks/get", related.clone()), "-32602"),
        ("Sep1686 tasks/result", bob.stateful("tasks/result", related.clone()), "-32602"),
        ("Sep1686 tasks/delete", bob.stateful("tasks/delete", related), "-32602"),
        ("Lesson tasks/status", bob.stateful("tasks/status", task), "-32602"),
        ("Core2025 tasks/list", bob.stateful("tasks/list", json!({})), r#""tasks":[]"#),
        ("Core2025 tasks/list from there", bob.stateful("tasks/list", json!({ "cursor": id })), "-32602"),
    ]
}

async fn tasks_of_ada(stage: &SteeredServer) -> Vec<ForeignTask> {
    let mut tasks = Vec::new();
    let answer = json!({ "end": "answer" });
    for maker in GENERATIONS {
        let mut ada = maker.client(stage, "ada").await;
        let (settled, expired) = (ada.create("work", answer.clone()).await, ada.create("brief", answer.clone()).await);
        stage.open_door(2);
        for id in [&settled, &expired] {
            until("a change", async || status(&ada.get(id).await["result"]) == "completed").await;
        }
        stage.pass(BRIEF_MS);
        until("a change", async || ada.get(&expired).await.get("error").is_some()).await;
        for (state, id) in [("settled", settled), ("expired", expired)] {
            tasks.push(ForeignTask { state: format!("{state}, of {maker:?}"), id });
        }
    }
    for maker in GENERATIONS {
        let mut ada = maker.client(stage, "ada").await;
        let (open, waiting) = (ada.create("work", answer.clone()).await, ada.create("greet", json!({})).await);
        until("a change", async || status(&ada.get(&waiting).await["result"]) == "input_required").await;
        for (state, id) in [("open", open), ("waiting", waiting)] {
            tasks.push(ForeignTask { state: format!("{state}, of {maker:?}"), id });
        }
    }
    tasks
}

#[tokio::test]
async fn a_foreign_task_is_byte_for_byte_an_unknown_one() {
    let stage = SteeredServer::set().await;
    let tasks = tasks_of_ada(&stage).await;
    let (bob, _) = Prober::of(&stage, "bob").await;
    let mut ada = GENERATIONS[0].client(&stage, "ada").await;
    let mut before = Vec::new();
    for ForeignTask { id, .. } in &tasks {
        before.push(ada.get(id).await);
    }
    for ForeignTask { state, id } in &tasks {
        let never = unknown(id);
        assert!(never.len() == id.len() && never != *id);
        for ((what, foreign, expected), (_, unknown, _)) in tries(&bob, id).into_iter().zip(tries(&bob, &never)) {
            let (foreign, unknown) = (bob.send(&foreign, id).await, bob.send(&unknown, &never).await);
            assert_eq!(foreign, unknown, "{what} of one that is {state}");
            assert!(foreign.contains(expected), "{what} of one that is {state}: {foreign}");
        }
    }
    for (ForeignTask { state, id }, before) in tasks.iter().zip(before) {
        assert_eq!(ada.get(id).await, before, "what Bob tried changed the task that is {state}");
    }
}

#[tokio::test]
async fn nothing_is_ever_heard_of_a_foreign_task() {
    let stage = SteeredServer::set().await;
    let tasks = tasks_of_ada(&stage).await;
    let (prober, session) = Prober::of(&stage, "bob").await;
    let mut hears = session.listening().await;
    let mut newest = stage.server.client().await;
    newest.token.clone_from(&session.token);
    let own = newest.create("work", json!({ "end": "answer" })).await.unwrap();
    let ids: Vec<&str> = tasks.iter().map(|task| &*task.id).chain([&*own]).collect();
    let mut subscription = newest.listen(&ids).await;
    let acknowledged = subscription.next().await.unwrap();
    assert_eq!(acknowledged["params"]["notifications"]["taskIds"], json!([own]));
    for task in &tasks {
        for (_, request, _) in tries(&prober, &task.id) {
            prober.send(&request, &task.id).await;
        }
    }
    // Ada's tasks change before Bob's task ends, so a message about them would come before the end of Bob's task.
    let mut ada = GENERATIONS[0].client(&stage, "ada").await;
    for task in &tasks {
        ada.cancel(&task.id).await;
        let shown = ada.get(&task.id).await;
        assert!(!["working", "input_required"].iter().any(|open| shown["result"]["status"] == *open), "{shown}");
    }
    session.get(&own).await;
    stage.open_door(1);
    for stream in [&mut subscription, &mut hears] {
        let mut status = Value::Null;
        while status != "completed" {
            let told = stream.must_next().await;
            assert_eq!(told["params"]["taskId"], json!(own), "{told}");
            status = told["params"]["status"].clone();
        }
    }
    session.end().await;
    assert_eq!(hears.rest().await, Vec::<Value>::new());
    let page = GENERATIONS[0].client(&stage, "bob").await.list(&own).await;
    assert_eq!(page["result"]["tasks"].as_array().unwrap().len(), 1);
}

use longhaul_task::COLLECT_MS_MIN;
use longhaul_testkit::{SessionClient, until};
use serde_json::{Value, json};

use crate::matrix::generation::{GENERATIONS, TestGeneration, status};
use crate::matrix::kit::{BRIEF_MS, KEPT_MS, SteeredServer};
use crate::matrix::table::{self, bare};

#[tokio::test]
async fn a_task_is_there_to_the_last_moment_of_its_retention() {
    for maker in GENERATIONS {
        let stage = SteeredServer::set().await;
        let mut client = maker.client(&stage, "ada").await;
        let id = client.create("work", json!({ "end": "answer" })).await;
        stage.open_door(1);
        until("its end", async || status(&client.get(&id).await["result"]) == "completed").await;
        stage.pass(KEPT_MS - 2);
        stage.pass(1);
        for viewer in GENERATIONS {
            let seen = viewer.client(&stage, "ada").await.get(&id).await;
            assert_eq!(bare(seen, &id), table::seen(*viewer, table::Ending::Answer).get, "{maker:?}, {viewer:?}");
        }
        stage.pass(1);
        gone_in_every_generation(&stage, &id).await;
    }
}

#[tokio::test]
async fn work_outlives_its_retention_and_its_result_can_still_be_collected() {
    // Ten minutes, or a half of the time that the task took if that is shorter.
    for (tool, retention_ms, collect_ms) in [("work", KEPT_MS, COLLECT_MS_MIN), ("brief", BRIEF_MS, 5 * BRIEF_MS)] {
        for maker in GENERATIONS {
            let stage = SteeredServer::set().await;
            // A task of SEP-1686 is kept for the whole retention after its end.
            let collect_ms = if *maker == TestGeneration::Sep1686 { retention_ms } else { collect_ms };
            let mut client = maker.client(&stage, "ada").await;
            let id = client.create(tool, json!({ "end": "answer" })).await;
            stage.pass(10 * retention_ms);
            for viewer in GENERATIONS {
                let seen = viewer.client(&stage, "ada").await.get(&id).await;
                assert_eq!(status(&seen["result"]), "working", "{maker:?}, {viewer:?}: {seen}");
                // It grows when the server renews it, soon after the clock was set.
                let from_end = *viewer == TestGeneration::Sep1686;
                let least = if from_end { retention_ms.min(COLLECT_MS_MIN) } else { retention_ms };
                assert!(ttl_ms(&seen) >= Some(least), "{maker:?}, {viewer:?}: {seen}");
            }
            stage.open_door(1);
            until("its end", async || status(&client.get(&id).await["result"]) == "completed").await;
            stage.pass(collect_ms - 1);
            for viewer in GENERATIONS {
                let seen = viewer.client(&stage, "ada").await.get(&id).await;
                assert_eq!(status(&seen["result"]), "completed", "{maker:?}, {viewer:?}: {seen}");
                // That generation counts from the end.
                let before = if *viewer == TestGeneration::Sep1686 { 0 } else { 10 * retention_ms };
                assert_eq!(ttl_ms(&seen), Some(before + collect_ms), "{maker:?}, {viewer:?}: {seen}");
            }
            stage.pass(1);
            gone_in_every_generation(&stage, &id).await;
        }
    }
}

#[tokio::test]
async fn an_id_of_the_requestor_is_free_again_after_the_retention() {
    let stage = SteeredServer::set().await;
    let client = SessionClient::new(&stage.server).with_token("ada").initialize("2025-06-18", json!({})).await;
    let meta = json!({ "modelcontextprotocol.io/task": { "taskId": "mine", "keepAlive": 5_000 } });
    let creation = json!({ "name": "work", "arguments": { "end": "answer" }, "_meta": meta });
    for _ in 0..2 {
        let mut call = client.send("tools/call", creation.clone()).await;
        call.next_of("notifications/tasks/created").await;
        stage.open_door(1);
        call.last().await;
        stage.pass(4_999);
        assert_eq!(client.error("tools/call", creation.clone()).await["message"], "Task ID already exists: mine");
        stage.pass(1);
        let about =
            json!({ "taskId": "mine", "_meta": { "modelcontextprotocol.io/related-task": { "taskId": "mine" } } });
        until("the end of its retention", async || {
            client.response("tasks/get", about.clone()).await.get("error").is_some()
        })
        .await;
    }
}

fn ttl_ms(seen: &Value) -> Option<u64> {
    ["ttl", "ttlMs", "keepAlive"].iter().find_map(|name| seen["result"].get(name))?.as_u64()
}

async fn gone_in_every_generation(stage: &SteeredServer, id: &str) {
    for viewer in GENERATIONS {
        let mut client = viewer.client(stage, "ada").await;
        until("the end of its retention", async || client.get(id).await.get("error").is_some()).await;
        let gone = table::gone(*viewer);
        assert_eq!(client.get(id).await, gone.get, "{viewer:?}: tasks/get");
        assert_eq!(client.result(id).await, gone.result, "{viewer:?}: tasks/result");
        assert_eq!(client.list(id).await, gone.list, "{viewer:?}: tasks/list");
        assert_eq!(client.cancel(id).await, gone.cancel, "{viewer:?}: tasks/cancel");
    }
}

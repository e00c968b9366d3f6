use longhaul_testkit::SessionClient;
use serde_json::json;

use crate::matrix::generation::{GENERATIONS, TestGeneration};
use crate::matrix::kit::SteeredServer;

/// In a session of a revision without tasks, a request that does not say which generation it speaks is answered in the
/// generation that made the task.
#[tokio::test]
async fn an_older_session_sees_a_task_as_its_maker_would() {
    let stage = SteeredServer::set().await;
    for revision in ["2025-06-18", "2025-03-26"] {
        let session = SessionClient::new(&stage.server).with_token("ada").initialize(revision, json!({})).await;
        for maker in GENERATIONS {
            let id = maker.client(&stage, "ada").await.create("work", json!({ "end": "answer" })).await;
            let about = json!({ "taskId": id });
            let shown = session.result("tasks/get", about.clone()).await;
            let (present, absent) = match maker {
                TestGeneration::Sep1686 => ("keepAlive", "createdAt"),
                TestGeneration::Lesson => ("state", "status"),
                // What was made without a session is shown as sessions show it.
                TestGeneration::Core2025 | TestGeneration::Ext2026 => ("pollInterval", "keepAlive"),
            };
            assert!(shown.get(present).is_some() && shown.get(absent).is_none(), "{maker:?}: {shown}");
            let result = if *maker == TestGeneration::Sep1686 {
                assert_eq!(session.error("tasks/result", about.clone()).await["code"], -32_602, "it does not wait");
                stage.open_door(1);
                session.until(&id, "completed").await;
                session.result("tasks/result", about).await
            } else {
                stage.open_door(1);
                session.result("tasks/result", about).await
            };
            assert_eq!(result["content"][0]["text"], "well done");
            let related = match maker {
                TestGeneration::Sep1686 => json!({ "modelcontextprotocol.io/related-task": { "taskId": id } }),
                TestGeneration::Lesson => json!(null),
                TestGeneration::Core2025 | TestGeneration::Ext2026 => {
                    json!({ "io.modelcontextprotocol/related-task": { "taskId": id } })
                }
            };
            assert_eq!(result["_meta"], related, "{maker:?}");
        }
    }
}

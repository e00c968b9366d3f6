//! The local user is a separate owner.

use longhaul::{Owner, Tokens};
use serde_json::json;

use crate::kit::Launch;
use crate::stdio;

#[tokio::test]
async fn a_task_made_over_stdio_is_the_local_users_and_not_seen_over_http() {
    let directory = tempfile::tempdir().unwrap();
    let store = directory.path().join("tasks.db");
    let url = format!("sqlite:{}", store.display());
    let (child, mut pipe) = stdio::start(&url);
    let id = pipe.create("echo", json!({ "text": "here" })).await;
    pipe.finish().await;
    assert_eq!(stdio::exit_code(child).await, Some(0));

    let tokens = directory.path().join("tokens");
    std::fs::write(&tokens, Tokens::line(&Owner::parse("ada").unwrap(), "adas")).unwrap();
    for token in [Some("adas"), None] {
        let launch = Launch::conformance().store(&store);
        let launch = if token.is_some() { launch.arg("--token-file").arg(&tokens) } else { launch };
        let (server, mut client) = launch.start_with_client().await;
        client.token = token.map(str::to_owned);
        let unknown = client.error("tasks/get", json!({ "taskId": "never was" })).await;
        assert_eq!(client.error("tasks/get", json!({ "taskId": id })).await, unknown);
        assert!(server.stop().await);
    }
    let (_child, mut pipe) = stdio::start(&url);
    let again = pipe.result("tasks/get", json!({ "taskId": id })).await;
    assert_eq!(again["taskId"], json!(id), "the next client of the same user finds it");
}

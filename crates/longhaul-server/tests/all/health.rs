//! `/healthz` reports a store that refuses writes.

use std::sync::Arc;

use longhaul::{Ctx, NoArgs, Server, Tool};
use longhaul_store::SystemClock;
use longhaul_store_sqlite::SqliteOptions;
use longhaul_testkit::{FailureReport, PATIENCE, StatelessClient, TestServer};
use serde_json::json;

async fn health(client: &mut StatelessClient) -> (u16, String) {
    let page = client.page("/healthz").await;
    (page.status, String::from_utf8(page.body.to_vec()).unwrap())
}

#[tokio::test]
async fn a_full_store_is_not_healthy_until_there_is_room_again() {
    let directory = tempfile::tempdir().unwrap();
    let options = SqliteOptions::default().file_bytes_max(Some(256 << 10));
    let store = longhaul_store_sqlite::open(directory.path().join("tasks.db"), &options, SystemClock).unwrap();
    let quick = Tool::new("quick", |_: Ctx, _: NoArgs| async move { Ok("done") });
    let server = TestServer::listen_on(Server::new("test").tool(quick), Arc::new(store)).await;
    let mut client = server.client().await;
    assert_eq!(health(&mut client).await, (200, "ok\n".into()));

    let refused = loop {
        match client.create("quick", json!({ "pad": "x".repeat(4_000) })).await {
            Ok(_) => {}
            Err(FailureReport::Refused { body, .. }) => break body,
            Err(lost) => panic!("{lost:?}"),
        }
    };
    assert!(refused.contains(r#""code":"STORE_FULL","retryAfterMs":10000"#), "{refused}");
    for _ in 0..2 {
        let (status, sentence) = health(&mut client).await;
        assert_eq!(status, 503);
        assert!(sentence.contains("does not take writes") && sentence.contains("[STORE_FULL]"), "{sentence}");
    }

    // Frees space in the file without the server, so that only the check can notice. The test does not need these rows.
    let sqlite = rusqlite::Connection::open(directory.path().join("tasks.db")).unwrap();
    sqlite.busy_timeout(PATIENCE).unwrap();
    assert!(sqlite.execute("DELETE FROM input", []).unwrap() > 10);
    drop(sqlite);
    assert_eq!(health(&mut client).await, (200, "ok\n".into()));
    let id = client.create("quick", json!({})).await.unwrap();
    client.settled(&id).await;
    server.stop().await;
}

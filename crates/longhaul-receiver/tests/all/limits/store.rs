//! A store that another program has locked.

use std::sync::Arc;

use longhaul::{Ctx, NoArgs, Server, Tool};
use longhaul_store::SystemClock;
use longhaul_store_sqlite::SqliteOptions;
use longhaul_testkit::TestServer;
use serde_json::json;

#[tokio::test]
async fn a_locked_store_takes_no_task_until_the_lock_is_released() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tasks.db");
    let store = longhaul_store_sqlite::open(&file, &SqliteOptions::default(), SystemClock).unwrap();
    let quick = Tool::new("quick", |_: Ctx, _: NoArgs| async move { Ok("done") });
    let server = TestServer::start_on(Server::new("test").tool(quick), Arc::new(store)).await;
    let mut client = server.client().await;

    let other = rusqlite::Connection::open(&file).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = client.call_error("quick", json!({})).await;
    assert_eq!((&error["code"], &error["data"]["code"]), (&json!(-32603), &json!("STORE_UNAVAILABLE")), "{error}");
    other.execute_batch("ROLLBACK").unwrap();
    let id = client.create("quick", json!({})).await.unwrap();
    client.settled(&id).await;
}

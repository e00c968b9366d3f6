//! Callers without an identity: knowing the ID of a task is enough to use it, and tasks are kept for a short time.

use longhaul::{Ctx, NoArgs, Retention, Server, Tool};
use longhaul_store::ManualClock;
use longhaul_task::COLLECT_MS_MIN;
use longhaul_testkit::tools::Door;
use longhaul_testkit::{SessionClient, TestServer, in_time};
use serde_json::{Value, json};

use crate::limits::waiting;

const HOUR: u64 = 60 * 60 * 1_000;

/// A server whose tools end when the test lets them, and its clock.
struct Kit {
    server: TestServer,
    clock: ManualClock,
    door: Door,
}

const TOOLS: [(&str, Retention); 4] = [
    ("for_ever", Retention::Unlimited),
    ("for_days_from_creation", Retention::FromCreation(48 * HOUR)),
    ("for_days_from_end", Retention::FromEnd(48 * HOUR)),
    ("for_a_minute", Retention::FromEnd(60_000)),
];

impl Kit {
    async fn start(server: Server) -> Self {
        let door = Door::closed();
        let tool = |(name, retention)| waiting(name, &door).retention(retention);
        let (server, clock) = TestServer::start_with_clock(server.tools(TOOLS.map(tool))).await;
        Self { server, clock, door }
    }

    /// How long a task that took five hours is kept after its end.
    async fn kept_for(&self, client: &SessionClient, params: Value) -> u64 {
        let id = client.result("tools/call", params).await["task"]["taskId"].as_str().unwrap().to_owned();
        self.clock.advance_ms(5 * HOUR);
        self.door.open(1);
        client.until(&id, "completed").await["ttl"].as_u64().expect("a time") - 5 * HOUR
    }
}

#[tokio::test]
async fn a_task_of_an_anonymous_caller_is_not_kept_for_long_after_its_end() {
    let kit = Kit::start(Server::new("test")).await;
    let client = SessionClient::open(&kit.server, json!({})).await;
    for (tool, retention) in &TOOLS[..3] {
        for task in [json!({}), json!({ "ttl": 1_000 * HOUR })] {
            let from_end = matches!(retention, Retention::FromEnd(_)) && task == json!({});
            let kept = if from_end { HOUR } else { COLLECT_MS_MIN };
            let params = json!({ "name": tool, "arguments": {}, "task": task });
            assert_eq!(kit.kept_for(&client, params).await, kept, "{tool} {task}");
        }
    }
    // A shorter retention from the end stays as it is.
    let minute = json!({ "name": "for_a_minute", "arguments": {}, "task": {} });
    assert_eq!(kit.kept_for(&client, minute).await, 60_000);
    // One from the creation is kept ahead of a task that works, by up to ten minutes, and what its TTL said then still holds.
    let seconds = json!({ "name": "for_ever", "arguments": {}, "task": { "ttl": 5_000 } });
    assert_eq!(kit.kept_for(&client, seconds).await, COLLECT_MS_MIN);
}

#[tokio::test]
async fn an_anonymous_task_is_deleted_after_its_retention() {
    let tool = Tool::new("for_ever", |_: Ctx, _: NoArgs| async move { Ok("done") }).retention(Retention::Unlimited);
    let server = TestServer::start(Server::new("test").tool(tool).anonymous_kept_ms_max(20)).await;
    let mut client = server.client().await;
    let id = client.create("for_ever", json!({})).await.unwrap();
    in_time("the end of its retention", async {
        while client.get(&id).await.is_ok() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn stateless_anonymous_tasks_are_kept_for_the_configured_time() {
    let kit = Kit::start(Server::new("test").anonymous_kept_ms_max(2 * HOUR)).await;
    let mut client = kit.server.client().await;
    for (tool, retention) in TOOLS {
        let id = client.create(tool, json!({})).await.unwrap();
        kit.door.open(1);
        let ended = client.settled(&id).await;
        let kept = if retention == Retention::FromEnd(60_000) { 60_000 } else { 2 * HOUR };
        assert_eq!(ended.value["ttlMs"], kept, "{tool}");
    }
}

#[tokio::test]
async fn a_known_caller_has_its_tasks_kept_as_the_tool_says() {
    let kit = Kit::start(Server::new("test")).await;
    let mut client = kit.server.client().await.with_token("ada");
    for (tool, kept) in [("for_ever", Value::Null), ("for_days_from_creation", json!(48 * HOUR))] {
        let id = client.create(tool, json!({})).await.unwrap();
        kit.door.open(1);
        assert_eq!(client.settled(&id).await.value["ttlMs"], kept, "{tool}");
    }
}

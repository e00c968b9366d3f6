//! One tool for every way to end, at a door that tests open, on a clock that stands still.

use longhaul::{Ctx, Failure, Form, FormAnswer, JsonSchema, NoArgs, Retention, Server, TaskSupport, Tool};
use longhaul_store::ManualClock;
use longhaul_task::COLLECT_MS_MIN;
use longhaul_testkit::tools::Door;
use longhaul_testkit::{TestServer, in_time};
use serde::Deserialize;
use serde_json::json;

/// How long a task of `work` is kept, and how long one of `brief`.
pub(crate) const KEPT_MS: u64 = 2 * COLLECT_MS_MIN;
pub(crate) const BRIEF_MS: u64 = 2_000;

/// A server, and what a test steers it with.
pub(crate) struct Stage {
    pub(crate) server: TestServer,
    clock: ManualClock,
    door: Door,
}

impl Stage {
    pub(crate) async fn set() -> Self {
        let door = Door::closed();
        let server = Server::new("matrix").tools(tools(&door)).poll_interval_ms(50);
        let (server, clock) = TestServer::start_with_clock(server).await;
        Self { server, clock, door }
    }

    /// Lets time pass, and has the server notice: it sleeps by the machine's clock until something is due, and is woken
    /// by what is due earlier.
    pub(crate) async fn pass(&self, ms: u64) {
        self.clock.advance_ms(ms);
        let mut client = self.server.client().await.with_token("tick");
        let id = client.create("fleeting", json!({})).await.expect("a task");
        let gone = async { while client.get(&id).await.is_ok_and(|task| !task.is_settled()) {} };
        in_time("a task that ends at once", gone).await;
    }

    /// Lets so many tasks end, the oldest first.
    pub(crate) fn open_door(&self, times: usize) {
        self.door.open(times);
    }
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum End {
    Answer,
    ToolError,
    ProtocolError,
}

#[derive(Deserialize, JsonSchema)]
struct Work {
    end: End,
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

fn tools(door: &Door) -> Vec<Tool> {
    let kept = |name, ms| door.tool(name, work).retention(Retention::FromCreation(ms));
    vec![
        kept("work", KEPT_MS),
        kept("brief", BRIEF_MS),
        Tool::new("greet", greet).retention(Retention::FromCreation(KEPT_MS)),
        Tool::new("fleeting", |_: Ctx, _: NoArgs| async { Ok("gone") }).retention(Retention::FromCreation(1)),
        // As an ordinary call.
        Tool::new("confirm", greet).task_support(TaskSupport::Forbidden),
    ]
}

/// Waits at the door, and ends as it was told.
async fn work(door: Door, ctx: Ctx, Work { end }: Work) -> Result<&'static str, Failure> {
    tokio::select! {
        () = door.pass() => {}
        () = ctx.cancelled() => return Err(Failure::tool("stopped")),
    }
    match end {
        End::Answer => Ok("well done"),
        End::ToolError => Err(Failure::tool("no luck")),
        End::ProtocolError => Err(Failure::protocol(-32_001, "broken")),
    }
}

async fn greet(mut ctx: Ctx, _: NoArgs) -> Result<String, Failure> {
    match ctx.ask("name", Form::<Name>::new("What is your name?")).await? {
        FormAnswer::Accepted(Name { name }) => Ok(format!("Hello, {name}!")),
        _ => Err(Failure::tool("nobody")),
    }
}

//! Tools for every way to end, which wait until a test lets them continue, on a manual clock.

use std::sync::Arc;

use longhaul::{Ctx, Failure, Form, FormAnswer, JsonSchema, NoArgs, Retention, Server, TaskSupport, Tool};
use longhaul_store::{ManualClock, memory};
use longhaul_task::{COLLECT_MS_MIN, Timestamp};
use longhaul_testkit::{TestServer, in_time};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::Semaphore;

/// The retention of tasks of `work` and of `brief`.
pub(crate) const KEPT_MS: u64 = 2 * COLLECT_MS_MIN;
pub(crate) const BRIEF_MS: u64 = 2_000;

/// A server, its clock, and the semaphore at which its handlers wait.
pub(crate) struct SteeredServer {
    pub(crate) server: TestServer,
    clock: ManualClock,
    door: Arc<Semaphore>,
}

impl SteeredServer {
    pub(crate) async fn set() -> Self {
        let clock = ManualClock::at(Timestamp::from_ms(1_000_000));
        let store = Arc::new(memory::open(clock.clone()).expect("a store in memory"));
        let door = Arc::new(Semaphore::new(0));
        let server = Server::new("matrix").tools(tools(&door)).poll_interval_ms(50);
        Self { server: TestServer::start_on(server, store).await, clock, door }
    }

    /// Advances the clock, and makes the server notice: it sleeps by the clock of the machine, and creating a task
    /// that is due earlier wakes it.
    pub(crate) async fn pass(&self, ms: u64) {
        self.clock.advance_ms(ms);
        let mut client = self.server.client().await.with_token("tick");
        let id = client.create("fleeting", json!({})).await.expect("a task");
        let gone = async { while client.get(&id).await.is_ok_and(|task| !task.is_settled()) {} };
        in_time("a task that ends at once", gone).await;
    }

    /// Lets this many tasks end, the oldest first.
    pub(crate) fn open_door(&self, times: usize) {
        self.door.add_permits(times);
    }
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum WorkEnd {
    Answer,
    ToolError,
    ProtocolError,
}

#[derive(Deserialize, JsonSchema)]
struct WorkArguments {
    end: WorkEnd,
}

#[derive(Deserialize, JsonSchema)]
struct NameArguments {
    name: String,
}

fn tools(door: &Arc<Semaphore>) -> Vec<Tool> {
    let kept = |name, ms| {
        let door = Arc::clone(door);
        let work = move |ctx, arguments| work(ctx, arguments, Arc::clone(&door));
        Tool::new(name, work).retention(Retention::FromCreation(ms))
    };
    vec![
        kept("work", KEPT_MS),
        kept("brief", BRIEF_MS),
        Tool::new("greet", greet).retention(Retention::FromCreation(KEPT_MS)),
        Tool::new("fleeting", |_: Ctx, _: NoArgs| async { Ok("gone") }).retention(Retention::FromCreation(1)),
        // As an ordinary call.
        Tool::new("confirm", greet).task_support(TaskSupport::Forbidden),
    ]
}

/// Waits for the test, and ends as its argument says.
async fn work(ctx: Ctx, WorkArguments { end }: WorkArguments, door: Arc<Semaphore>) -> Result<&'static str, Failure> {
    tokio::select! {
        passed = door.acquire() => passed.expect("an open semaphore").forget(),
        () = ctx.cancelled() => return Err(Failure::tool("stopped")),
    }
    match end {
        WorkEnd::Answer => Ok("well done"),
        WorkEnd::ToolError => Err(Failure::tool("no luck")),
        WorkEnd::ProtocolError => Err(Failure::protocol(-32_001, "broken")),
    }
}

async fn greet(mut ctx: Ctx, _: NoArgs) -> Result<String, Failure> {
    match ctx.ask("name", Form::<NameArguments>::new("What is your name?")).await? {
        FormAnswer::Accepted(NameArguments { name }) => Ok(format!("Hello, {name}!")),
        _ => Err(Failure::tool("no name")),
    }
}

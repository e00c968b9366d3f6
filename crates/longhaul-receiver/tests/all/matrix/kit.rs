//! Tools for every way to end, which wait until a test lets them continue, on a manual clock.

use longhaul::{
    Ctx, Failure, Form, FormAnswer, JsonSchema, NoArgs, OnCrash, Retention, Server, Subtask, TaskSupport, Tool,
};
use longhaul_store::ManualClock;
use longhaul_task::COLLECT_MS_MIN;
use longhaul_testkit::TestServer;
use longhaul_testkit::tools::Door;
use serde::Deserialize;
use serde_json::json;

/// The retention of tasks of `work` and of `brief`.
pub(crate) const KEPT_MS: u64 = 2 * COLLECT_MS_MIN;
pub(crate) const BRIEF_MS: u64 = 2_000;

/// A server, its clock, and the semaphore at which its handlers wait.
pub(crate) struct SteeredServer {
    pub(crate) server: TestServer,
    clock: ManualClock,
    door: Door,
}

impl SteeredServer {
    pub(crate) async fn set() -> Self {
        let door = Door::closed();
        let server = Server::new("matrix").tools(tools(&door)).poll_interval_ms(50);
        let (server, clock) = TestServer::start_with_clock(server).await;
        Self { server, clock, door }
    }

    /// Advances the clock, and makes the server notice.
    pub(crate) fn pass(&self, ms: u64) {
        self.clock.advance_ms(ms);
        self.server.clock_moved();
    }

    /// Lets this many tasks end, the oldest first.
    pub(crate) fn open_door(&self, times: usize) {
        self.door.open(times);
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
struct FamilyArguments {
    tools: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
struct NameArguments {
    name: String,
}

fn tools(door: &Door) -> Vec<Tool> {
    let kept = |name, ms| door.tool(name, work).retention(Retention::FromCreation(ms));
    vec![
        kept("work", KEPT_MS),
        kept("brief", BRIEF_MS),
        Tool::new("greet", greet).retention(Retention::FromCreation(KEPT_MS)),
        Tool::new("fleeting", |_: Ctx, _: NoArgs| async { Ok("gone") }).retention(Retention::FromCreation(1)),
        Tool::new("family", family).retention(Retention::FromCreation(KEPT_MS)).on_crash(OnCrash::Resume),
        // As an ordinary call.
        Tool::new("confirm", greet).task_support(TaskSupport::Forbidden),
    ]
}

/// Waits for the test, and ends as its argument says.
async fn work(door: Door, ctx: Ctx, WorkArguments { end }: WorkArguments) -> Result<&'static str, Failure> {
    tokio::select! {
        () = door.pass() => {}
        () = ctx.cancelled() => return Err(Failure::tool("stopped")),
    }
    match end {
        WorkEnd::Answer => Ok("well done"),
        WorkEnd::ToolError => Err(Failure::tool("no luck")),
        WorkEnd::ProtocolError => Err(Failure::protocol(-32_001, "broken")),
    }
}

/// Answers with the texts of its children, which are these tools.
async fn family(mut ctx: Ctx, FamilyArguments { tools }: FamilyArguments) -> Result<String, Failure> {
    let children = tools.iter().map(|tool| Subtask::new(tool, json!({ "end": "answer" })));
    let results = ctx.subtasks("children", children).await?;
    let texts = results.iter().map(|result| result.text().unwrap_or_else(|failure| failure.message()));
    Ok(texts.collect::<Vec<_>>().join(", "))
}

async fn greet(mut ctx: Ctx, _: NoArgs) -> Result<String, Failure> {
    match ctx.ask("name", Form::<NameArguments>::new("What is your name?")).await? {
        FormAnswer::Accepted(NameArguments { name }) => Ok(format!("Hello, {name}!")),
        _ => Err(Failure::tool("no name")),
    }
}

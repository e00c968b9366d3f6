//! Tools for tests, some of which wait until the test lets them continue, and a server with these tools.

use std::sync::Arc;

use longhaul::{
    Content, Ctx, Failure, Form, FormAnswer, IntoToolResult, JsonSchema, NoArgs, OnCrash, Owner, Sampling, Server,
    ServerLimits, SessionLimits, Severity, Subtask, TaskSupport, Tokens, Tool, ToolResult,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::{SessionClient, TestServer};

/// Handlers wait at the door until a test opens it.
#[derive(Clone)]
pub struct Door(Arc<Semaphore>);

impl Door {
    pub fn closed() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }

    /// Lets `times` waits at the door end, now or later.
    pub fn open(&self, times: usize) {
        self.0.add_permits(times);
    }

    /// Waits until the door is open, and uses up one opening.
    pub async fn pass(&self) {
        self.0.acquire().await.expect("an open semaphore").forget();
    }

    /// A tool whose function also gets the door.
    pub fn tool<A, R, F, Fut>(&self, name: &str, run: F) -> Tool
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        R: IntoToolResult + 'static,
        F: Fn(Self, Ctx, A) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, Failure>> + Send + 'static,
    {
        let door = self.clone();
        Tool::new(name, move |ctx, arguments| run(door.clone(), ctx, arguments))
    }
}

#[derive(Deserialize, JsonSchema)]
struct TextArguments {
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct FamilyArguments {
    tools: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
struct NameArguments {
    name: String,
}

/// The arguments of the task that `ask_first` creates from the answer.
#[derive(serde::Serialize, Deserialize, JsonSchema)]
struct GreetingArguments {
    name: String,
}

pub async fn ask_name(ctx: &mut Ctx) -> Result<String, Failure> {
    Ok(match ctx.ask("name", Form::<NameArguments>::new("What is your name?")).await? {
        FormAnswer::Accepted(NameArguments { name }) => name,
        FormAnswer::Declined => "nobody".into(),
        FormAnswer::Dismissed => "somebody".into(),
    })
}

pub async fn greet(mut ctx: Ctx, _: NoArgs) -> Result<String, Failure> {
    Ok(format!("Hello, {}!", ask_name(&mut ctx).await?))
}

async fn ask_model(mut ctx: Ctx, _: NoArgs) -> Result<String, Failure> {
    Ok(ctx.ask("model", Sampling::new("Say something.").tokens_max(10)).await?.text())
}

/// The number of lines that `chatter` logs: more than the buffers of a connection hold.
pub const CHATTER_LINES: usize = 3_000;

/// The tools, and the door at which `wait`, `steps` and `talk` wait.
pub fn tools(door: &Door) -> Vec<Tool> {
    vec![
        Tool::new("echo", |_: Ctx, TextArguments { text }| async move { Ok(text) })
            .immediate_response("It is being echoed."),
        Tool::new("fail", |_: Ctx, TextArguments { text }| async move { Err::<String, _>(Failure::tool(text)) }),
        Tool::new("break", |_: Ctx, TextArguments { text }| async move {
            Err::<String, _>(Failure::protocol(-32_001, &text))
        }),
        door.tool("wait", |door, ctx: Ctx, _: NoArgs| async move {
            tokio::select! {
                () = door.pass() => Ok("waited"),
                () = ctx.cancelled() => Err(Failure::tool("stopped")),
            }
        }),
        // Reports progress before each wait at the door.
        door.tool("steps", |door, mut ctx: Ctx, _: NoArgs| async move {
            for step in 1..=3_u32 {
                ctx.progress(step, 3, &format!("step {step}")).await?;
                door.pass().await;
            }
            Ok("three steps")
        }),
        // Logs its last line after the door, the others before.
        door.tool("talk", |door, ctx: Ctx, _: NoArgs| async move {
            ctx.log(Severity::Debug, "tiny");
            ctx.log(Severity::Info, "first");
            door.pass().await;
            ctx.log_as("database", Severity::Error, json!({ "error": 7 }));
            Ok("talked")
        }),
        // Logs, and then opens the door.
        door.tool("chatter", |door, ctx: Ctx, _: NoArgs| async move {
            for _ in 0..CHATTER_LINES {
                ctx.log(Severity::Info, "x".repeat(10_000));
            }
            door.open(1);
            Ok("chattered")
        }),
        Tool::new("greet", greet),
        Tool::new("ask_model", ask_model),
        Tool::new("ask_first", |_: Ctx, GreetingArguments { name }| async move {
            Ok(format!("Hello, {name}, from a task!"))
        })
        .ask_first(|mut ctx: Ctx, _: NoArgs| async move { Ok(GreetingArguments { name: ask_name(&mut ctx).await? }) }),
        // Runs each tool in its arguments as a child, and returns the texts or errors of the children, in order.
        Tool::new("family", |mut ctx: Ctx, FamilyArguments { tools }| async move {
            let children = tools.iter().map(|tool| Subtask::new(tool, json!({ "text": tool })));
            let results = ctx.subtasks("children", children).await?;
            let texts = results.iter().map(|result| result.text().unwrap_or_else(|failure| failure.message()));
            Ok(texts.collect::<Vec<_>>().join(", "))
        })
        .on_crash(OnCrash::Resume),
        Tool::new("only_task", |_: Ctx, _: NoArgs| async move { Ok("a task") }).task_support(TaskSupport::Required),
        Tool::new("never_task", |_: Ctx, _: NoArgs| async move { Ok("no task") }).task_support(TaskSupport::Forbidden),
        Tool::new("link", |_: Ctx, _: NoArgs| async move {
            Ok(ToolResult::new().with(Content::resource_link("file:///a", "a", None)))
        }),
    ]
}

/// A server with these tools. It has no token file and no tickets: clients without tasks get ordinary calls.
pub fn server(door: &Door) -> Server {
    Server::new("test").tools(tools(door)).poll_interval_ms(50)
}

/// Starts the server in this process. Returns it, and the door at which its tools wait.
pub async fn start() -> (TestServer, Door) {
    let door = Door::closed();
    (TestServer::start(server(&door)).await, door)
}

/// Starts the server with these limits for its sessions, and opens a session of a client that supports forms.
pub async fn open_session_within(limits: SessionLimits) -> (TestServer, Door, SessionClient) {
    let door = Door::closed();
    let server = TestServer::start(server(&door).limits(ServerLimits::default().session(limits))).await;
    let client = open(&server).await;
    (server, door, client)
}

/// Opens a session of a client that supports forms.
pub async fn open(server: &TestServer) -> SessionClient {
    SessionClient::open(server, forms()).await
}

/// Starts the server, and opens a session of a client that supports forms.
pub async fn open_session() -> (TestServer, Door, SessionClient) {
    open_session_with(forms()).await
}

/// Starts the server, and opens a session of a client with these capabilities.
pub async fn open_session_with(capabilities: Value) -> (TestServer, Door, SessionClient) {
    let (server, door) = start().await;
    let client = SessionClient::open(&server, capabilities).await;
    (server, door, client)
}

/// The same on a server without tickets, where a call without a task is not stored.
pub async fn open_session_without_tickets(capabilities: Value) -> (TestServer, Door, SessionClient) {
    let door = Door::closed();
    let server = TestServer::start(server(&door).no_tickets()).await;
    let client = SessionClient::open(&server, capabilities).await;
    (server, door, client)
}

/// The capabilities of a client that supports forms.
pub fn forms() -> Value {
    json!({ "elicitation": {} })
}

/// The answer to the form of `greet` and `ask_first`, with this name in it.
pub fn accepted_name(name: &str) -> Value {
    json!({ "action": "accept", "content": { "name": name } })
}

/// A token file with these owners. The token of an owner is its name.
pub fn tokens(owners: &[&str]) -> Tokens {
    let lines = owners.iter().map(|name| Tokens::line(&Owner::parse(name).expect("a name"), name));
    Tokens::parse(&lines.collect::<Vec<_>>().join("\n")).expect("tokens")
}

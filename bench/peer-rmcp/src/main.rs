//! A server that Longhaul is compared with: `rmcp`, the official Rust SDK, with its in-memory `TaskManager`.
//!
//! It uses the fastest configuration of `rmcp`: no sessions, JSON responses instead of streams, no tool router.

use std::{net::SocketAddr, sync::Arc};

use axum::{Router, serve::ListenerExt};
use clap::Parser;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CreateTaskResult, GetTaskParams,
    GetTaskResult, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::schemars::{self, JsonSchema};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::task_manager::{DEFAULT_TASK_TTL_MS, TaskManager, TaskOptions};
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::never::NeverSessionManager,
};
use rmcp::{ErrorData, ServerHandler};
use serde::Deserialize;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// The same allocator as Longhaul's, so that the benchmark does not compare allocators.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
#[command(about = "The benchmark's peer: rmcp with its in-memory TaskManager")]
struct Cli {
    /// Address to listen on; port 0 selects a free port.
    #[arg(long, default_value = "127.0.0.1:8381")]
    listen: SocketAddr,
    /// Milliseconds for which tasks are kept. rmcp's `TaskManager` scans all kept tasks in each call, so a longer time
    /// makes it slower.
    #[arg(long, default_value_t = DEFAULT_TASK_TTL_MS)]
    ttl_ms: u64,
}

#[derive(Deserialize, JsonSchema)]
struct Echo {
    text: String,
}

#[derive(Clone)]
struct Peer {
    tasks: TaskManager,
    ttl_ms: u64,
    echo: Tool,
}

impl Peer {
    fn new(ttl_ms: u64) -> Self {
        let schema = rmcp::handler::server::tool::schema_for_type::<Echo>();
        Self { tasks: TaskManager::new(), ttl_ms, echo: Tool::new("echo", "Returns its text", schema) }
    }
}

impl ServerHandler for Peer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_tasks().build();
        ServerConfig::new(capabilities)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        (name == "echo").then(|| self.echo.clone())
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(vec![self.echo.clone()]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if request.name != "echo" {
            return Err(ErrorData::invalid_params("unknown tool", None));
        }
        let arguments = serde_json::Value::Object(request.arguments.unwrap_or_default());
        let Echo { text } =
            serde_json::from_value(arguments).map_err(|error| ErrorData::invalid_params(error.to_string(), None))?;
        let options = TaskOptions::new().with_ttl_ms(self.ttl_ms);
        let task = self
            .tasks
            .spawn(options, |_context| Box::pin(async { Ok(CallToolResult::success(vec![ContentBlock::text(text)])) }));
        Ok(CallToolResponse::Task(CreateTaskResult::new(task)))
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        Ok(GetTaskResult::new(self.tasks.get_task(&request.task_id)?))
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let cli = Cli::parse();
    let peer = Peer::new(cli.ttl_ms);
    let config = StreamableHttpServerConfig::default().with_legacy_session_mode(false).with_json_response(true);
    let service =
        StreamableHttpService::new(move || Ok(peer.clone()), Arc::new(NeverSessionManager::default()), config);
    let listener = TcpListener::bind(cli.listen).await?;
    println!("listening on {}", listener.local_addr()?);
    let mut terminate = signal(SignalKind::terminate())?;
    let listener = listener.tap_io(|stream| {
        stream.set_nodelay(true).ok();
    });
    axum::serve(listener, Router::new().nest_service("/mcp", service))
        .with_graceful_shutdown(async move {
            terminate.recv().await;
        })
        .await?;
    Ok(())
}

//! One client of 2026-07-28.

use std::net::SocketAddr;

use crate::answer::{self, Status};
use crate::connection::Connection;
use crate::request::{ECHO_ARGUMENTS, Requests};

/// The flags for the server under test.
#[derive(clap::Args, Clone)]
pub struct Server {
    /// Address of the server; MCP is at /mcp.
    #[arg(long)]
    pub server: SocketAddr,
    /// A bearer token to send.
    #[arg(long)]
    pub token: Option<String>,
}

/// One client: a connection, its next request ID, and its buffers.
pub struct Session {
    connection: Connection,
    requests: Requests,
    id: u64,
    bytes: Vec<u8>,
}

impl Session {
    /// Connects to the server.
    ///
    /// # Errors
    /// If the server does not accept the connection.
    pub async fn open(server: &Server) -> anyhow::Result<Self> {
        Ok(Self {
            connection: Connection::open(server.server).await?,
            requests: Requests::new(server.server, server.token.as_deref()),
            id: 0,
            bytes: Vec::with_capacity(2048),
        })
    }

    /// Calls `echo` and writes the ID of the created task to `task_id`.
    ///
    /// # Errors
    /// If the response is not a task.
    pub async fn create(&mut self, task_id: &mut String) -> anyhow::Result<()> {
        self.call(task_id, "echo", ECHO_ARGUMENTS).await
    }

    /// Calls a tool that records this many empty steps and then echoes.
    ///
    /// # Errors
    /// If the response is not a task.
    pub async fn create_steps(&mut self, task_id: &mut String, steps: u32) -> anyhow::Result<()> {
        let arguments = format!("{},\"steps\":{steps}}}", ECHO_ARGUMENTS.trim_end_matches('}'));
        self.call(task_id, "empty_steps", &arguments).await
    }

    /// Calls a tool that does not end during the run.
    ///
    /// # Errors
    /// If the response is not a task.
    pub async fn create_live(&mut self, task_id: &mut String) -> anyhow::Result<()> {
        self.call(task_id, "slow_compute", r#"{"seconds":3600,"label":"live"}"#).await
    }

    async fn call(&mut self, task_id: &mut String, tool: &str, arguments: &str) -> anyhow::Result<()> {
        self.id += 1;
        self.requests.call(self.id, tool, arguments, &mut self.bytes);
        let body = self.connection.exchange(&self.bytes).await?;
        task_id.clear();
        task_id.push_str(answer::created(body, self.id)?);
        Ok(())
    }

    /// Reads a task.
    ///
    /// # Errors
    /// If the response is not this task, working or completed.
    pub async fn get(&mut self, task_id: &str) -> anyhow::Result<Status> {
        self.id += 1;
        self.requests.get(self.id, task_id, &mut self.bytes);
        let body = self.connection.exchange(&self.bytes).await?;
        answer::status(body, self.id, task_id)
    }
}

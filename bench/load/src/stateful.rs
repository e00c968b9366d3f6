//! One client of MCP 2025-11-25: a session on one connection, and the list of its tasks.

use std::io::Write as _;

use anyhow::{Context, bail, ensure};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{connection::Connection, session::Server};

/// Number of tasks on a full page.
pub const PAGE_TASKS: usize = 50;

pub struct Stateful {
    connection: Connection,
    head: String,
    id: u64,
    bytes: Vec<u8>,
}

#[derive(Deserialize)]
struct Answer<'a> {
    id: u64,
    #[serde(borrow)]
    result: Option<Page<'a>>,
}

/// A page of the list.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Page<'a> {
    #[serde(borrow)]
    pub tasks: Vec<&'a RawValue>,
    /// Cursor of the next page.
    pub next_cursor: Option<&'a str>,
}

impl Stateful {
    /// Connects and initializes a session.
    ///
    /// # Errors
    /// If the server does not accept the connection or opens no session.
    pub async fn open(server: &Server) -> anyhow::Result<Self> {
        let authorization =
            server.token.as_ref().map_or_else(String::new, |token| format!("Authorization: Bearer {token}\r\n"));
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n{authorization}",
            server.server
        );
        let connection = Connection::open(server.server).await?;
        let mut session = Self { connection, head, id: 0, bytes: Vec::with_capacity(1024) };
        let hello = concat!(
            r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","#,
            r#""capabilities":{},"clientInfo":{"name":"load","version":"0.0.0"}}}"#,
        );
        session.send(hello).await?;
        let token = session.connection.header("mcp-session-id")?;
        let head = std::mem::take(&mut session.head);
        session.head = format!("{head}MCP-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: {token}\r\n");
        Ok(session)
    }

    async fn send(&mut self, body: &str) -> anyhow::Result<&[u8]> {
        self.bytes.clear();
        write!(self.bytes, "{}Content-Length: {}\r\n\r\n{body}", self.head, body.len())?;
        self.connection.exchange(&self.bytes).await
    }

    /// Reads the first page of the list, or the one at a cursor.
    ///
    /// # Errors
    /// If the response is not a page.
    pub async fn list(&mut self, cursor: Option<&str>) -> anyhow::Result<Page<'_>> {
        self.id += 1;
        let id = self.id;
        let params = cursor.map_or_else(|| "{}".into(), |cursor| format!(r#"{{"cursor":"{cursor}"}}"#));
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tasks/list","params":{params}}}"#);
        let answer = self.send(&body).await?;
        let shown = || String::from_utf8_lossy(&answer[..answer.len().min(200)]).into_owned();
        let answer: Answer<'_> = serde_json::from_slice(answer).with_context(shown)?;
        match answer.result {
            Some(page) if answer.id == id => Ok(page),
            _ => bail!("an answer is no page of the list"),
        }
    }

    /// Reads a page that must be full.
    ///
    /// # Errors
    /// If the page is not full.
    pub async fn full_page(&mut self, cursor: Option<&str>) -> anyhow::Result<()> {
        let tasks = self.list(cursor).await?.tasks.len();
        ensure!(tasks == PAGE_TASKS, "a page has {tasks} tasks instead of {PAGE_TASKS}");
        Ok(())
    }
}

//! The endpoint with rusqlite alone: the minimum work of a durable task server.
//!
//! A creation is acknowledged after its commit; then a second write settles the task. Reads come from the cache or, if
//! the task is not there, from the file. The cache contains committed tasks only.

mod reader;
mod writer;

use std::{path::Path, sync::Arc, thread::JoinHandle};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use jiff::Timestamp;
use quick_cache::sync::Cache;
use rusqlite::{Connection, config::DbConfig};
use serde_json::value::RawValue;

use crate::answer::{self, Task};
use crate::envelope::{Echo, Envelope};
use reader::Readers;
use writer::{NewEntry, NewTask, Settlement, Writer};

/// All tasks belong to one owner, because the load generator is one client.
const OWNER: &str = "anonymous";

/// The response to `tasks/get` of committed tasks, by task ID.
type Committed = Cache<Arc<str>, Bytes>;

struct Endpoint {
    committed: Arc<Committed>,
    writer: Writer,
    readers: Readers,
}

/// Opens the file and starts its writer, which ends when the router is dropped.
pub fn open(path: &Path, cache_tasks: usize) -> anyhow::Result<(Router, JoinHandle<()>)> {
    let connection = connect(path)?;
    connection.execute_batch(include_str!("schema.sql"))?;
    let committed = Arc::new(Cache::new(cache_tasks));
    let (writer, thread) = writer::start(connection, Arc::clone(&committed))?;
    let endpoint = Endpoint { committed, writer, readers: Readers::new(path) };
    let router = Router::new().route("/mcp", post(respond)).with_state(Arc::new(endpoint));
    Ok((router, thread))
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    connection.execute_batch(include_str!("pragmas.sql"))?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(connection)
}

async fn respond(State(endpoint): State<Arc<Endpoint>>, body: Bytes) -> Response {
    let Some(request) = Envelope::parse(&body) else {
        return answer::invalid();
    };
    let answered = match &*request.method {
        "tools/call" if matches!(&*request.params.name, "echo" | "empty_steps") => {
            endpoint.echo(request.id, request.params.arguments).await
        }
        "tasks/get" => endpoint.get(request.id, &request.params.task_id),
        _ => return answer::unknown(request.id),
    };
    answered.unwrap_or_else(|error| (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response())
}

impl Endpoint {
    /// Records empty steps, each on stable storage before the next, the last with the end.
    async fn steps(&self, task_id: Arc<str>, created_ms: i64, steps: u32, result: String) -> anyhow::Result<()> {
        for seq in 0..steps.saturating_sub(1) {
            self.writer
                .record(NewEntry { id: Arc::clone(&task_id), seq, at_ms: Timestamp::now().as_millisecond() })
                .await?;
        }
        self.settle(task_id, created_ms, result)
    }

    async fn echo(self: &Arc<Self>, id: &RawValue, arguments: Option<&RawValue>) -> anyhow::Result<Response> {
        let Some(echo) = arguments.and_then(|json| serde_json::from_str::<Echo>(json.get()).ok()) else {
            return Ok(answer::invalid());
        };
        let created_ms = Timestamp::now().as_millisecond();
        let task_id = new_id(created_ms);
        let task = Task { id: &task_id, created_ms, updated_ms: created_ms, result: None };
        let created = task.created();
        let new = NewTask {
            id: Arc::clone(&task_id),
            created_ms,
            arguments: arguments.map_or("null", RawValue::get).into(),
            view: task.detailed().into(),
        };
        self.writer.create(new).await?;
        if echo.steps > 0 {
            let (endpoint, result, steps) = (Arc::clone(self), answer::echo_result(&echo.text), echo.steps);
            tokio::spawn(async move { endpoint.steps(task_id, created_ms, steps, result).await });
            return Ok(answer::result(id, created.as_bytes()));
        }
        self.settle(task_id, created_ms, answer::echo_result(&echo.text))?;
        Ok(answer::result(id, created.as_bytes()))
    }

    fn settle(&self, task_id: Arc<str>, created_ms: i64, result: String) -> anyhow::Result<()> {
        // Timestamps of a task do not decrease, even if the clock does.
        let settled_ms = Timestamp::now().as_millisecond().max(created_ms);
        let task = Task { id: &task_id, created_ms, updated_ms: settled_ms, result: Some(&result) };
        let view = task.detailed().into();
        self.writer.settle(Settlement { id: task_id, settled_ms, result, view })
    }

    fn get(&self, id: &RawValue, task_id: &str) -> anyhow::Result<Response> {
        if let Some(task) = self.committed.get(task_id) {
            return Ok(answer::result(id, &task));
        }
        let task = self.readers.detailed(task_id)?;
        Ok(task.map_or_else(|| answer::unknown(id), |task| answer::result(id, task.as_bytes())))
    }
}

/// The time, so that inserts go to the end of the tree, and 128 random bits that cannot be guessed.
fn new_id(created_ms: i64) -> Arc<str> {
    format!("{created_ms:012x}{:032x}", rand::random::<u128>()).into()
}

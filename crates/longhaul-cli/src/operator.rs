//! The socket by which an operator's command reaches a running server. It is beside the store's file, and only the user
//! who runs the server can open it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use longhaul_engine::{Engine, EngineError};
use longhaul_task::{Owner, TaskId, TaskKey};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinHandle;

use crate::exit::CommandError;

/// An order of the operator: one line of JSON.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum OperatorRequest {
    Cancel { owner: String, id: String },
}

/// The reply to an order: one line of JSON.
#[derive(Debug, Serialize, Deserialize)]
struct OperatorReply {
    error: Option<String>,
    code: Option<String>,
}

/// How long to wait for the reply of a server.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(30);

/// The longest order in bytes.
const LINE_BYTES_MAX: u64 = 4_096;

fn socket_path(store: &Path) -> PathBuf {
    // If `store` is a link, the socket is beside the file that it points to.
    let file = store.canonicalize().unwrap_or_else(|_| store.to_owned());
    let mut name = file.into_os_string();
    name.push(".sock");
    name.into()
}

/// A socket that accepts orders. Dropping it removes the socket, so drop it while the store's lock is held: later,
/// another server may have created a socket at the same path.
#[derive(Debug)]
pub(crate) struct Socket {
    path: PathBuf,
    accept_loop: JoinHandle<()>,
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.accept_loop.abort();
        // If it cannot be removed, the next server replaces it.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Opens the socket and accepts orders. The caller holds the store's lock, so a socket that is already there was left
/// by a dead process. `None` if the socket cannot be opened.
pub(crate) fn listen(store: &Path, engine: Engine) -> Option<Socket> {
    let path = socket_path(store);
    let _ = std::fs::remove_file(&path);
    let listener = match UnixListener::bind(&path) {
        Ok(listener) => listener,
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "`longhaul task cancel` will not reach this server");
            return None;
        }
    };
    let accept_loop = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let engine = engine.clone();
            tokio::spawn(async move {
                if let Err(error) = serve(stream, &engine).await {
                    tracing::debug!(%error, "an operator's connection broke");
                }
            });
        }
    });
    Some(Socket { path, accept_loop })
}

async fn serve(stream: UnixStream, engine: &Engine) -> std::io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut line = String::new();
    BufReader::new(tokio::io::AsyncReadExt::take(read, LINE_BYTES_MAX)).read_line(&mut line).await?;
    let reply = match carry_out(&line, engine).await {
        Ok(()) => OperatorReply { error: None, code: None },
        Err((error, code)) => OperatorReply { error: Some(error), code: Some(code.to_owned()) },
    };
    let mut text = serde_json::to_string(&reply)?;
    text.push('\n');
    write.write_all(text.as_bytes()).await
}

async fn carry_out(line: &str, engine: &Engine) -> Result<(), (String, &'static str)> {
    let bad_order = |error: String| (error, "BAD_ORDER");
    let OperatorRequest::Cancel { owner, id } =
        serde_json::from_str(line).map_err(|error| bad_order(error.to_string()))?;
    let owner = Owner::parse(&owner).map_err(|error| bad_order(error.to_string()))?;
    let id = TaskId::parse(&id).map_err(|error| bad_order(error.to_string()))?;
    let refused = |error: EngineError| (error.to_string(), error.code());
    engine.cancel(&TaskKey { owner, id }, Some("cancelled by the operator".into())).await.map_err(refused)?;
    Ok(())
}

/// Asks the running server to cancel a task. `None` if no server is running.
pub(crate) async fn cancel(store: &Path, key: &TaskKey) -> Option<Result<(), CommandError>> {
    let stream = UnixStream::connect(socket_path(store)).await.ok()?;
    let order = OperatorRequest::Cancel { owner: key.owner.to_string(), id: key.id.to_string() };
    // A suspended server accepts connections and does not reply.
    let reply = tokio::time::timeout(ANSWER_TIME_MAX, send(stream, &order)).await;
    Some(match reply.unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into())) {
        Ok(OperatorReply { error: None, .. }) => Ok(()),
        Ok(OperatorReply { error: Some(message), code }) => {
            Err(CommandError::Operator { message, code: code.unwrap_or_default() })
        }
        Err(error) => Err(CommandError::NoReply(error)),
    })
}

async fn send(stream: UnixStream, order: &OperatorRequest) -> std::io::Result<OperatorReply> {
    let (read, mut write) = stream.into_split();
    let mut text = serde_json::to_string(order)?;
    text.push('\n');
    write.write_all(text.as_bytes()).await?;
    let mut line = String::new();
    if BufReader::new(read).read_line(&mut line).await? == 0 {
        return Err(std::io::Error::new(std::io::ErrorKind::UnexpectedEof, "it has closed the connection"));
    }
    Ok(serde_json::from_str(&line)?)
}

//! Orders of an operator's command to a running server, through a socket beside the store's file.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use longhaul_engine::{Engine, EngineError};
use longhaul_task::{Owner, TaskId, TaskKey};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::exit::CommandError;
use crate::store_socket::{ACCEPT_PAUSE, StoreSocket, socket_path};

/// Appended to the path of the store's file, this is the path of the socket.
const SOCKET_SUFFIX: &str = ".sock";

/// An order of the operator: one line of JSON.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum OperatorOrder {
    Cancel { owner: String, id: String },
}

/// The reply to an order: one line of JSON.
#[derive(Debug, Serialize, Deserialize)]
struct OperatorReply {
    error: Option<String>,
    code: Option<String>,
}

/// How long a command waits for the reply of the server.
const REPLY_TIME_MAX: Duration = Duration::from_secs(30);

/// The most bytes of an order.
const ORDER_BYTES_MAX: u64 = 4_096;

/// How long a connection may take to send its order, and as long again to read the reply. A command sends its order at once.
const ORDER_TIME_MAX: Duration = Duration::from_secs(1);

/// The most connections that are open at once. Further ones wait to be accepted, so that connections that send nothing do
/// not use up the file descriptors of the process.
const ORDERS_MAX: usize = 32;

/// Opens the socket and accepts orders. The caller holds the store's lock, so a socket that is already there was left
/// by a dead process. `None` if the socket cannot be opened.
pub(crate) fn listen(store: &Path, engine: Engine) -> Option<StoreSocket> {
    let path = socket_path(store, SOCKET_SUFFIX);
    match StoreSocket::open(path.clone(), |listener| accept(listener, engine)) {
        Ok(socket) => Some(socket),
        Err(error) => {
            tracing::warn!(
                path = %path.display(), %error,
                "the operator's socket could not be opened, so `longhaul task cancel` cannot reach this server"
            );
            None
        }
    }
}

async fn accept(listener: UnixListener, engine: Engine) {
    let orders = Arc::new(Semaphore::new(ORDERS_MAX));
    while let Ok(order) = Arc::clone(&orders).acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => {
                let engine = engine.clone();
                tokio::spawn(async move {
                    if let Err(error) = serve(stream, &engine).await {
                        tracing::debug!(%error, "an operator's connection broke");
                    }
                    drop(order);
                });
            }
            Err(error) => {
                tracing::debug!(%error, "an operator's connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn serve(stream: UnixStream, engine: &Engine) -> io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut line = String::new();
    let mut read = BufReader::new(tokio::io::AsyncReadExt::take(read, ORDER_BYTES_MAX));
    timeout(ORDER_TIME_MAX, read.read_line(&mut line)).await??;
    let reply = match carry_out(&line, engine).await {
        Ok(()) => OperatorReply { error: None, code: None },
        Err((error, code)) => OperatorReply { error: Some(error), code: Some(code.to_owned()) },
    };
    let mut text = serde_json::to_string(&reply)?;
    text.push('\n');
    timeout(ORDER_TIME_MAX, write.write_all(text.as_bytes())).await?
}

async fn carry_out(line: &str, engine: &Engine) -> Result<(), (String, &'static str)> {
    let bad_order = |error: String| (error, "BAD_ORDER");
    let OperatorOrder::Cancel { owner, id } =
        serde_json::from_str(line).map_err(|error| bad_order(error.to_string()))?;
    let owner = Owner::parse(&owner).map_err(|error| bad_order(format!("the owner's name cannot be used: {error}")))?;
    let id = TaskId::parse(&id).map_err(|error| bad_order(format!("the task ID cannot be used: {error}")))?;
    let refused = |error: EngineError| (error.to_string(), error.code());
    engine.cancel(&TaskKey { owner, id }, Some("cancelled by the operator".into())).await.map_err(refused)?;
    Ok(())
}

/// Asks the running server to cancel a task. `None` if no server is running.
pub(crate) async fn cancel(store: &Path, key: &TaskKey) -> Option<Result<(), CommandError>> {
    let stream = UnixStream::connect(socket_path(store, SOCKET_SUFFIX)).await.ok()?;
    let order = OperatorOrder::Cancel { owner: key.owner.to_string(), id: key.id.to_string() };
    // A suspended server accepts connections and does not reply.
    let reply = timeout(REPLY_TIME_MAX, send(stream, &order)).await;
    Some(match reply.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
        Ok(OperatorReply { error: None, .. }) => Ok(()),
        Ok(OperatorReply { error: Some(message), code }) => {
            Err(CommandError::Operator { message, code: code.unwrap_or_default() })
        }
        Err(error) => Err(CommandError::NoReply(error)),
    })
}

async fn send(stream: UnixStream, order: &OperatorOrder) -> io::Result<OperatorReply> {
    let (read, mut write) = stream.into_split();
    let mut text = serde_json::to_string(order)?;
    text.push('\n');
    write.write_all(text.as_bytes()).await?;
    let mut line = String::new();
    if BufReader::new(read).read_line(&mut line).await? == 0 {
        return Err(std::io::Error::new(std::io::ErrorKind::UnexpectedEof, "it closed the connection"));
    }
    Ok(serde_json::from_str(&line)?)
}

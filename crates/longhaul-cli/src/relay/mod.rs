//! Several clients can start `longhaul serve --stdio` on one store. The first process serves. The others pass the messages of
//! their clients on to it, through a socket beside the store. When the server ends, one of the others opens the store and serves.
//!
//! - [`ledger`]: remembers what a client has sent that the next server must know. It needs no runtime.
//! - [`listen`]: the socket of the server.

mod ledger;
mod listen;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use longhaul::{OpenError, ServerLimits};
use longhaul_store::Store;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::sync::mpsc;

use self::ledger::Ledger;
pub(crate) use self::listen::listen;
use crate::command::serve::OpenedStore;
use crate::exit::CommandError;
use crate::store_socket::socket_path;

/// How long to try to reach the server of a store, or else to open the store. A server that stops does not accept
/// connections, and holds the store until it has stopped.
const HAND_OVER_TIME_MAX: Duration = Duration::from_secs(30);

/// The pause between two tries.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// The most messages that wait in memory for a server that reads slowly.
const PASSED_MESSAGES_MAX: usize = 64;

/// Appended to the path of the store's file, this is the path of the socket.
const SOCKET_SUFFIX: &str = ".clients.sock";

/// The client on standard input and output of this process.
#[derive(Debug)]
pub(crate) struct RelayedClient {
    lines: mpsc::Receiver<Vec<u8>>,
    output: tokio::io::Stdout,
    ledger: Ledger,
    /// How long a server answers open requests of a client that has closed its input.
    close_time_max: Duration,
}

/// The side that closed its connection first.
enum RelayEnd {
    Client,
    Server,
}

impl RelayedClient {
    /// Begins to read standard input. A message longer than the server takes is cut one byte past the limit, so that
    /// the server refuses it.
    pub(crate) fn on_stdio(limits: &ServerLimits) -> Self {
        let (message_bytes_max, close_time_max) = (limits.message_bytes_max, limits.close_time_max);
        let (sender, lines) = mpsc::channel(PASSED_MESSAGES_MAX);
        tokio::spawn(async move {
            let mut input = BufReader::new(tokio::io::stdin());
            while let Ok(Some(line)) = read_line(&mut input, message_bytes_max + 1).await {
                if sender.send(line).await.is_err() {
                    break;
                }
            }
        });
        Self { lines, output: tokio::io::stdout(), ledger: Ledger::default(), close_time_max }
    }

    /// Passes messages on to the server of the store, and to its successors. Returns the opened store if this process has to
    /// serve it now, and `None` if the client has closed its input.
    pub(crate) async fn pass_on(
        &mut self,
        store: &Path,
        open: impl AsyncFn() -> OpenedStore,
    ) -> Result<Option<Arc<dyn Store>>, CommandError> {
        let path = socket_path(store, SOCKET_SUFFIX);
        let mut tries_began = Instant::now();
        loop {
            if let Ok(stream) = UnixStream::connect(&path).await {
                let (read, write) = stream.into_split();
                match self.relay(read, write).await? {
                    RelayEnd::Client => return Ok(None),
                    RelayEnd::Server => tries_began = Instant::now(),
                }
            }
            match open().await {
                Ok(store) => {
                    tracing::info!("the server of this store has ended; this process serves it now");
                    return Ok(Some(store));
                }
                Err(OpenError::InUse { .. }) if tries_began.elapsed() < HAND_OVER_TIME_MAX => {
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Passes messages on to a server in this process, until the client closes its input.
    pub(crate) async fn serve(mut self, server: tokio::io::DuplexStream) -> Result<(), CommandError> {
        let (read, write) = tokio::io::split(server);
        self.relay(read, write).await.map(drop)
    }

    /// Passes messages on in both directions until one side closes its connection.
    async fn relay(
        &mut self,
        read: impl AsyncRead + Unpin,
        write: impl AsyncWrite + Unpin + Send + 'static,
    ) -> Result<RelayEnd, CommandError> {
        let (sender, queue) = mpsc::channel(PASSED_MESSAGES_MAX);
        let writer = tokio::spawn(write_lines(write, queue));
        let mut sender = Some(sender);
        // When the client closed its input, if that happened during this connection.
        let mut closed_at = None;
        let was_closed = self.ledger.is_closed();
        let replay = self.ledger.replay();
        for message in replay.to_client {
            self.write_to_client(&message).await?;
        }
        let mut replayed = replay.to_server.into_iter();
        let mut next_replayed = replayed.next();
        let mut messages = BufReader::new(read).lines();
        let ended = loop {
            // A message is taken from the client only if there is room for it, and the server's messages are read meanwhile.
            // Otherwise this process and the server could wait for each other, each with a full pipe.
            let has_room = sender.as_ref().is_some_and(|sender| sender.capacity() > 0);
            tokio::select! {
                biased;
                message = messages.next_line() => match message {
                    Ok(Some(message)) => {
                        if let Some(message) = self.ledger.take_from_server(message) {
                            self.write_to_client(&message).await?;
                        }
                    }
                    Ok(None) | Err(_) => break if was_closed { RelayEnd::Client } else { self.end(closed_at) },
                },
                () = wait_for_room(sender.as_ref()), if !has_room && sender.is_some() => {}
                () = std::future::ready(()), if has_room && next_replayed.is_some() => {
                    if let (Some(sender), Some(message)) = (&sender, next_replayed.take()) {
                        // This fails if the writer has ended. Then the server has gone, and its messages end, too.
                        let _ = sender.try_send(message.into_bytes());
                    }
                    next_replayed = replayed.next();
                }
                line = self.lines.recv(), if has_room && next_replayed.is_none() => {
                    if let (Some(line), Some(sender)) = (line, &sender) {
                        let _ = sender.try_send(self.ledger.take_from_client(line));
                    } else {
                        // The client has closed its input. The server answers the open requests, and closes the connection.
                        sender = None;
                        closed_at = Some(Instant::now());
                        self.ledger.close();
                    }
                }
            }
        };
        drop(sender);
        let _ = writer.await;
        Ok(ended)
    }

    /// The side that ended a connection whose messages have ended. A client that has closed its input is passed on to one more
    /// server: a further one could fail to answer in the same way.
    fn end(&self, closed_at: Option<Instant>) -> RelayEnd {
        // A server that is alive closes the connection when it has answered, or after the time that it has for this.
        let has_given_up = |closed_at: Instant| closed_at.elapsed() >= self.close_time_max;
        match closed_at {
            Some(closed_at) if !self.ledger.has_open_requests() || has_given_up(closed_at) => RelayEnd::Client,
            _ => RelayEnd::Server,
        }
    }

    async fn write_to_client(&mut self, message: &str) -> Result<(), CommandError> {
        let written = async {
            self.output.write_all(message.as_bytes()).await?;
            self.output.write_all(b"\n").await?;
            self.output.flush().await
        };
        written.await.map_err(CommandError::Output)
    }
}

/// Waits until there is room for a message. If the writer has ended, this waits for ever: the caller then sees that the
/// server's messages have ended.
async fn wait_for_room(sender: Option<&mpsc::Sender<Vec<u8>>>) {
    if let Some(sender) = sender
        && sender.reserve().await.is_err()
    {
        std::future::pending::<()>().await;
    }
}

async fn write_lines(mut write: impl AsyncWrite + Unpin, mut queue: mpsc::Receiver<Vec<u8>>) -> io::Result<()> {
    while let Some(mut line) = queue.recv().await {
        line.push(b'\n');
        write.write_all(&line).await?;
    }
    write.shutdown().await
}

/// The next line, or the first `bytes_max` bytes of a longer one.
async fn read_line(input: &mut (impl AsyncBufRead + Unpin), bytes_max: usize) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let mut has_bytes = false;
    loop {
        let available = input.fill_buf().await?;
        if available.is_empty() {
            return Ok(has_bytes.then_some(line));
        }
        has_bytes = true;
        let end = available.iter().position(|byte| *byte == b'\n');
        let part = &available[..end.unwrap_or(available.len())];
        line.extend_from_slice(&part[..part.len().min(bytes_max - line.len())]);
        let used = end.map_or(available.len(), |end| end + 1);
        input.consume(used);
        if end.is_some() {
            return Ok(Some(line));
        }
    }
}

//! Several clients that start `longhaul serve --stdio` on one store: the first process serves, the others pass their messages on
//! to it, through a socket beside the store. When the server ends, one of them opens the store and serves.
//!
//! - [`ledger`]: what a client has sent that the next server must know, without a runtime.
//! - [`listen`]: the socket of the server.

mod ledger;
mod listen;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use longhaul::OpenError;
use longhaul_store::Store;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::sync::mpsc;

use self::ledger::Ledger;
pub(crate) use self::listen::listen;
use crate::command::serve::OpenedStore;
use crate::exit::CommandError;
use crate::operator::socket_path;

/// How long to try to reach the server of a store, or to open it: as long as a server takes to stop.
const HAND_OVER_TIME_MAX: Duration = Duration::from_secs(30);

/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(50);

/// Messages that wait for a server that reads slowly.
const PASSED_MESSAGES_MAX: usize = 64;

/// The suffix of the socket's name.
const SUFFIX: &str = ".clients.sock";

/// The client on standard input and output of this process.
#[derive(Debug)]
pub(crate) struct RelayedClient {
    lines: mpsc::Receiver<Vec<u8>>,
    output: tokio::io::Stdout,
    ledger: Ledger,
}

/// Why messages are no longer passed on.
enum ExchangeEnd {
    Client,
    Server,
}

impl RelayedClient {
    /// Begins to read standard input. The server decides about messages that are too long; one byte more than it takes is read.
    pub(crate) fn on_stdio(message_bytes_max: usize) -> Self {
        let (sender, lines) = mpsc::channel(PASSED_MESSAGES_MAX);
        tokio::spawn(async move {
            let mut input = BufReader::new(tokio::io::stdin());
            while let Ok(Some(line)) = read_line(&mut input, message_bytes_max + 1).await {
                if sender.send(line).await.is_err() {
                    break;
                }
            }
        });
        Self { lines, output: tokio::io::stdout(), ledger: Ledger::default() }
    }

    /// Passes messages on to the server of the store. Returns the store if this process is to serve it, and `None` when the
    /// client has ended.
    pub(crate) async fn pass_on(
        &mut self,
        store: &Path,
        open: impl AsyncFn() -> OpenedStore,
    ) -> Result<Option<Arc<dyn Store>>, CommandError> {
        let path = socket_path(store, SUFFIX);
        let mut since = Instant::now();
        loop {
            if let Ok(stream) = UnixStream::connect(&path).await {
                let (read, write) = stream.into_split();
                match self.exchange(read, write).await? {
                    ExchangeEnd::Client => return Ok(None),
                    ExchangeEnd::Server => since = Instant::now(),
                }
            }
            match open().await {
                Ok(store) => {
                    tracing::info!("the server of this store has ended; this process serves it now");
                    return Ok(Some(store));
                }
                Err(OpenError::InUse { .. }) if since.elapsed() < HAND_OVER_TIME_MAX => tokio::time::sleep(PAUSE).await,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Passes messages on to a server in this process, until the client ends.
    pub(crate) async fn serve(mut self, server: tokio::io::DuplexStream) -> Result<(), CommandError> {
        let (read, write) = tokio::io::split(server);
        self.exchange(read, write).await.map(drop)
    }

    async fn exchange(
        &mut self,
        read: impl AsyncRead + Unpin,
        write: impl AsyncWrite + Unpin + Send + 'static,
    ) -> Result<ExchangeEnd, CommandError> {
        let (sender, waiting) = mpsc::channel(PASSED_MESSAGES_MAX);
        let writer = tokio::spawn(write_lines(write, waiting));
        let mut sender = Some(sender);
        let replay = self.ledger.replay();
        for message in replay.to_client {
            self.tell(&message).await?;
        }
        let mut replayed = replay.to_server.into_iter();
        let mut next = replayed.next();
        let mut messages = BufReader::new(read).lines();
        let ended = loop {
            // Nothing is taken from the client before there is room for it, and the server is read meanwhile: two full pipes
            // would wait for each other.
            let has_room = sender.as_ref().is_some_and(|sender| sender.capacity() > 0);
            tokio::select! {
                biased;
                message = messages.next_line() => match message {
                    Ok(Some(message)) => {
                        if let Some(message) = self.ledger.take_from_server(message) {
                            self.tell(&message).await?;
                        }
                    }
                    Ok(None) | Err(_) => break if sender.is_some() { ExchangeEnd::Server } else { ExchangeEnd::Client },
                },
                () = room(sender.as_ref()), if !has_room && sender.is_some() => {}
                () = std::future::ready(()), if has_room && next.is_some() => {
                    if let (Some(sender), Some(message)) = (&sender, next.take()) {
                        // If the writer has ended, the end of the messages follows.
                        let _ = sender.try_send(message.into_bytes());
                    }
                    next = replayed.next();
                }
                line = self.lines.recv(), if has_room && next.is_none() => match (line, &sender) {
                    (Some(line), Some(sender)) => {
                        let _ = sender.try_send(self.ledger.take_from_client(line));
                    }
                    // The server answers what is open, and closes the connection.
                    _ => sender = None,
                },
            }
        };
        drop(sender);
        let _ = writer.await;
        Ok(ended)
    }

    async fn tell(&mut self, message: &str) -> Result<(), CommandError> {
        let written = async {
            self.output.write_all(message.as_bytes()).await?;
            self.output.write_all(b"\n").await?;
            self.output.flush().await
        };
        written.await.map_err(CommandError::Output)
    }
}

/// Waits until there is room for a message, or the writer has ended.
async fn room(sender: Option<&mpsc::Sender<Vec<u8>>>) {
    if let Some(sender) = sender
        && sender.reserve().await.is_err()
    {
        // The end of the messages follows.
        std::future::pending::<()>().await;
    }
}

async fn write_lines(mut write: impl AsyncWrite + Unpin, mut waiting: mpsc::Receiver<Vec<u8>>) -> io::Result<()> {
    while let Some(mut line) = waiting.recv().await {
        line.push(b'\n');
        write.write_all(&line).await?;
    }
    write.shutdown().await
}

/// The next line, or the first `bytes_max` bytes of a longer one.
async fn read_line(input: &mut (impl AsyncBufRead + Unpin), bytes_max: usize) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let mut is_begun = false;
    loop {
        let available = input.fill_buf().await?;
        if available.is_empty() {
            return Ok(is_begun.then_some(line));
        }
        is_begun = true;
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

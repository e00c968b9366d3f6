//! A client in this process, connected without a socket.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::mpsc;

use crate::response::Body;
use crate::{Caller, Connection, Receiver, StreamReader};

/// Open requests of one client.
const REQUESTS_MAX: usize = 1_000;

/// Messages to the client that it has not taken yet; past that, streams wait.
const UNREAD_MAX: usize = 1_000;

/// A client of a [`Receiver`] in the same process: messages in, messages out. For tests of tools, clients and adapters.
/// Dropping it closes the connection; tasks go on.
#[derive(Debug)]
pub struct MemoryClient {
    connection: Arc<Connection>,
    sender: mpsc::Sender<String>,
    messages: mpsc::Receiver<String>,
    /// Responses that were there at once.
    ready: VecDeque<String>,
}

impl Receiver {
    /// Connects a client in this process.
    pub fn connect_in_memory(&self, caller: Caller) -> MemoryClient {
        let (sender, messages) = mpsc::channel(UNREAD_MAX);
        let connection = Arc::new(self.connect(caller, REQUESTS_MAX));
        MemoryClient { connection, sender, messages, ready: VecDeque::new() }
    }
}

impl MemoryClient {
    /// Sends one message. Returns when it was taken: an answer to a question is stored by then.
    pub async fn send(&mut self, message: impl Into<Vec<u8>>) {
        let response = self.connection.receive(message.into()).await;
        match response.body {
            Body::Message(text) => self.ready.push_back(text),
            Body::Stream(reader) => self.read(reader),
            Body::Empty | Body::EmptyStream => {}
        }
        if let Some(reader) = response.listening {
            self.read(reader);
        }
    }

    /// The next message of the server.
    pub async fn next(&mut self) -> Option<String> {
        match self.ready.pop_front() {
            Some(text) => Some(text),
            None => self.messages.recv().await,
        }
    }

    fn read(&self, mut reader: StreamReader) {
        let sender = self.sender.clone();
        tokio::spawn(async move {
            while let Some((_, text)) = reader.next().await {
                if sender.send(text.to_string()).await.is_err() {
                    break;
                }
            }
        });
    }
}

impl Drop for MemoryClient {
    fn drop(&mut self) {
        self.connection.end();
    }
}

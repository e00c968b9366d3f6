//! Standard input and output: one message a line.

use std::pin::pin;
use std::time::Duration;

use longhaul_receiver::{Body, Connection, MessageResponse, Receiver, StreamReader};
use longhaul_task::Owner;
use longhaul_wire::jsonrpc;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::unread::{CountedMessage, UnreadBudget};
use crate::{Caller, ServerLimits};

/// Serves one client until its end of file, or until `stop`, and then closes the receiver: the client is the only one.
pub async fn serve(
    receiver: Receiver,
    caller: Caller,
    input: impl AsyncBufRead + Unpin,
    output: impl AsyncWrite + Unpin + Send + 'static,
    limits: ServerLimits,
    stop: CancellationToken,
) -> std::io::Result<()> {
    let served = serve_one(receiver.clone(), caller, input, output, limits, stop, || true).await;
    receiver.finished().await;
    served
}

/// Serves one client of several until its end of file, or until `stop`. The receiver is closed if the client `is_last`.
pub async fn serve_one(
    receiver: Receiver,
    caller: Caller,
    input: impl AsyncBufRead + Unpin,
    output: impl AsyncWrite + Unpin + Send + 'static,
    limits: ServerLimits,
    stop: CancellationToken,
    is_last: impl FnOnce() -> bool,
) -> std::io::Result<()> {
    let (lines, waiting) = mpsc::channel(limits.stream_messages_max);
    let writer = tokio::spawn(write(output, waiting));
    let client = StdioClient {
        out: StdioOutput { lines, owner: caller.owner.clone(), unread: UnreadBudget::new(limits.unread_bytes_max) },
        connection: receiver.connect(caller, limits.in_flight_max),
        streams: TaskTracker::new(),
    };
    let read = client.serve(&receiver, input, &limits, &stop, is_last).await;
    client.connection.end();
    drop(client);
    // A client that has stopped reading is not waited for.
    match timeout(limits.close_time_max, writer).await {
        Ok(Ok(written)) => read.and(written),
        Ok(Err(_)) | Err(_) => read,
    }
}

struct StdioClient {
    connection: Connection,
    out: StdioOutput,
    /// The tasks that write the messages of streams.
    streams: TaskTracker,
}

impl StdioClient {
    /// Reads messages until the end of the input or until `stop`, and then waits for the responses to open requests.
    async fn serve(
        &self,
        receiver: &Receiver,
        input: impl AsyncBufRead + Unpin,
        limits: &ServerLimits,
        stop: &CancellationToken,
        is_last: impl FnOnce() -> bool,
    ) -> std::io::Result<()> {
        let finished = CancellationToken::new();
        let mut reading = pin!(self.read(input, limits.message_bytes_max, &finished));
        let end_of_input = tokio::select! {
            read = &mut reading => Some(read),
            () = stop.cancelled() => None,
        };
        // Subscriptions end with their response, and open requests are answered if that does not take too long: a client that
        // has closed its side may still be reading. Tasks go on.
        if is_last() || stop.is_cancelled() {
            receiver.close();
        }
        let mut finishing = pin!(self.finish(limits.close_time_max, &finished));
        if let Some(read) = end_of_input {
            finishing.await;
            return read;
        }
        // Meanwhile the client can cancel what it waits for. New calls are refused if the engine has been drained.
        tokio::select! {
            () = &mut finishing => {
                // The message that is being received may be the cancellation that has ended the last request. Its effect is
                // awaited, but not a client that does not read the response.
                timeout(limits.close_time_max, reading).await.unwrap_or(Ok(()))
            }
            read = &mut reading => {
                finishing.await;
                read
            }
        }
    }

    /// Receives messages until the end of the input, or until `finished`.
    async fn read(
        &self,
        mut input: impl AsyncBufRead + Unpin,
        bytes_max: usize,
        finished: &CancellationToken,
    ) -> std::io::Result<()> {
        let mut line = Vec::new();
        loop {
            let read = tokio::select! {
                biased;
                () = finished.cancelled() => return Ok(()),
                read = read_line(&mut input, &mut line, bytes_max) => read?,
            };
            let response = match read {
                LineRead::End => return Ok(()),
                LineRead::TooLong => self.connection.refuse_too_long(bytes_max),
                LineRead::Whole if line.trim_ascii().is_empty() => continue,
                LineRead::Whole => self.connection.receive(std::mem::take(&mut line)).await,
            };
            self.send(response).await;
        }
    }

    /// Waits for the responses to open requests, lets the reader stop, and ends the requests that take too long. What their
    /// streams still have to send is awaited with the writer: here, a client that reads nothing would be waited for.
    async fn finish(&self, time_max: Duration, finished: &CancellationToken) {
        self.streams.close();
        self.connection.stop_listening();
        let responded = timeout(time_max, self.streams.wait()).await;
        finished.cancel();
        if responded.is_err() {
            self.connection.end();
        }
    }

    async fn send(&self, response: MessageResponse) {
        match response.body {
            Body::Message(text) => {
                self.out.send(text).await;
            }
            Body::Stream(reader) => self.send_stream(reader),
            Body::Empty | Body::EmptyStream => {}
        }
        if let Some(reader) = response.listening {
            self.send_stream(reader);
        }
    }

    fn send_stream(&self, mut reader: StreamReader) {
        let out = self.out.clone();
        self.streams.spawn(async move {
            while let Some((_, message)) = reader.next().await {
                let is_sent = match reader.stateless_request() {
                    Some(request) => out.send_for(request, message.to_string()).await,
                    None => out.send(message.to_string()).await,
                };
                if !is_sent {
                    break;
                }
            }
        });
    }
}

/// The way to the client.
#[derive(Clone)]
struct StdioOutput {
    lines: mpsc::Sender<CountedMessage>,
    owner: Owner,
    unread: UnreadBudget,
}

impl StdioOutput {
    /// Sends a message. If there is no room for a response, an error takes its place; every other message waits, because
    /// the client cannot ask for it again. Returns false if the client is gone.
    async fn send(&self, message: String) -> bool {
        let kept = match self.unread.keep(Some(&self.owner), message) {
            Ok(kept) => kept,
            Err(full) => match full.answered() {
                Some(id) => CountedMessage::uncounted(jsonrpc::error(Some(&id), &full.into())),
                None => self.unread.keep_later(&self.owner, full.text).await,
            },
        };
        self.lines.send(kept).await.is_ok()
    }

    /// Sends a message of a request outside of a session. If there is no room for it, the request ends with an error.
    /// Returns false if the request has ended or the client is gone.
    async fn send_for(&self, request: &jsonrpc::RequestId, message: String) -> bool {
        let (kept, goes_on) = match self.unread.keep(Some(&self.owner), message) {
            Ok(kept) => (kept, true),
            Err(full) => (CountedMessage::uncounted(jsonrpc::error(Some(request), &full.into())), false),
        };
        self.lines.send(kept).await.is_ok() && goes_on
    }
}

async fn write(
    mut output: impl AsyncWrite + Unpin,
    mut waiting: mpsc::Receiver<CountedMessage>,
) -> std::io::Result<()> {
    while let Some(message) = waiting.recv().await {
        output.write_all(jsonrpc::one_line(message.as_str()).as_bytes()).await?;
        output.write_all(b"\n").await?;
        // What comes at once goes out at once.
        if waiting.is_empty() {
            output.flush().await?;
        }
    }
    output.flush().await
}

enum LineRead {
    Whole,
    TooLong,
    End,
}

/// Reads one line into `line`, or skips one that is longer than `bytes_max`.
async fn read_line(
    input: &mut (impl AsyncBufRead + Unpin),
    line: &mut Vec<u8>,
    bytes_max: usize,
) -> std::io::Result<LineRead> {
    line.clear();
    let mut too_long = false;
    loop {
        let available = input.fill_buf().await?;
        if available.is_empty() {
            return Ok(if line.is_empty() && !too_long { LineRead::End } else { ended(too_long) });
        }
        let end = available.iter().position(|byte| *byte == b'\n');
        let part = &available[..end.unwrap_or(available.len())];
        if line.len() + part.len() > bytes_max {
            too_long = true;
            line.clear();
        } else if !too_long {
            line.extend_from_slice(part);
        }
        let used = end.map_or(available.len(), |end| end + 1);
        input.consume(used);
        if end.is_some() {
            return Ok(ended(too_long));
        }
    }
}

fn ended(too_long: bool) -> LineRead {
    if too_long { LineRead::TooLong } else { LineRead::Whole }
}

//! The same server over standard input and output: one message a line, all requests on one channel. Both eras may be
//! mixed: what says that it is of the stateless era is; everything else is part of the one session there may be.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use longhaul_receiver::core2025::{Delivery, Reader, Session, SessionLimits, Taken};
use longhaul_receiver::{Receiver, Reply, audit};
use longhaul_wire::ext2026::Cancelled;
use longhaul_wire::jsonrpc::{self, Message, Notification, RequestId, RpcError};
use parking_lot::Mutex;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::unread::{Kept, Unread};
use crate::{Caller, Limits};

/// Serves one client until its end of file, or until told to stop.
pub async fn serve(
    receiver: Receiver,
    caller: Caller,
    input: impl AsyncBufRead + Unpin,
    output: impl AsyncWrite + Unpin + Send + 'static,
    limits: Limits,
    stop: CancellationToken,
) -> std::io::Result<()> {
    let (lines, waiting) = mpsc::channel(limits.stream_messages_max);
    let writer = tokio::spawn(write(output, waiting));
    let client = Client {
        session: OnceLock::new(),
        // A pipe that broke does not come back, so nothing is kept for it.
        session_limits: limits.session.clone().under_way_max(limits.in_flight_max).kept_messages_max(0),
        receiver,
        caller: Arc::new(caller),
        out: Out { lines, unread: Unread::new(limits.unread_bytes_max) },
        in_flight: Arc::default(),
        places: Arc::new(Semaphore::new(limits.in_flight_max)),
        tracker: TaskTracker::new(),
    };
    let read = tokio::select! {
        read = client.read(input, limits.message_bytes_max) => read,
        () = stop.cancelled() => Ok(()),
    };
    // Subscriptions end with a word, and what was asked before is answered if that does not take too long: whoever
    // has no more to say may still be reading. Tasks go on.
    client.receiver.close();
    client.tracker.close();
    if let Some(session) = client.session.get() {
        session.stop_listening();
    }
    if timeout(limits.close_time_max, client.tracker.wait()).await.is_err() {
        client.session.get().inspect(|session| session.end());
        for cancel in client.in_flight.lock().values() {
            cancel.cancel();
        }
        client.tracker.wait().await;
    }
    client.session.get().inspect(|session| session.end());
    client.receiver.finished().await;
    drop(client);
    // A client that has stopped reading is not waited for.
    match timeout(limits.close_time_max, writer).await {
        Ok(Ok(written)) => read.and(written),
        Ok(Err(_)) | Err(_) => read,
    }
}

struct Client {
    session: OnceLock<Arc<Session>>,
    session_limits: SessionLimits,
    receiver: Receiver,
    caller: Arc<Caller>,
    out: Out,
    in_flight: Arc<Mutex<HashMap<RequestId, CancellationToken>>>,
    places: Arc<Semaphore>,
    tracker: TaskTracker,
}

impl Client {
    async fn read(&self, mut input: impl AsyncBufRead + Unpin, bytes_max: usize) -> std::io::Result<()> {
        let mut line = Vec::new();
        loop {
            match read_line(&mut input, &mut line, bytes_max).await? {
                Line::End => return Ok(()),
                Line::TooLong => {
                    let error = RpcError::invalid_request(&format!("a message has at most {bytes_max} bytes"));
                    self.refuse(None, &error).await;
                }
                Line::Whole if line.trim_ascii().is_empty() => {}
                Line::Whole => self.take(std::mem::take(&mut line)).await,
            }
        }
    }

    async fn take(&self, line: Vec<u8>) {
        if !longhaul_receiver::is_stateless(&line) {
            match (self.session.get(), jsonrpc::parse(&line)) {
                (Some(session), message) => {
                    if let Ok(Message::Notification(told)) = &message {
                        self.heed(told);
                    }
                    return self.take_in(session, &line).await;
                }
                (None, Ok(Message::Request(request))) if request.method == "initialize" => {
                    return self.initialize(&request).await;
                }
                (None, _) => {}
            }
        }
        match jsonrpc::parse(&line) {
            Ok(Message::Request(request)) => {
                let id = request.id.clone();
                self.start(id, line).await;
            }
            Ok(Message::Notification(told)) => self.heed(&told),
            Ok(Message::Response(_)) => {
                let error = RpcError::invalid_request("a client must not send responses");
                self.refuse(None, &error).await;
            }
            Err(rejected) => self.refuse(rejected.id.as_ref(), &rejected.error).await,
        }
    }

    /// Refuses what does not get to the receiver.
    async fn refuse(&self, id: Option<&RequestId>, error: &RpcError) {
        audit::turned_away(Some(&self.caller.owner), error);
        self.out.say(id, jsonrpc::error(id, error)).await;
    }

    /// Cancels a request of the stateless era, if that is what is told.
    fn heed(&self, told: &Notification<'_>) {
        if told.method == "notifications/cancelled"
            && let Some(cancelled) = Cancelled::parse(told.params)
            && let Some(cancel) = self.in_flight.lock().remove(&cancelled.request_id)
        {
            cancel.cancel();
        }
    }

    /// Opens the session.
    async fn initialize(&self, request: &jsonrpc::Request<'_>) {
        match self.receiver.handshake(request, &self.caller) {
            Ok((peer, answer)) => {
                self.out.say(Some(&request.id), answer).await;
                let session = self.receiver.session(None, &self.caller, peer, self.session_limits.clone());
                if let Some(reader) = session.listen() {
                    self.tracker.spawn(pump(reader, self.out.clone()));
                }
                // Only one line at a time is taken, so nobody was quicker.
                let _ = self.session.set(session);
            }
            Err(error) => self.refuse(Some(&request.id), &error).await,
        }
    }

    /// Takes a message of the session.
    async fn take_in(&self, session: &Arc<Session>, line: &[u8]) {
        match session.take(line).await {
            Taken::Noted => {}
            Taken::Rejected { text, .. } | Taken::Answered { text, .. } => {
                self.out.pass(text).await;
            }
            Taken::Works { method: Some(_), reader } => {
                self.tracker.spawn(pump(reader, self.out.clone()));
            }
            Taken::Works { method: None, reader } => {
                self.tracker.spawn(pump_batch(reader, self.out.clone()));
            }
        }
    }

    /// Answers a request beside the others.
    async fn start(&self, id: RequestId, line: Vec<u8>) {
        // Refused and not made to wait: behind it may come the word that cancels one of those under way.
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            return self.refuse(Some(&id), &longhaul_receiver::too_many_in_flight()).await;
        };
        let cancel = CancellationToken::new();
        if !self.register(&id, &cancel) {
            let error = RpcError::invalid_request("a request of this ID is still under way");
            return self.refuse(Some(&id), &error).await;
        }
        let (receiver, caller, out) = (self.receiver.clone(), Arc::clone(&self.caller), self.out.clone());
        let in_flight = Arc::clone(&self.in_flight);
        self.tracker.spawn(async move {
            tokio::select! {
                // Cancelled first: not a word more, and whoever cancelled it has freed its ID.
                biased;
                () = cancel.cancelled() => {}
                () = answer(&receiver, &caller, &line, &out) => {
                    in_flight.lock().remove(&id);
                }
            }
            drop(place);
        });
    }

    /// Makes a request known to whoever may cancel it; says whether its ID was free.
    fn register(&self, id: &RequestId, cancel: &CancellationToken) -> bool {
        match self.in_flight.lock().entry(id.clone()) {
            Entry::Occupied(_) => false,
            Entry::Vacant(free) => {
                free.insert(cancel.clone());
                true
            }
        }
    }
}

/// The way to the client.
#[derive(Clone)]
struct Out {
    lines: mpsc::Sender<Kept>,
    unread: Unread,
}

impl Out {
    /// Says a message that belongs to a request, or that there is no room for it, which ends the request; says whether
    /// it goes on.
    async fn say(&self, id: Option<&RequestId>, message: String) -> bool {
        let (kept, goes_on) = match self.unread.keep(message) {
            Ok(kept) => (kept, true),
            Err(full) => (Kept::uncounted(jsonrpc::error(id, &full.into())), false),
        };
        // A writer that has ended has said why.
        self.lines.send(kept).await.is_ok() && goes_on
    }

    /// Says a message of the session; says whether anybody is there. Without room for an answer that is the answer,
    /// and everything else waits, for the client cannot ask for it again.
    async fn pass(&self, message: String) -> bool {
        let kept = match self.unread.keep(message) {
            Ok(kept) => kept,
            Err(full) => match full.answered() {
                Some(id) => Kept::uncounted(jsonrpc::error(Some(&id), &full.into())),
                None => self.unread.keep_later(full.text).await,
            },
        };
        self.lines.send(kept).await.is_ok()
    }
}

/// Carries the messages of a stream to the client.
async fn pump(mut reader: Reader, out: Out) {
    while let Some((_, message)) = reader.next().await {
        if !out.pass(message.to_string()).await {
            break;
        }
    }
}

/// The same for a batch, whose answers go out as one unless something else comes first.
async fn pump_batch(reader: Reader, out: Out) {
    match reader.delivery(Duration::MAX).await {
        Delivery::Answers(answers) if answers.is_empty() => {}
        Delivery::Answers(answers) => {
            out.pass(format!("[{}]", answers.join(","))).await;
        }
        Delivery::Stream(reader) => pump(reader, out).await,
    }
}

async fn answer(receiver: &Receiver, caller: &Caller, line: &[u8], out: &Out) {
    let Ok(Message::Request(request)) = jsonrpc::parse(line) else { return };
    match receiver.receive(caller, &request, None).await {
        Reply::Message { text, .. } => {
            out.say(Some(&request.id), text).await;
        }
        Reply::Stream(mut messages) => {
            while let Some(message) = messages.next().await {
                if !out.say(Some(&request.id), message).await {
                    break;
                }
            }
        }
    }
}

async fn write(mut output: impl AsyncWrite + Unpin, mut waiting: mpsc::Receiver<Kept>) -> std::io::Result<()> {
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

enum Line {
    Whole,
    TooLong,
    End,
}

/// Reads one line into `line`, or skips one that is longer than `bytes_max`.
async fn read_line(
    input: &mut (impl AsyncBufRead + Unpin),
    line: &mut Vec<u8>,
    bytes_max: usize,
) -> std::io::Result<Line> {
    line.clear();
    let mut too_long = false;
    loop {
        let available = input.fill_buf().await?;
        if available.is_empty() {
            return Ok(if line.is_empty() && !too_long { Line::End } else { ended(too_long) });
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

fn ended(too_long: bool) -> Line {
    if too_long { Line::TooLong } else { Line::Whole }
}

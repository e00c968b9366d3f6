//! Responses of a server, read as a whole or message by message.

use std::collections::VecDeque;

use http_body_util::BodyExt;
use hyper::body::{Bytes, Incoming};
use hyper::{HeaderMap, Response};
use longhaul_receiver::StreamReader;
use longhaul_wire::sse;
use serde_json::Value;

use crate::schema::SentRequests;
use crate::{FailureReport, in_time};

/// A response whose body is read as it is received. Dropping it closes the connection.
pub struct Reply {
    pub status: u16,
    pub headers: HeaderMap,
    body: ReplyBody,
}

enum ReplyBody {
    Http { body: Incoming, unread: Vec<u8> },
    Whole(Bytes),
    Stream { reader: StreamReader, is_opened: bool },
}

#[derive(Debug)]
pub struct WholeReply {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl WholeReply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("text"))
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("UTF-8")
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {:?}", self.body))
    }
}

#[derive(Debug)]
pub struct StreamEvent {
    pub id: Option<String>,
    /// Empty for an event with only an ID or a retry time, and for a keep-alive comment.
    pub data: String,
}

impl From<Response<Incoming>> for Reply {
    fn from(response: Response<Incoming>) -> Self {
        let (head, body) = response.into_parts();
        let body = ReplyBody::Http { body, unread: Vec::new() };
        Self { status: head.status.as_u16(), headers: head.headers, body }
    }
}

impl Reply {
    pub(crate) fn whole(status: u16, headers: HeaderMap, body: Bytes) -> Self {
        Self { status, headers, body: ReplyBody::Whole(body) }
    }

    pub(crate) fn stream(status: u16, headers: HeaderMap, reader: StreamReader) -> Self {
        Self { status, headers, body: ReplyBody::Stream { reader, is_opened: false } }
    }

    pub fn is_stream(&self) -> bool {
        self.headers.get("content-type").is_some_and(|kind| kind == "text/event-stream")
    }

    /// The body, of which nothing was read before.
    pub async fn bytes(&mut self) -> Result<Bytes, FailureReport> {
        match &mut self.body {
            ReplyBody::Http { body, .. } => {
                Ok(in_time("a whole body", body.collect()).await.map_err(FailureReport::lost)?.to_bytes())
            }
            ReplyBody::Whole(bytes) => Ok(std::mem::take(bytes)),
            ReplyBody::Stream { .. } => {
                let mut text = String::new();
                while let Some(event) = self.event().await {
                    if !event.data.is_empty() {
                        text.push_str(&sse::event(&event.data));
                    }
                }
                Ok(text.into())
            }
        }
    }

    pub async fn read_whole(mut self) -> Result<WholeReply, FailureReport> {
        let body = self.bytes().await?;
        Ok(WholeReply { status: self.status, headers: self.headers, body })
    }

    /// Reads the whole response, and checks it against the schemas of the results of these requests.
    pub(crate) async fn read_checked(self, sent_requests: &SentRequests) -> Result<WholeReply, FailureReport> {
        let reply = self.read_whole().await?;
        sent_requests.check_received_body(None, reply.header("content-type"), &reply.body);
        Ok(reply)
    }

    /// The first message of a stream, or the whole body of another response, as text.
    pub async fn first(mut self) -> String {
        if !self.is_stream() {
            return String::from_utf8(self.bytes().await.expect("a whole body").to_vec()).expect("UTF-8");
        }
        loop {
            match self.event().await {
                Some(event) if event.data.is_empty() => {}
                event => return event.map(|event| event.data).unwrap_or_default(),
            }
        }
    }

    /// The next event of a stream; `None` at its end.
    pub async fn event(&mut self) -> Option<StreamEvent> {
        match &mut self.body {
            ReplyBody::Whole(_) => None,
            ReplyBody::Stream { reader, is_opened } => {
                if !std::mem::replace(is_opened, true)
                    && let Some(id) = reader.primer_id()
                {
                    return Some(StreamEvent { id: Some(id), data: String::new() });
                }
                let (number, text) = in_time("the next message of a stream", reader.next()).await?;
                Some(StreamEvent { id: reader.event_id(number), data: text.to_string() })
            }
            ReplyBody::Http { body, unread } => loop {
                if let Some(end) = unread.windows(2).position(|pair| pair == b"\n\n") {
                    let event: Vec<u8> = unread.drain(..end + 2).collect();
                    return Some(StreamEvent::parse(std::str::from_utf8(&event).expect("UTF-8")));
                }
                let frame = in_time("the next event of a stream", body.frame()).await?.ok()?;
                unread.extend(frame.into_data().unwrap_or_default());
            },
        }
    }
}

impl StreamEvent {
    fn parse(text: &str) -> Self {
        let mut event = Self { id: None, data: String::new() };
        for line in text.lines() {
            match line.split_once(": ") {
                Some(("id", id)) => event.id = Some(id.to_owned()),
                Some(("data", data)) => data.clone_into(&mut event.data),
                Some(("retry", ms)) => assert!(ms.parse::<u64>().is_ok(), "{line:?}"),
                _ => assert!(line.is_empty() || line.starts_with(':'), "{line:?}"),
            }
        }
        event
    }
}

/// The messages of a response, each checked against the schema. Dropping it closes the connection.
pub struct ReplyMessages {
    pub status: u16,
    pub headers: HeaderMap,
    pub last_event: Option<String>,
    reply: Reply,
    /// Messages of a batch that `next` has not returned yet.
    batch: VecDeque<Value>,
    /// Whether the body was read, if the response is not a stream.
    body_is_read: bool,
    sent_requests: SentRequests,
    /// The revision of the session; `None` in the stateless era.
    revision: Option<String>,
}

impl ReplyMessages {
    pub(crate) fn new(reply: Reply, sent_requests: SentRequests, revision: Option<String>) -> Self {
        let (status, headers) = (reply.status, reply.headers.clone());
        Self {
            status,
            headers,
            last_event: None,
            reply,
            batch: VecDeque::new(),
            body_is_read: false,
            sent_requests,
            revision,
        }
    }

    pub fn is_stream(&self) -> bool {
        self.reply.is_stream()
    }

    /// The next message; `None` at the end.
    pub async fn next(&mut self) -> Option<Value> {
        let message = self.read().await?;
        self.sent_requests.check_received(self.revision.as_deref(), &message);
        Some(message)
    }

    pub async fn must_next(&mut self) -> Value {
        self.next().await.expect("a message")
    }

    /// The next message of this method. Others are skipped.
    pub async fn next_of(&mut self, method: &str) -> Value {
        loop {
            let message = self.must_next().await;
            if message["method"] == method {
                return message;
            }
        }
    }

    async fn read(&mut self) -> Option<Value> {
        if let Some(message) = self.batch.pop_front() {
            return Some(message);
        }
        if !self.is_stream() {
            return self.read_body().await;
        }
        loop {
            let event = self.reply.event().await?;
            self.last_event = event.id.or(self.last_event.take());
            if !event.data.is_empty() {
                return Some(serde_json::from_str(&event.data).expect("JSON"));
            }
        }
    }

    /// The first message of the body, once.
    async fn read_body(&mut self) -> Option<Value> {
        if std::mem::replace(&mut self.body_is_read, true) {
            return None;
        }
        let body = self.reply.bytes().await.expect("a whole body");
        match serde_json::from_slice(&body).ok()? {
            Value::Array(messages) => self.batch.extend(messages),
            message => return Some(message),
        }
        self.batch.pop_front()
    }

    /// The next notification that a task has this status. Other messages are skipped.
    pub async fn next_status(&mut self, status: &str) -> Value {
        loop {
            let notification = self.next_of("notifications/tasks/status").await;
            if notification["params"]["status"] == status {
                return notification;
            }
        }
    }

    /// Waits until the stream has begun: its first event has an ID and no message.
    pub async fn first_event_id(&mut self) -> String {
        while self.last_event.is_none() {
            let event = self.reply.event().await.expect("the first event of a stream");
            assert_eq!(event.data, "", "the first event of a stream has no message");
            self.last_event = event.id;
        }
        self.last_event.clone().expect("an ID")
    }

    /// All messages to the end.
    pub async fn rest(&mut self) -> Vec<Value> {
        let mut messages = Vec::new();
        while let Some(message) = self.next().await {
            messages.push(message);
        }
        messages
    }

    /// The last message, which is the response.
    pub async fn last(&mut self) -> Value {
        let status = self.status;
        self.rest().await.pop().unwrap_or_else(|| panic!("no response, only {status}"))
    }
}

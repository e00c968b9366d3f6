//! Sessions: their handshake, their messages in both directions, and tasks at 2025-11-25.

mod batches;
mod examples;
mod handshake;
mod messages;
mod properties;
mod questions;
mod results;
mod schemas;
mod tasks;

use std::sync::LazyLock;

use longhaul_wire::jsonrpc::{self, InvalidMessage, Message, RequestId, Response, RpcError};
use longhaul_wire::{
    Capabilities, ClientNotification, Context, Generation, Operation, Peer, ReplyTo, Revision, RoutedRequest,
    ServerInfo, route,
};

const TASKS: Generation = Generation::Core2025;
const LATEST: Revision = Revision::V2025_11_25;
const EVERY: [Revision; 3] = Revision::SESSIONS;
const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

#[derive(Debug)]
enum Incoming<'a> {
    Request(RoutedRequest<'a>),
    Notice(ClientNotification<'a>),
    Response(Response<'a>),
}

fn sort(message: Message<'_>, revision: Revision) -> Result<Incoming<'_>, InvalidMessage> {
    match message {
        Message::Request(request) => {
            route(&request, &Context::Session { peer: peer(revision), last_marker: None, is_restored: false })
                .map(Incoming::Request)
                .map_err(|error| InvalidMessage { id: Some(request.id), error })
        }
        Message::Notification(notification) => Ok(Incoming::Notice(ClientNotification::read(&notification))),
        Message::Response(response) => Ok(Incoming::Response(response)),
    }
}

/// One message of a session at this revision.
fn read(bytes: &[u8], revision: Revision) -> Result<Incoming<'_>, InvalidMessage> {
    sort(jsonrpc::parse(bytes)?, revision)
}

/// One message of a session at the newest revision.
fn incoming(message: &str) -> Incoming<'_> {
    read(message.as_bytes(), LATEST).unwrap_or_else(|rejected| panic!("{rejected:?} from {message}"))
}

fn asked(message: &str) -> RoutedRequest<'_> {
    match incoming(message) {
        Incoming::Request(request) => request,
        other => panic!("no request: {other:?}"),
    }
}

fn told(message: &str) -> ClientNotification<'_> {
    match incoming(message) {
        Incoming::Notice(notice) => notice,
        other => panic!("no notice: {other:?}"),
    }
}

/// A request with these parameters, at this revision: what it asks for, or why it is refused.
fn operation(message: &str, revision: Revision) -> Result<Operation<'_>, RpcError> {
    match read(message.as_bytes(), revision) {
        Ok(Incoming::Request(request)) => Ok(request.operation),
        Err(rejected) => {
            assert_eq!(rejected.id, Some(1.into()), "a refusal names its request");
            Err(rejected.error)
        }
        other => panic!("no request: {other:?}"),
    }
}

fn requesting(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#)
}

fn peer(revision: Revision) -> Peer {
    Peer::new(revision, Capabilities::default())
}

fn id() -> RequestId {
    RequestId::from_text("a-1")
}

fn to(id: &RequestId, revision: Revision) -> ReplyTo<'_> {
    static SERVER: LazyLock<ServerInfo> = LazyLock::new(|| ServerInfo::new("longhaul", "0.1.0"));
    ReplyTo { id, revision, server: &SERVER }
}

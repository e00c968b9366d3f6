//! The stateful era: its handshake, its messages in both directions, and tasks at 2025-11-25.

#[path = "../common/mod.rs"]
mod common;

mod batches;
mod examples;
mod handshake;
mod messages;
mod properties;
mod questions;
mod results;
mod schemas;
mod tasks;

use longhaul_wire::core2025::{Incoming, Notice, Operation, Read, Request, Revision, read};
use longhaul_wire::jsonrpc::{RequestId, RpcError};

const LATEST: Revision = Revision::V2025_11_25;
const EVERY: [Revision; 3] = Revision::ALL;

/// One message of a session at the newest revision.
fn incoming(message: &str) -> Incoming<'_> {
    match read(message.as_bytes(), LATEST) {
        Ok(Read::One(incoming)) => incoming,
        other => panic!("{other:?} from {message}"),
    }
}

fn asked(message: &str) -> Request<'_> {
    match incoming(message) {
        Incoming::Request(request) => request,
        other => panic!("no request: {other:?}"),
    }
}

fn told(message: &str) -> Notice<'_> {
    match incoming(message) {
        Incoming::Notice(notice) => notice,
        other => panic!("no notice: {other:?}"),
    }
}

/// A request with these parameters, at this revision: what it asks for, or why it is refused.
fn operation(message: &str, revision: Revision) -> Result<Operation<'_>, RpcError> {
    match read(message.as_bytes(), revision) {
        Ok(Read::One(Incoming::Request(request))) => Ok(request.operation),
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

fn id() -> RequestId {
    RequestId::from_text("a-1")
}

//! Bytes out, bytes back: a test that compares them sees every difference that a client could.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use serde_json::{Value, json};

use crate::kit::{Stage, token};
use crate::support::raw::Request;
use crate::support::stateful::{LATEST, Stateful};
use crate::support::{PATIENCE, VERSION};

/// Somebody who tries.
pub(super) struct Prober {
    pub(super) address: SocketAddr,
    pub(super) token: String,
    pub(super) session: String,
}

impl Prober {
    /// A session of somebody's, and the pieces it takes to speak in it.
    pub(super) async fn of(stage: &Stage, name: &str) -> (Self, Stateful) {
        let mut client = Stateful::new(stage.server.address);
        client.token = Some(token(name));
        let client = client.initialize(LATEST, json!({ "elicitation": {} })).await;
        let session = client.session.clone().expect("a session");
        (Self { address: stage.server.address, token: token(name), session }, client)
    }

    fn request(&self, request: Request) -> Request {
        request.with("Authorization", format!("Bearer {}", self.token)).with("Connection", "close")
    }

    /// A message of the stateless era.
    pub(super) fn stateless(&self, method: &str, mut params: Value) -> Request {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": VERSION,
            "io.modelcontextprotocol/clientCapabilities": {
                "elicitation": {}, "extensions": { "io.modelcontextprotocol/tasks": {} },
            },
        });
        self.request(Request::rpc(&json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })))
    }

    /// A message in the session.
    #[allow(clippy::needless_pass_by_value, reason = "what is sent is written where it is sent")]
    pub(super) fn stateful(&self, method: &str, params: Value) -> Request {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        self.in_session(Request::post(message.to_string()))
    }

    pub(super) fn in_session(&self, request: Request) -> Request {
        self.request(request).with("MCP-Protocol-Version", LATEST).with("Mcp-Session-Id", &self.session)
    }

    /// The whole answer as text, with `named` called `NAMED` and without its date. Of a stream, what comes first.
    pub(super) fn send(&self, request: &Request, named: &str) -> String {
        let mut socket = TcpStream::connect(self.address).expect("a server that listens");
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.write_all(&request.bytes()).expect("a server that reads");
        let mut bytes = Vec::new();
        let mut part = [0; 4096];
        loop {
            match socket.read(&mut part).expect("a server that answers") {
                0 => break,
                count => bytes.extend(&part[..count]),
            }
            if has_first_event(&bytes) {
                break;
            }
        }
        let text = String::from_utf8(bytes).expect("UTF-8");
        let lines = text.split_inclusive("\r\n").filter(|line| !line.to_ascii_lowercase().starts_with("date:"));
        lines.collect::<String>().replace(named, "NAMED")
    }
}

fn has_first_event(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    text.split_once("\r\n\r\n").is_some_and(|(head, body)| head.contains("text/event-stream") && body.contains("\n\n"))
}

/// Another name of the same length, which nothing has.
pub(super) fn unknown(name: &str) -> String {
    let place = name.len() / 2;
    let change = |(at, letter): (usize, char)| match letter {
        'A' | '0' if at >= place => '1',
        _ if at >= place => '0',
        _ => letter,
    };
    name.chars().enumerate().map(change).collect()
}

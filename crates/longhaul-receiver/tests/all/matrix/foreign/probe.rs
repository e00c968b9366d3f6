//! Requests as data, responses as text, so that a comparison shows every difference that a client could see.

use longhaul_testkit::raw::RawRequest;
use longhaul_testkit::{LATEST, SessionClient, TestEndpoint, stateless_message, tasks_and_forms};
use serde_json::{Value, json};

use crate::matrix::kit::SteeredServer;

/// A client that tries to reach what belongs to another owner.
pub(super) struct Prober {
    endpoint: TestEndpoint,
    pub(super) token: String,
    pub(super) session: String,
}

impl Prober {
    /// A session of this owner, with its token and headers.
    pub(super) async fn of(stage: &SteeredServer, name: &str) -> (Self, SessionClient) {
        let client = SessionClient::new(&stage.server).with_token(name);
        let client = client.initialize(LATEST, json!({ "elicitation": {} })).await;
        let session = client.session.clone().expect("a session");
        (Self { endpoint: (&stage.server).into(), token: name.to_owned(), session }, client)
    }

    fn request(&self, request: RawRequest) -> RawRequest {
        request.with("Authorization", format!("Bearer {}", self.token))
    }

    pub(super) fn stateless(&self, method: &str, params: Value) -> RawRequest {
        self.request(RawRequest::rpc(&stateless_message(&json!(1), method, params, &tasks_and_forms())))
    }

    #[allow(clippy::needless_pass_by_value, reason = "so that a test can write `json!` in the call")]
    pub(super) fn stateful(&self, method: &str, params: Value) -> RawRequest {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        self.in_session(RawRequest::post(message.to_string()))
    }

    pub(super) fn in_session(&self, request: RawRequest) -> RawRequest {
        self.request(request).with("MCP-Protocol-Version", LATEST).with("Mcp-Session-Id", &self.session)
    }

    /// The whole response as text, with `named` replaced by `NAMED`. For a stream, the first message.
    pub(super) async fn send(&self, request: &RawRequest, named: &str) -> String {
        let reply = request.begin(&self.endpoint).await;
        let head = format!("{} {:?}", reply.status, reply.headers);
        format!("{head} {}", reply.first().await).replace(named, "NAMED")
    }
}

/// An unused name of the same length.
pub(super) fn unknown(name: &str) -> String {
    let place = name.len() / 2;
    let change = |(at, letter): (usize, char)| match letter {
        'A' | '0' if at >= place => '1',
        _ if at >= place => '0',
        _ => letter,
    };
    name.chars().enumerate().map(change).collect()
}

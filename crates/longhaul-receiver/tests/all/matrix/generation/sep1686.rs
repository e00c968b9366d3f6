//! SEP-1686: a session, an ID of the client's own, a notification of the creation, and everything else by polling.

use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use longhaul_testkit::{ReplyMessages, SessionClient, in_time};
use serde_json::{Value, json};

use super::{GenerationClient, Pushes, ReceivedQuestion, outcome};
use crate::matrix::kit::SteeredServer;

const RELATED: &str = "modelcontextprotocol.io/related-task";

/// IDs are unique for an owner.
static CREATED: AtomicU64 = AtomicU64::new(0);

pub(super) struct ProposalSpeaker {
    session: SessionClient,
    /// The streams of the calls, which are answered when their tasks have ended.
    calls: Vec<ReplyMessages>,
    listens: Option<ReplyMessages>,
}

impl ProposalSpeaker {
    pub(super) async fn open(stage: &SteeredServer, name: &str) -> Self {
        let client = SessionClient::new(&stage.server).with_token(name);
        // A revision that has no tasks of its own.
        let session = client.initialize("2025-06-18", json!({ "elicitation": {} })).await;
        Self { session, calls: Vec::new(), listens: None }
    }
}

#[async_trait]
impl GenerationClient for ProposalSpeaker {
    async fn create(&mut self, tool: &str, arguments: Value) -> String {
        let id = format!("chosen-{}", CREATED.fetch_add(1, Ordering::Relaxed));
        let meta = json!({ "modelcontextprotocol.io/task": { "taskId": id } });
        let mut call =
            self.session.send("tools/call", json!({ "name": tool, "arguments": arguments, "_meta": meta })).await;
        let created = call.next_of("notifications/tasks/created").await;
        assert_eq!(created["params"], json!({ "_meta": { RELATED: { "taskId": id } } }));
        self.calls.push(call);
        id
    }

    async fn about(&mut self, method: &str, id: &str) -> Value {
        let params = json!({ "taskId": id, "_meta": { RELATED: { "taskId": id } } });
        outcome(self.session.response(method, params).await)
    }

    async fn list(&mut self, id: &str) -> Value {
        let mut page = outcome(self.session.response("tasks/list", json!({})).await);
        page["result"]["tasks"].as_array_mut().expect("tasks").retain(|task| task["taskId"] == id);
        page
    }

    async fn follow(&mut self, id: &str) -> Box<dyn Pushes> {
        let polls = Self { session: self.session.clone(), calls: Vec::new(), listens: None };
        Box::new(Polls { client: polls, id: id.to_owned() })
    }

    async fn asked(&mut self, id: &str) -> ReceivedQuestion {
        if self.listens.is_none() {
            // At this revision a stream has no first event.
            self.listens = Some(self.session.listen(None).await);
        }
        for _ in 0..2 {
            self.get(id).await;
        }
        let question = self.listens.as_mut().unwrap().next_of("elicitation/create").await;
        let related = question["params"]["_meta"][RELATED].clone();
        assert_eq!(related["taskId"], id);
        let message = question["params"]["message"].as_str().unwrap().to_owned();
        ReceivedQuestion { task: id.to_owned(), name: question["id"].clone(), message, related }
    }

    async fn answer(&mut self, asked: &ReceivedQuestion, with: Value) {
        self.session.respond(&json!({ "id": asked.name }), with).await;
    }

    async fn taken_back(&mut self, asked: &ReceivedQuestion) {
        let stream = self.listens.as_mut().expect("it was asked there");
        let told = in_time("a question that is taken back", stream.next_of("notifications/cancelled")).await;
        assert_eq!(told["params"]["requestId"], asked.name);
    }

    async fn announced(&mut self, children: usize) -> Option<Vec<Value>> {
        let call = self.calls.last_mut().expect("a call");
        let mut announced = Vec::new();
        for _ in 0..children {
            let mut created = call.next_of("notifications/tasks/created").await;
            announced.push(created["params"]["_meta"][RELATED].take());
        }
        Some(announced)
    }
}

/// There are no messages about changes, so the client polls.
struct Polls {
    client: ProposalSpeaker,
    id: String,
}

#[async_trait]
impl Pushes for Polls {
    async fn next(&mut self) -> Value {
        tokio::task::yield_now().await;
        self.client.get(&self.id).await["result"].take()
    }
}

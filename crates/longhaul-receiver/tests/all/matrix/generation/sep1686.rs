//! SEP-1686: a session, an ID of the client's own, a notification of the creation, and everything else by polling.

use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use longhaul_testkit::ReplyMessages;
use serde_json::{Value, json};

use super::session::TaskSession;
use super::{GenerationClient, Pushes, ReceivedQuestion};
use crate::matrix::kit::SteeredServer;

const RELATED: &str = "modelcontextprotocol.io/related-task";

/// IDs are unique for an owner.
static CREATED: AtomicU64 = AtomicU64::new(0);

pub(super) struct ProposalSpeaker {
    session: TaskSession,
    /// The streams of the calls, which are answered when their tasks have ended.
    calls: Vec<ReplyMessages>,
}

impl ProposalSpeaker {
    pub(super) async fn open(stage: &SteeredServer, name: &str) -> Self {
        // A revision that has no tasks of its own.
        Self { session: TaskSession::open(stage, name, "2025-06-18").await, calls: Vec::new() }
    }
}

#[async_trait]
impl GenerationClient for ProposalSpeaker {
    async fn create(&mut self, tool: &str, arguments: Value) -> String {
        let id = format!("chosen-{}", CREATED.fetch_add(1, Ordering::Relaxed));
        let meta = json!({ "modelcontextprotocol.io/task": { "taskId": id } });
        let mut call = self
            .session
            .client
            .send("tools/call", json!({ "name": tool, "arguments": arguments, "_meta": meta }))
            .await;
        let created = call.next_of("notifications/tasks/created").await;
        assert_eq!(created["params"], json!({ "_meta": { RELATED: { "taskId": id } } }));
        self.calls.push(call);
        id
    }

    async fn about(&mut self, method: &str, id: &str) -> Value {
        let params = json!({ "taskId": id, "_meta": { RELATED: { "taskId": id } } });
        self.session.response(method, params).await
    }

    async fn list(&mut self, id: &str) -> Value {
        self.session.list(id).await
    }

    async fn follow(&mut self, id: &str) -> Box<dyn Pushes> {
        let polls = Self { session: self.session.without_stream(), calls: Vec::new() };
        Box::new(Polls { client: polls, id: id.to_owned() })
    }

    async fn asked(&mut self, id: &str) -> ReceivedQuestion {
        self.session.listen_for_questions().await;
        for _ in 0..2 {
            self.get(id).await;
        }
        let (params, question) = self.session.next_question(id).await;
        let related = params["_meta"][RELATED].clone();
        assert_eq!(related["taskId"], id);
        ReceivedQuestion { related, ..question }
    }

    async fn answer(&mut self, asked: &ReceivedQuestion, with: Value) {
        self.session.answer(asked, with).await;
    }

    async fn taken_back(&mut self, asked: &ReceivedQuestion) {
        self.session.taken_back(asked).await;
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

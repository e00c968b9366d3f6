//! 2025-11-25: a session, `params.task`, `tasks/result` that waits, status and questions on a stream.

use async_trait::async_trait;
use longhaul_testkit::{LATEST, ReplyMessages, SessionClient, in_time};
use serde_json::{Value, json};

use super::{GenerationClient, Pushes, ReceivedQuestion, outcome};
use crate::matrix::kit::SteeredServer;

pub(super) struct SessionSpeaker {
    session: SessionClient,
    listens: Option<ReplyMessages>,
}

impl SessionSpeaker {
    pub(super) async fn open(stage: &SteeredServer, name: &str) -> Self {
        let client = SessionClient::new(&stage.server).with_token(name);
        Self { session: client.initialize(LATEST, json!({ "elicitation": {} })).await, listens: None }
    }
}

#[async_trait]
impl GenerationClient for SessionSpeaker {
    async fn create(&mut self, tool: &str, arguments: Value) -> String {
        let params = json!({ "name": tool, "arguments": arguments, "task": {} });
        let made = self.session.result("tools/call", params).await;
        assert_eq!(made.as_object().unwrap().keys().collect::<Vec<_>>(), ["task"], "{made}");
        assert_eq!(made["task"]["status"], "working");
        made["task"]["taskId"].as_str().expect("an ID").to_owned()
    }

    async fn about(&mut self, method: &str, id: &str) -> Value {
        outcome(self.session.response(method, json!({ "taskId": id })).await)
    }

    async fn list(&mut self, id: &str) -> Value {
        let mut page = outcome(self.session.response("tasks/list", json!({})).await);
        page["result"]["tasks"].as_array_mut().expect("tasks").retain(|task| task["taskId"] == id);
        page
    }

    /// A session hears of what it made or looked at.
    async fn follow(&mut self, id: &str) -> Box<dyn Pushes> {
        let stream = self.session.listening().await;
        self.get(id).await;
        Box::new(Statuses { stream, id: id.to_owned() })
    }

    async fn asked(&mut self, id: &str) -> ReceivedQuestion {
        if self.listens.is_none() {
            self.listens = Some(self.session.listening().await);
        }
        // After the second poll the session follows the task, so questions arrive at once.
        for _ in 0..2 {
            self.get(id).await;
        }
        let question = self.listens.as_mut().unwrap().next_of("elicitation/create").await;
        let related = question["params"]["_meta"]["io.modelcontextprotocol/related-task"].clone();
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
}

struct Statuses {
    stream: ReplyMessages,
    id: String,
}

#[async_trait]
impl Pushes for Statuses {
    async fn next(&mut self) -> Value {
        loop {
            let mut told = self.stream.next_of("notifications/tasks/status").await;
            if told["params"]["taskId"] == self.id {
                return told["params"].take();
            }
        }
    }
}

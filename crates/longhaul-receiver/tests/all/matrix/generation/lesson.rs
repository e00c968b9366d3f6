//! The dialect of the lesson: a session, `_meta.task`, `tasks/status`, `notifications/tasks/updated`.

use async_trait::async_trait;
use longhaul_testkit::{LATEST, ReplyMessages, SessionClient, in_time};
use serde_json::{Value, json};

use super::{GenerationClient, Pushes, ReceivedQuestion, outcome};
use crate::matrix::kit::SteeredServer;

pub(super) struct LessonSpeaker {
    session: SessionClient,
    listens: Option<ReplyMessages>,
}

impl LessonSpeaker {
    pub(super) async fn open(stage: &SteeredServer, name: &str) -> Self {
        let client = SessionClient::new(&stage.server).with_token(name);
        let session = client.initialize(LATEST, json!({ "elicitation": {} })).await;
        // What it says first is how `tasks/list` and `tasks/cancel` are answered.
        session.error("tasks/status", json!({ "taskId": "none" })).await;
        Self { session, listens: None }
    }
}

#[async_trait]
impl GenerationClient for LessonSpeaker {
    async fn create(&mut self, tool: &str, arguments: Value) -> String {
        let params = json!({ "name": tool, "arguments": arguments, "_meta": { "task": { "required": true } } });
        let made = self.session.result("tools/call", params).await;
        assert_eq!(made["_meta"]["task"]["state"], "working", "{made}");
        made["_meta"]["task"]["id"].as_str().expect("an ID").to_owned()
    }

    async fn about(&mut self, method: &str, id: &str) -> Value {
        outcome(self.session.response(method, json!({ "taskId": id })).await)
    }

    async fn get(&mut self, id: &str) -> Value {
        self.about("tasks/status", id).await
    }

    /// A request for the result does not say which generation it speaks, so at 2025-11-25 it is answered as that revision
    /// does: with the related task.
    async fn result(&mut self, id: &str) -> Value {
        self.about("tasks/result", id).await
    }

    async fn list(&mut self, id: &str) -> Value {
        let mut page = outcome(self.session.response("tasks/list", json!({})).await);
        page["result"]["tasks"].as_array_mut().expect("tasks").retain(|task| task["taskId"] == id);
        page
    }

    async fn follow(&mut self, id: &str) -> Box<dyn Pushes> {
        let stream = self.session.listening().await;
        self.get(id).await;
        Box::new(Updates { stream, id: id.to_owned() })
    }

    async fn asked(&mut self, id: &str) -> ReceivedQuestion {
        if self.listens.is_none() {
            self.listens = Some(self.session.listening().await);
        }
        for _ in 0..2 {
            self.get(id).await;
        }
        let question = self.listens.as_mut().unwrap().next_of("elicitation/create").await;
        assert_eq!(question["params"].get("_meta"), None, "this generation relates no messages to tasks");
        let message = question["params"]["message"].as_str().unwrap().to_owned();
        ReceivedQuestion { task: id.to_owned(), name: question["id"].clone(), message, related: Value::Null }
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

struct Updates {
    stream: ReplyMessages,
    id: String,
}

#[async_trait]
impl Pushes for Updates {
    async fn next(&mut self) -> Value {
        loop {
            let mut told = self.stream.next_of("notifications/tasks/updated").await;
            if told["params"]["taskId"] == self.id {
                return told["params"].take();
            }
        }
    }
}

//! The dialect of the lesson: a session, `_meta.task`, `tasks/status`, `notifications/tasks/updated`.

use async_trait::async_trait;
use longhaul_testkit::LATEST;
use serde_json::{Value, json};

use super::session::{TaskNotifications, TaskSession};
use super::{GenerationClient, Pushes, ReceivedQuestion};
use crate::matrix::kit::SteeredServer;

pub(super) struct LessonSpeaker(TaskSession);

impl LessonSpeaker {
    pub(super) async fn open(stage: &SteeredServer, name: &str) -> Self {
        let session = TaskSession::open(stage, name, LATEST).await;
        // What it says first is how `tasks/list` and `tasks/cancel` are answered.
        session.client.error("tasks/status", json!({ "taskId": "none" })).await;
        Self(session)
    }
}

#[async_trait]
impl GenerationClient for LessonSpeaker {
    async fn create(&mut self, tool: &str, arguments: Value) -> String {
        let params = json!({ "name": tool, "arguments": arguments, "_meta": { "task": { "required": true } } });
        let made = self.0.client.result("tools/call", params).await;
        assert_eq!(made["_meta"]["task"]["state"], "working", "{made}");
        made["_meta"]["task"]["id"].as_str().expect("an ID").to_owned()
    }

    async fn about(&mut self, method: &str, id: &str) -> Value {
        self.0.response(method, json!({ "taskId": id })).await
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
        self.0.list(id).await
    }

    async fn follow(&mut self, id: &str) -> Box<dyn Pushes> {
        let stream = self.0.client.listening().await;
        self.get(id).await;
        Box::new(TaskNotifications { stream, method: "notifications/tasks/updated", id: id.to_owned() })
    }

    async fn asked(&mut self, id: &str) -> ReceivedQuestion {
        self.0.listen_for_questions().await;
        for _ in 0..2 {
            self.get(id).await;
        }
        let (params, question) = self.0.next_question(id).await;
        assert_eq!(params.get("_meta"), None, "this generation relates no messages to tasks");
        question
    }

    async fn answer(&mut self, asked: &ReceivedQuestion, with: Value) {
        self.0.answer(asked, with).await;
    }

    async fn taken_back(&mut self, asked: &ReceivedQuestion) {
        self.0.taken_back(asked).await;
    }
}

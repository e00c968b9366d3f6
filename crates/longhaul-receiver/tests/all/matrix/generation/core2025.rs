//! 2025-11-25: a session, `params.task`, `tasks/result` that waits, status and questions on a stream.

use async_trait::async_trait;
use longhaul_testkit::LATEST;
use serde_json::{Value, json};

use super::session::{TaskNotifications, TaskSession};
use super::{GenerationClient, Pushes, ReceivedQuestion};
use crate::matrix::kit::SteeredServer;

pub(super) struct SessionSpeaker(TaskSession);

impl SessionSpeaker {
    pub(super) async fn open(stage: &SteeredServer, name: &str) -> Self {
        Self(TaskSession::open(stage, name, LATEST).await)
    }
}

#[async_trait]
impl GenerationClient for SessionSpeaker {
    async fn create(&mut self, tool: &str, arguments: Value) -> String {
        let params = json!({ "name": tool, "arguments": arguments, "task": {} });
        let made = self.0.client.result("tools/call", params).await;
        assert_eq!(made.as_object().unwrap().keys().collect::<Vec<_>>(), ["task"], "{made}");
        assert_eq!(made["task"]["status"], "working");
        made["task"]["taskId"].as_str().expect("an ID").to_owned()
    }

    async fn about(&mut self, method: &str, id: &str) -> Value {
        self.0.response(method, json!({ "taskId": id })).await
    }

    async fn list(&mut self, id: &str) -> Value {
        self.0.list(id).await
    }

    /// A session hears of what it made or looked at.
    async fn follow(&mut self, id: &str) -> Box<dyn Pushes> {
        let stream = self.0.client.listening().await;
        self.get(id).await;
        Box::new(TaskNotifications { stream, method: "notifications/tasks/status", id: id.to_owned() })
    }

    async fn asked(&mut self, id: &str) -> ReceivedQuestion {
        self.0.listen_for_questions().await;
        // After the second poll the session follows the task, so questions arrive at once.
        for _ in 0..2 {
            self.get(id).await;
        }
        let (params, question) = self.0.next_question(id).await;
        let related = params["_meta"]["io.modelcontextprotocol/related-task"].clone();
        assert_eq!(related["taskId"], id);
        ReceivedQuestion { related, ..question }
    }

    async fn answer(&mut self, asked: &ReceivedQuestion, with: Value) {
        self.0.answer(asked, with).await;
    }

    async fn taken_back(&mut self, asked: &ReceivedQuestion) {
        self.0.taken_back(asked).await;
    }
}

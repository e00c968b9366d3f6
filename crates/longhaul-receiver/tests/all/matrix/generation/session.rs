//! What the clients of the generations with sessions have in common.

use async_trait::async_trait;
use longhaul_testkit::{LATEST, ReplyMessages, SessionClient, in_time};
use serde_json::{Value, json};

use super::{Pushes, ReceivedQuestion, outcome};
use crate::matrix::kit::SteeredServer;

/// A session of a client that can answer questions.
pub(super) struct TaskSession {
    pub(super) client: SessionClient,
    /// The stream on which questions arrive, once the client has opened it.
    questions: Option<ReplyMessages>,
}

impl TaskSession {
    pub(super) async fn open(stage: &SteeredServer, name: &str, revision: &str) -> Self {
        let client = SessionClient::new(&stage.server).with_token(name);
        Self { client: client.initialize(revision, json!({ "elicitation": {} })).await, questions: None }
    }

    /// The same session, without its stream.
    pub(super) fn without_stream(&self) -> Self {
        Self { client: self.client.clone(), questions: None }
    }

    pub(super) async fn response(&self, method: &str, params: Value) -> Value {
        outcome(self.client.response(method, params).await)
    }

    pub(super) async fn list(&self, id: &str) -> Value {
        let mut page = self.response("tasks/list", json!({})).await;
        page["result"]["tasks"].as_array_mut().expect("tasks").retain(|task| task["taskId"] == id);
        page
    }

    /// Opens the stream for questions, unless it is open.
    pub(super) async fn listen_for_questions(&mut self) {
        if self.questions.is_none() {
            // A stream of an earlier revision has no first event.
            let is_latest = self.client.revision == LATEST;
            self.questions =
                Some(if is_latest { self.client.listening().await } else { self.client.listen(None).await });
        }
    }

    /// The next question on the stream, as the parameters of its request and as a question of this task.
    pub(super) async fn next_question(&mut self, task: &str) -> (Value, ReceivedQuestion) {
        let mut question = self.questions.as_mut().expect("a stream").next_of("elicitation/create").await;
        let message = question["params"]["message"].as_str().unwrap().to_owned();
        let received =
            ReceivedQuestion { task: task.to_owned(), name: question["id"].clone(), message, related: Value::Null };
        (question["params"].take(), received)
    }

    pub(super) async fn answer(&self, asked: &ReceivedQuestion, with: Value) {
        self.client.respond(&json!({ "id": asked.name }), with).await;
    }

    pub(super) async fn taken_back(&mut self, asked: &ReceivedQuestion) {
        let stream = self.questions.as_mut().expect("it was asked there");
        let told = in_time("a question that is taken back", stream.next_of("notifications/cancelled")).await;
        assert_eq!(told["params"]["requestId"], asked.name);
    }
}

/// The notifications of one method about one task.
pub(super) struct TaskNotifications {
    pub(super) stream: ReplyMessages,
    pub(super) method: &'static str,
    pub(super) id: String,
}

#[async_trait]
impl Pushes for TaskNotifications {
    async fn next(&mut self) -> Value {
        loop {
            let mut told = self.stream.next_of(self.method).await;
            if told["params"]["taskId"] == self.id {
                return told["params"].take();
            }
        }
    }
}

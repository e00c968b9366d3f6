//! 2026-07-28 with the tasks extension: no session, everything in `tasks/get`, `subscriptions/listen`.

use async_trait::async_trait;
use longhaul_testkit::{GetTaskResult, ReplyMessages, StatelessClient, in_time};
use serde_json::{Value, json};

use super::{GenerationClient, Pushes, ReceivedQuestion, outcome};
use crate::matrix::kit::SteeredServer;

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

pub(super) struct StatelessSpeaker(StatelessClient);

impl StatelessSpeaker {
    pub(super) async fn open(stage: &SteeredServer, name: &str) -> Self {
        Self(stage.server.client().await.with_token(name))
    }

    /// The response without the description of the server.
    async fn response(&mut self, method: &str, params: Value) -> Value {
        let mut response = outcome(self.0.send(method, params).await.json());
        if let Some(result) = response["result"].as_object_mut() {
            let meta = result.remove("_meta").expect("every result names its server");
            assert_eq!(meta["io.modelcontextprotocol/serverInfo"]["name"], "matrix");
        } else {
            response.as_object_mut().unwrap().remove("result");
        }
        response
    }
}

#[async_trait]
impl GenerationClient for StatelessSpeaker {
    async fn create(&mut self, tool: &str, arguments: Value) -> String {
        let made = self.0.call(tool, arguments).await.expect("a task");
        assert_eq!((&made["resultType"], &made["status"]), (&json!("task"), &json!("working")), "{made}");
        for absent in ["result", "error", "inputRequests", "task"] {
            assert!(made.get(absent).is_none(), "{made}");
        }
        made["taskId"].as_str().expect("an ID").to_owned()
    }

    async fn about(&mut self, method: &str, id: &str) -> Value {
        self.response(method, json!({ "taskId": id })).await
    }

    async fn list(&mut self, _: &str) -> Value {
        self.response("tasks/list", json!({})).await
    }

    async fn follow(&mut self, id: &str) -> Box<dyn Pushes> {
        let mut events = self.0.listen(&[id]).await;
        let first = events.next().await.expect("an acknowledgement");
        assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
        assert_eq!(first["params"]["notifications"], json!({ "taskIds": [id] }));
        Box::new(Subscription(events))
    }

    async fn asked(&mut self, id: &str) -> ReceivedQuestion {
        let task = self.0.get_until(id, |task| !task.questions().is_empty()).await.expect("an answer");
        let open = task.value["inputRequests"].as_object().unwrap();
        let (key, question) = open.iter().next().unwrap();
        assert_eq!((open.len(), &question["method"]), (1, &json!("elicitation/create")));
        let message = question["params"]["message"].as_str().unwrap().to_owned();
        ReceivedQuestion { task: id.to_owned(), name: json!(key), message, related: Value::Null }
    }

    async fn answer(&mut self, asked: &ReceivedQuestion, with: Value) {
        let key = asked.name.as_str().expect("a key");
        self.0.update(&asked.task, json!({ key: with })).await.expect("an acknowledgement");
    }

    async fn taken_back(&mut self, asked: &ReceivedQuestion) {
        let is_gone = |task: &GetTaskResult| task.questions().is_empty();
        in_time("a question that is gone", self.0.get_until(&asked.task, is_gone)).await.expect("an answer");
    }
}

struct Subscription(ReplyMessages);

#[async_trait]
impl Pushes for Subscription {
    async fn next(&mut self) -> Value {
        let mut told = self.0.next().await.expect("a push");
        assert_eq!(told["method"], "notifications/tasks", "{told}");
        let meta = told["params"].as_object_mut().unwrap().remove("_meta").expect("a subscription ID");
        assert!(meta.get(SUBSCRIPTION).is_some());
        told["params"].take()
    }
}

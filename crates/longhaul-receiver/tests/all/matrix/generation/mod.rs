//! The generations behind one trait. The methods return the text of the wire: a response with its `result` or its
//! `error`, or the parameters of a notification.

mod core2025;
mod ext2026;
mod lesson;
mod sep1686;
mod session;

use async_trait::async_trait;
use serde_json::Value;

use crate::matrix::kit::SteeredServer;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TestGeneration {
    Sep1686,
    Core2025,
    Ext2026,
    Lesson,
}

pub(crate) const GENERATIONS: &[TestGeneration] =
    &[TestGeneration::Core2025, TestGeneration::Ext2026, TestGeneration::Sep1686, TestGeneration::Lesson];

impl TestGeneration {
    pub(crate) async fn client(self, stage: &SteeredServer, name: &str) -> Box<dyn GenerationClient> {
        match self {
            Self::Sep1686 => Box::new(sep1686::ProposalSpeaker::open(stage, name).await),
            Self::Lesson => Box::new(lesson::LessonSpeaker::open(stage, name).await),
            Self::Core2025 => Box::new(core2025::SessionSpeaker::open(stage, name).await),
            Self::Ext2026 => Box::new(ext2026::StatelessSpeaker::open(stage, name).await),
        }
    }
}

#[async_trait]
pub(crate) trait GenerationClient: Send {
    async fn create(&mut self, tool: &str, arguments: Value) -> String;

    /// The response to a request that names this task.
    async fn about(&mut self, method: &str, id: &str) -> Value;

    async fn get(&mut self, id: &str) -> Value {
        self.about("tasks/get", id).await
    }

    /// Waits for the result if this generation waits.
    async fn result(&mut self, id: &str) -> Value {
        self.about("tasks/result", id).await
    }

    async fn cancel(&mut self, id: &str) -> Value {
        self.about("tasks/cancel", id).await
    }

    /// Where it is listed: the response, with nothing in `tasks` but this one.
    async fn list(&mut self, id: &str) -> Value;

    /// Subscribes to messages about the task.
    async fn follow(&mut self, id: &str) -> Box<dyn Pushes>;

    /// Waits for a question of this task.
    async fn asked(&mut self, id: &str) -> ReceivedQuestion;

    async fn answer(&mut self, asked: &ReceivedQuestion, with: Value);

    /// Waits until the question is closed.
    async fn taken_back(&mut self, asked: &ReceivedQuestion);

    /// Waits for the announcement of so many children of the task that this client has created last; `None` in a generation
    /// that announces nothing.
    async fn announced(&mut self, _children: usize) -> Option<Vec<Value>> {
        None
    }
}

/// The status of a task, under whatever name.
pub(crate) fn status(task: &Value) -> &str {
    task["status"].as_str().or(task["state"].as_str()).unwrap_or_default()
}

#[async_trait]
pub(crate) trait Pushes: Send {
    async fn next(&mut self) -> Value;
}

pub(crate) struct ReceivedQuestion {
    pub(crate) task: String,
    /// The key, or the ID of the request.
    name: Value,
    pub(crate) message: String,
    /// How it names its task, in the generations where it does.
    pub(crate) related: Value,
}

/// The part of a response that matters.
fn outcome(mut response: Value) -> Value {
    let members = response.as_object_mut().expect("a response");
    assert_eq!(members.remove("jsonrpc"), Some("2.0".into()));
    members.remove("id").expect("the ID of the request");
    response
}

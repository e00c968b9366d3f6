//! The generations behind one trait. The methods return the text of the wire: a response with its `result` or its
//! `error`, or the parameters of a notification.

mod core2025;
mod ext2026;

use async_trait::async_trait;
use serde_json::Value;

use crate::matrix::kit::SteeredServer;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TestGeneration {
    Core2025,
    Ext2026,
}

pub(crate) const GENERATIONS: &[TestGeneration] = &[TestGeneration::Core2025, TestGeneration::Ext2026];

impl TestGeneration {
    /// A client of this generation.
    pub(crate) async fn client(self, stage: &SteeredServer, name: &str) -> Box<dyn GenerationClient> {
        match self {
            Self::Core2025 => Box::new(core2025::SessionSpeaker::open(stage, name).await),
            Self::Ext2026 => Box::new(ext2026::StatelessSpeaker::open(stage, name).await),
        }
    }
}

/// A client of one generation.
#[async_trait]
pub(crate) trait GenerationClient: Send {
    /// Creates a task, and returns its ID.
    async fn create(&mut self, tool: &str, arguments: Value) -> String;

    /// The response to `tasks/get`.
    async fn get(&mut self, id: &str) -> Value;

    /// The response to `tasks/result`, or what the generation has in its place.
    async fn result(&mut self, id: &str) -> Value;

    /// The response to `tasks/list`, with only this task in `tasks`.
    async fn list(&mut self, id: &str) -> Value;

    /// The response to `tasks/cancel`.
    async fn cancel(&mut self, id: &str) -> Value;

    /// Subscribes to messages about the task.
    async fn follow(&mut self, id: &str) -> Box<dyn Pushes>;

    /// Waits for a question of this task.
    async fn asked(&mut self, id: &str) -> ReceivedQuestion;

    async fn answer(&mut self, asked: &ReceivedQuestion, with: Value);

    /// Waits until the question is closed.
    async fn taken_back(&mut self, asked: &ReceivedQuestion);
}

/// Messages about one task.
#[async_trait]
pub(crate) trait Pushes: Send {
    /// The next message about the task.
    async fn next(&mut self) -> Value;
}

/// A question that a client has received.
pub(crate) struct ReceivedQuestion {
    pub(crate) task: String,
    /// The key, or the ID of the request.
    name: Value,
    pub(crate) message: String,
}

/// The part of a response that matters.
fn outcome(mut response: Value) -> Value {
    let members = response.as_object_mut().expect("a response");
    assert_eq!(members.remove("jsonrpc"), Some("2.0".into()));
    members.remove("id").expect("the ID of the request");
    response
}

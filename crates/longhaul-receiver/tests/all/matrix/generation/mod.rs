//! The generations, each behind the same few verbs. What comes back is what the wire said: a response with its `result`
//! or its `error`, or the parameters of a notification.

mod core2025;
mod ext2026;

use async_trait::async_trait;
use serde_json::Value;

use crate::matrix::kit::SteeredServer;

/// A generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TestGeneration {
    Core2025,
    Ext2026,
}

/// Every generation there is.
pub(crate) const GENERATIONS: &[TestGeneration] = &[TestGeneration::Core2025, TestGeneration::Ext2026];

impl TestGeneration {
    /// Somebody who speaks it.
    pub(crate) async fn client(self, stage: &SteeredServer, name: &str) -> Box<dyn GenerationClient> {
        match self {
            Self::Core2025 => Box::new(core2025::SessionSpeaker::open(stage, name).await),
            Self::Ext2026 => Box::new(ext2026::StatelessSpeaker::open(stage, name).await),
        }
    }
}

/// Somebody who speaks one generation.
#[async_trait]
pub(crate) trait GenerationClient: Send {
    /// Makes a task; says its ID.
    async fn create(&mut self, tool: &str, arguments: Value) -> String;

    /// The response to the poll.
    async fn get(&mut self, id: &str) -> Value;

    /// The response to the question for its result; waits if this generation waits.
    async fn result(&mut self, id: &str) -> Value;

    /// Where it is listed: the response, with nothing in `tasks` but this one.
    async fn list(&mut self, id: &str) -> Value;

    /// The response to the wish that it stop.
    async fn cancel(&mut self, id: &str) -> Value;

    /// Begins to listen, in this generation's own way.
    async fn follow(&mut self, id: &str) -> Box<dyn Pushes>;

    /// Waits until it is asked something by this task, in whatever way it is asked.
    async fn asked(&mut self, id: &str) -> ReceivedQuestion;

    /// Answers.
    async fn answer(&mut self, asked: &ReceivedQuestion, with: Value);

    /// Waits until it has been told, or sees, that there is nothing to answer any more.
    async fn taken_back(&mut self, asked: &ReceivedQuestion);
}

/// What is pushed about one task.
#[async_trait]
pub(crate) trait Pushes: Send {
    /// The next that is said of the task.
    async fn next(&mut self) -> Value;
}

/// A question as its client knows it.
pub(crate) struct ReceivedQuestion {
    pub(crate) task: String,
    /// The key, or the ID of the request.
    name: Value,
    /// What is asked.
    pub(crate) message: String,
}

/// The part of a response that matters.
fn outcome(mut response: Value) -> Value {
    let members = response.as_object_mut().expect("a response");
    assert_eq!(members.remove("jsonrpc"), Some("2.0".into()));
    members.remove("id").expect("the ID of the request");
    response
}

//! The generations, each behind the same few verbs. What comes back is what the wire said: a response with its `result`
//! or its `error`, or the parameters of a notification.

mod core2025;
mod ext2026;

use async_trait::async_trait;
use serde_json::Value;

use crate::matrix::kit::Stage;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Generation {
    Core2025,
    Ext2026,
}

pub(crate) const GENERATIONS: &[Generation] = &[Generation::Core2025, Generation::Ext2026];

impl Generation {
    pub(crate) async fn client(self, stage: &Stage, name: &str) -> Box<dyn Client> {
        match self {
            Self::Core2025 => Box::new(core2025::Speaker::open(stage, name).await),
            Self::Ext2026 => Box::new(ext2026::Speaker::open(stage, name).await),
        }
    }
}

#[async_trait]
pub(crate) trait Client: Send {
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

    /// Begins to listen, in this generation's own way.
    async fn follow(&mut self, id: &str) -> Box<dyn Pushes>;

    /// Waits until it is asked something by this task, in whatever way it is asked.
    async fn asked(&mut self, id: &str) -> Asked;

    async fn answer(&mut self, asked: &Asked, with: Value);

    /// Waits until it has been told, or sees, that there is nothing to answer any more.
    async fn taken_back(&mut self, asked: &Asked);
}

#[async_trait]
pub(crate) trait Pushes: Send {
    async fn next(&mut self) -> Value;
}

pub(crate) struct Asked {
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

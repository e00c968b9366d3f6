//! How a handler fails.

use std::any::Any;
use std::error::Error;
use std::fmt::Write as _;

use longhaul_engine::Stop;
use longhaul_task::{Fault, Outcome};
use longhaul_wire::content::ToolResult;

/// Why a handler did not succeed. Any error becomes one with `?`: a tool error whose text the model can read.
#[derive(Debug)]
pub enum Failure {
    /// The tool did its work and reports an error: an ordinary result with `isError`.
    Tool(String),
    /// The request is answered with a JSON-RPC error.
    Protocol(Fault),
    /// The context said so: the task was cancelled, or cannot go on.
    Stop(Stop),
}

impl Failure {
    /// A tool error with this text.
    pub fn tool(message: impl Into<String>) -> Self {
        Self::Tool(message.into())
    }

    /// A JSON-RPC error.
    pub fn protocol(code: i64, message: &str) -> Self {
        Self::Protocol(Fault { code: Some(code), message: message.into(), data: None })
    }

    pub(crate) fn into_end(self) -> Result<Outcome, Stop> {
        match self {
            Self::Tool(message) => {
                let body = ToolResult::error(&message).into_json();
                Ok(Outcome::Answer { body, is_error: true })
            }
            Self::Protocol(fault) => Ok(Outcome::Refusal(fault)),
            Self::Stop(stop) => Err(stop),
        }
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        if let Some(stop) = (&error as &dyn Any).downcast_ref::<Stop>() {
            return Self::Stop(stop.clone());
        }
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            // Writing to a string does not fail.
            let _ = write!(text, ": {error}");
            cause = error.source();
        }
        Self::Tool(text)
    }
}

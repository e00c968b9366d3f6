//! How a handler fails.

use std::any::Any;
use std::error::Error;
use std::iter;

use longhaul_task::TaskError;

use crate::CtxError;

/// Why a handler did not succeed. Every error becomes a `Failure` with `?`:
///
/// - any [`std::error::Error`], any `anyhow::Error`, a boxed error and a string: a tool error, whose text is the error's
///   message with its causes, for the model to read;
/// - a [`CtxError`], and any error that a `CtxError` caused: that `CtxError`. A handler that wants to answer with something else
///   looks at the `CtxError` before it uses `?`.
///
/// ```
/// use anyhow::Context as _;
/// use longhaul_engine::{Ctx, Failure};
///
/// async fn count_words(mut ctx: Ctx) -> Result<String, Failure> {
///     let text = std::fs::read_to_string("book.txt").context("there is no book")?;
///     ctx.progress(1, 2, "read").await?;
///     if text.is_empty() {
///         return Err(Failure::tool("the book is empty"));
///     }
///     Ok(text.split_whitespace().count().to_string())
/// }
/// ```
// It does not implement `Error` itself: then `From` of every error and `From` of a `Failure` would overlap, which Rust
// refuses.
#[derive(Debug)]
#[non_exhaustive]
pub enum Failure {
    /// The tool did its work and reports an error: an ordinary result with `isError`.
    Tool(String),
    /// Like [`Tool`](Self::Tool), and another try would fail in the same way.
    Permanent(String),
    /// The request is answered with a JSON-RPC error.
    Protocol(TaskError),
    /// The context ended the work: the task was cancelled, or cannot go on.
    Stop(CtxError),
}

impl Failure {
    /// A tool error with this text.
    pub fn tool(message: impl Into<String>) -> Self {
        Self::Tool(message.into())
    }

    /// A JSON-RPC error.
    pub fn protocol(code: i64, message: &str) -> Self {
        Self::Protocol(TaskError { code: Some(code), message: message.into(), data: None })
    }

    /// A tool error that another try would not change. A step whose work returns it is not tried again, and neither is a
    /// handler that returns it.
    pub fn permanent(message: impl Into<String>) -> Self {
        Self::Permanent(message.into())
    }

    /// What went wrong, for people and models.
    pub fn message(&self) -> String {
        match self {
            Self::Tool(message) | Self::Permanent(message) => message.clone(),
            Self::Protocol(error) => error.message.to_string(),
            Self::Stop(stop) => stop.to_string(),
        }
    }
}

/// Converts an error of the context. The failure of a step becomes a tool error, a permanent one if the next attempt of the
/// task would only find it in its journal.
fn from_ctx_error(stop: CtxError) -> Failure {
    match stop {
        CtxError::StepFailed { message, is_final: true, .. } => Failure::Permanent(message.to_string()),
        CtxError::StepFailed { message, .. } => Failure::Tool(message.to_string()),
        stop => Failure::Stop(stop),
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>> + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        // An `anyhow::Error` hides its cause when it becomes a box, so it is searched first.
        let in_anyhow = (&error as &dyn Any).downcast_ref::<anyhow::Error>().and_then(|error| error.downcast_ref());
        if let Some(stop) = in_anyhow.cloned() {
            return from_ctx_error(stop);
        }
        let error = error.into();
        let chain = || iter::successors(Some(&*error as &(dyn Error + 'static)), |&error| error.source());
        if let Some(stop) = chain().find_map(|error| error.downcast_ref::<CtxError>()) {
            return from_ctx_error(stop.clone());
        }
        Self::Tool(chain().map(ToString::to_string).collect::<Vec<_>>().join(": "))
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use anyhow::Context as _;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    enum OrderError {
        #[error("order {0} cannot be read")]
        Unreadable(u32, #[source] io::Error),
        #[error("it was not approved")]
        NotApproved(#[from] CtxError),
    }

    fn missing() -> io::Error {
        io::Error::new(io::ErrorKind::NotFound, "no such file")
    }

    /// What `?` makes of an error.
    fn failure<E>(error: E) -> Failure
    where
        Failure: From<E>,
    {
        let handler = || -> Result<(), Failure> { Err(error)? };
        handler().unwrap_err()
    }

    #[track_caller]
    fn is_tool_error<E>(error: E, text: &str)
    where
        Failure: From<E>,
    {
        assert!(matches!(failure(error), Failure::Tool(said) if said == text), "not {text:?}");
    }

    #[track_caller]
    fn is_cancelled<E>(error: E)
    where
        Failure: From<E>,
    {
        assert!(matches!(failure(error), Failure::Stop(CtxError::Cancelled)));
    }

    #[test]
    fn every_error_becomes_a_tool_error_with_its_causes() {
        is_tool_error(missing(), "no such file");
        is_tool_error(OrderError::Unreadable(7, missing()), "order 7 cannot be read: no such file");
        is_tool_error(anyhow::anyhow!("no stock"), "no stock");
        let nested = Err::<(), _>(OrderError::Unreadable(7, missing())).context("import stopped").unwrap_err();
        is_tool_error(nested, "import stopped: order 7 cannot be read: no such file");
        is_tool_error(Box::<dyn Error + Send + Sync>::from(missing()), "no such file");
        is_tool_error("no stock", "no stock");
        is_tool_error(String::from("no stock"), "no stock");
    }

    #[test]
    fn a_cancellation_stays_one_however_it_is_wrapped() {
        is_cancelled(CtxError::Cancelled);
        is_cancelled(anyhow::Error::from(CtxError::Cancelled));
        is_cancelled(anyhow::Error::from(CtxError::Cancelled).context("asking for approval").context("deploying"));
        is_cancelled(OrderError::from(CtxError::Cancelled));
        is_cancelled(anyhow::Error::from(OrderError::from(CtxError::Cancelled)));
        is_cancelled(Box::<dyn Error + Send + Sync>::from(CtxError::Cancelled));
        is_cancelled(Failure::Stop(CtxError::Cancelled));
    }

    #[test]
    fn a_failure_that_is_passed_on_stays_the_same() {
        is_tool_error(Failure::tool("no stock"), "no stock");
        let refused = failure(Failure::protocol(-32_001, "no"));
        assert!(matches!(refused, Failure::Protocol(TaskError { code: Some(-32_001), .. })), "{refused:?}");
    }
}

//! What a call tells and asks its client while the client waits: questions, log lines, progress.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use longhaul_engine::{CtxError, LogLine, OpenQuestion, Requestor};
use longhaul_task::{Json, Progress, QuestionKind};
use longhaul_wire::jsonrpc::RequestId;
use longhaul_wire::{LogLevel, logging, progress, question};
use serde_json::value::RawValue;
use tokio::sync::watch;

use crate::exchange::Exchange;
use crate::log;
use crate::session::ask_on_stream;
use crate::stream::MessageStream;

/// The client of a call, as the engine sees it.
pub(super) struct CallClient {
    pub(super) exchange: Exchange,
    pub(super) stream: Option<Arc<MessageStream>>,
    pub(super) log_level: Option<LogLevel>,
}

impl Requestor for CallClient {
    fn can_answer(&self, kind: QuestionKind, params: &Json) -> bool {
        self.exchange.peer.can_answer(kind, params)
    }

    fn fits(&self, kind: QuestionKind, params: &Json, answer: &Json) -> Result<(), String> {
        let answer: &RawValue = serde_json::from_str(answer.as_str()).map_err(|error| error.to_string())?;
        question::check_parts(None, kind, params, answer).map_err(|wrong| wrong.to_string())
    }

    fn log(&self, line: &LogLine) {
        let Some(stream) = &self.stream else { return };
        let level = self.exchange.session.as_ref().map_or(self.log_level, |session| session.log_level());
        let message = log::message(line);
        if logging::is_wanted(message, level, self.exchange.peer.revision) {
            stream.send_lossy(&logging::notification(message, None));
        }
    }

    fn ask(&self, question: OpenQuestion) -> Option<BoxFuture<'_, Result<Json, CtxError>>> {
        let (session, stream) = (self.exchange.session.as_ref()?, self.stream.as_ref()?);
        Some(Box::pin(ask_on_stream(session, self.exchange.generation, stream, question)))
    }
}

/// Sends the progress of a call to its client.
pub(super) struct ProgressReport<'a> {
    token: &'a RequestId,
    progress: watch::Receiver<Option<Progress>>,
    stream: &'a MessageStream,
    last: Option<f64>,
}

impl<'a> ProgressReport<'a> {
    pub(super) fn new(
        token: &'a RequestId,
        progress: watch::Receiver<Option<Progress>>,
        stream: &'a MessageStream,
    ) -> Self {
        Self { token, progress, stream, last: None }
    }

    /// Reports until the call has ended; what was reported before the end is sent before it. A slow client does not hold
    /// up the call.
    pub(super) async fn until<T>(mut self, end: impl Future<Output = T>) -> T {
        tokio::pin!(end);
        loop {
            tokio::select! {
                biased;
                ended = &mut end => {
                    self.send_newest().await;
                    return ended;
                }
                () = self.send_next() => {}
            }
        }
    }

    async fn send_next(&mut self) {
        if self.progress.changed().await.is_err() {
            // The call has dropped its side and is about to end.
            std::future::pending::<()>().await;
        }
        self.send_newest().await;
    }

    async fn send_newest(&mut self) {
        let newest = self.progress.borrow_and_update().clone();
        if let Some(progress) = newest.filter(|newest| progress::grows(self.last, newest))
            && self.stream.send(progress::notification(self.token, &progress, None)).await
        {
            self.last = Some(progress.done);
        }
    }
}

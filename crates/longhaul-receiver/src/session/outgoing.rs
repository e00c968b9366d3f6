//! Requests of the server to the client of a session.

use std::sync::Arc;

use longhaul_engine::CtxError;
use longhaul_wire::CancelledRequest;
use longhaul_wire::jsonrpc::{RequestId, Response, RpcError};
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use super::{Session, remote_task};
use crate::stream::MessageStream;

/// A response received from the client.
#[derive(Debug)]
pub(super) struct ClientResponse {
    result: Result<Box<RawValue>, RpcError>,
    pub(super) receipt: Receipt,
}

impl ClientResponse {
    pub(super) fn result(&self) -> Result<&RawValue, RpcError> {
        self.result.as_deref().map_err(Clone::clone)
    }
}

/// Dropping the receipt acknowledges the response to its sender. Drop it only after the response is stored.
#[derive(Debug)]
pub(super) struct Receipt(#[expect(dead_code, reason = "dropping it is the signal")] oneshot::Sender<()>);

/// Where the response to a request is delivered.
pub(super) struct ResponseSlot {
    sender: oneshot::Sender<ClientResponse>,
    must_be_stored: bool,
}

/// A request before it is sent.
pub(super) struct OutgoingRequest {
    pub(super) id: RequestId,
    /// Whether `notifications/cancelled` cancels the request. A request that the client may run as a task is cancelled
    /// as a task.
    pub(super) is_cancelled_by_notification: bool,
    /// Whether the response has to be stored before it is acknowledged to the client.
    pub(super) must_be_stored: bool,
}

/// Why a request has no usable response.
#[derive(Debug)]
pub(super) enum NoAnswer {
    /// The client responded with an error.
    Refused(RpcError, Receipt),
    /// None of the client's responses is a valid answer to the question.
    Unfit(String),
    /// The session has as many requests without a response as it may have.
    TooManyQuestions,
    /// The session or the stream has ended.
    SessionOver,
}

impl From<NoAnswer> for CtxError {
    fn from(why: NoAnswer) -> Self {
        match why {
            NoAnswer::Refused(error, _) => Self::NotAnswered(error.message.into_owned()),
            NoAnswer::Unfit(why) => Self::BadAnswer(why),
            NoAnswer::TooManyQuestions => Self::NotAnswered("it has too many questions to answer".into()),
            NoAnswer::SessionOver => Self::NotAnswered("its session is over".into()),
        }
    }
}

/// A request that was sent and has no response yet. Dropping it cancels the request at the client.
pub(super) struct PendingRequest {
    session: Arc<Session>,
    stream: Arc<MessageStream>,
    id: RequestId,
    response: Option<oneshot::Receiver<ClientResponse>>,
    is_cancelled_by_notification: bool,
}

impl Session {
    pub(super) async fn send_request(
        self: &Arc<Self>,
        stream: &Arc<MessageStream>,
        request: OutgoingRequest,
        write: impl FnOnce(&RequestId) -> String,
    ) -> Result<PendingRequest, NoAnswer> {
        let OutgoingRequest { id, is_cancelled_by_notification, must_be_stored } = request;
        let (sender, response) = oneshot::channel();
        {
            let mut questions = self.questions.lock();
            if questions.len() >= self.limits.questions_max {
                return Err(NoAnswer::TooManyQuestions);
            }
            questions.insert(id.clone(), ResponseSlot { sender, must_be_stored });
        }
        let text = write(&id);
        let pending = PendingRequest {
            session: Arc::clone(self),
            stream: Arc::clone(stream),
            id,
            response: Some(response),
            is_cancelled_by_notification,
        };
        if self.ended.is_cancelled() || !stream.send(text).await {
            return Err(NoAnswer::SessionOver);
        }
        Ok(pending)
    }

    /// Hands a response of the client to the request that waits for it. If the response has to be stored, returns after
    /// it was stored.
    pub(super) async fn take_response(self: &Arc<Self>, response: &Response<'_>) {
        let Some(id) = &response.id else { return };
        let result = match &response.outcome {
            Ok(result) => Ok((*result).to_owned()),
            Err(error) => Err(error.clone()),
        };
        let (acknowledge, acknowledged) = oneshot::channel();
        let response = ClientResponse { result, receipt: Receipt(acknowledge) };
        let slot = self.questions.lock().remove(id);
        match slot {
            Some(slot) => {
                // The request may have been dropped just now; then the response is not needed.
                let _ = slot.sender.send(response);
                if slot.must_be_stored {
                    let _ = acknowledged.await;
                }
            }
            None => self.take_late_answer(id, response).await,
        }
    }

    /// Forgets a request whose response is no longer needed. Returns whether the response was still missing.
    pub(super) fn forget_request(&self, id: &RequestId) -> bool {
        self.questions.lock().remove(id).is_some()
    }
}

impl PendingRequest {
    pub(super) async fn response(mut self) -> Result<ClientResponse, NoAnswer> {
        let Some(response) = self.response.as_mut() else { return Err(NoAnswer::SessionOver) };
        let response = response.await;
        self.response = None;
        response.map_err(|_| NoAnswer::SessionOver)
    }
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        let Some(response) = self.response.take() else { return };
        if !self.is_cancelled_by_notification {
            return remote_task::cancel_when_created(&self.session, self.id.clone(), response);
        }
        if self.session.forget_request(&self.id) {
            let cancelled =
                CancelledRequest { request_id: self.id.clone(), reason: Some("The answer is not needed.".into()) };
            let cancelled = cancelled.notification();
            if !self.stream.send_now(&cancelled)
                && let Some(stream) = self.session.any_stream()
            {
                stream.send_now(&cancelled);
            }
        }
    }
}

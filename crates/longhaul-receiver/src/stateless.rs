//! Requests of the stateless era: each stands for itself.

use std::sync::Arc;

use longhaul_wire::jsonrpc::{self, InvalidMessage, Message, RequestId, RpcError};
use longhaul_wire::route::{Context, generation_of, route};
use longhaul_wire::{Headers, Revision};

use crate::exchange::Exchange;
use crate::operation::{self, OperationResult, StreamWork};
use crate::receiver::ReceiverInner;
use crate::response::MetricsLabel;
use crate::stream::{MessageStream, StreamKind};
use crate::{Caller, MessageResponse, RequestKind, SessionLimits, audit};

pub(crate) const NO_RESPONSES: &str = "a client must not send responses";

/// Takes one message.
pub(crate) async fn receive(
    receiver: &Arc<ReceiverInner>,
    caller: &Caller,
    headers: Option<&(dyn Headers + Sync)>,
    body: &[u8],
) -> MessageResponse {
    let request = match jsonrpc::parse(body) {
        Ok(Message::Request(request)) => request,
        // No notification has a meaning here: a client cancels a request by closing its stream.
        Ok(Message::Notification(_)) => return MessageResponse::accepted(),
        Ok(Message::Response(_)) => return unexpected_response(),
        Err(rejected) => return reject(receiver, caller, &rejected),
    };
    let tally = MetricsLabel::of(&request.method);
    match perform(receiver, caller, &request, headers).await {
        Ok(OperationResult::Ready(text)) => MessageResponse::message(text, tally),
        Ok(OperationResult::Work(work)) => {
            let stream = new_stream(receiver, caller, request.id);
            let Some(reader) = stream.read_after(0) else { return MessageResponse::accepted() };
            receiver.tracker.spawn(async move { run(work, &stream).await });
            MessageResponse::stream(reader, tally)
        }
        Err(error) => MessageResponse::error(Some(&request.id), &error, tally),
    }
}

/// Performs the operation of a request.
pub(crate) async fn perform(
    receiver: &Arc<ReceiverInner>,
    caller: &Caller,
    request: &jsonrpc::Request<'_>,
    headers: Option<&(dyn Headers + Sync)>,
) -> Result<OperationResult, RpcError> {
    let performed = try_perform(receiver, caller, request, headers).await;
    if let Err(error) = &performed {
        audit::refused(&caller.owner, generation_of(Revision::STATELESS[0]), request, error);
    }
    performed
}

async fn try_perform(
    receiver: &Arc<ReceiverInner>,
    caller: &Caller,
    request: &jsonrpc::Request<'_>,
    headers: Option<&(dyn Headers + Sync)>,
) -> Result<OperationResult, RpcError> {
    receiver.rates.admit(&caller.owner, RequestKind::of(&request.method))?;
    let request = route(request, &Context::Stateless { headers: headers.map(|headers| headers as &dyn Headers) })?;
    let exchange = Exchange {
        receiver: Arc::clone(receiver),
        owner: caller.owner.clone(),
        is_identified: caller.is_identified,
        id: request.id.clone(),
        method: request.method,
        generation: request.generation,
        follows_task: request.follows_task,
        peer: request.peer,
        session: None,
    };
    operation::perform(&exchange, &request, headers).await
}

/// A stream for the messages of one request. Nothing is kept: it cannot be resumed.
pub(crate) fn new_stream(receiver: &ReceiverInner, caller: &Caller, request: RequestId) -> Arc<MessageStream> {
    let limits = SessionLimits { kept_messages_max: 0, ..receiver.options.sessions.clone() };
    let kind = StreamKind::StatelessRequest { request };
    MessageStream::new(receiver.random_number(), kind, &limits, receiver.kept.of(&caller.owner), |_| ())
}

/// Works on a request until it has its response, or its client is gone.
pub(crate) async fn run(work: StreamWork, stream: &Arc<MessageStream>) {
    let StreamWork { exchange, task, tool, run, .. } = work;
    let completed = tokio::select! {
        biased;
        () = stream.closed() => return,
        completed = run(Arc::clone(stream)) => completed,
    };
    match completed {
        Ok(completed) => stream.respond(completed.response.as_deref()),
        Err(error) => {
            audit::work_failed(&exchange, task.as_ref(), tool.as_deref(), &error);
            stream.respond(Some(&jsonrpc::error(Some(&exchange.id), &error)));
        }
    }
}

/// Refuses a response of a client that was not asked anything.
pub(crate) fn unexpected_response() -> MessageResponse {
    let error = RpcError::invalid_request(NO_RESPONSES);
    audit::turned_away(None, &error);
    MessageResponse::error(None, &error, MetricsLabel::Refused)
}

/// Refuses bytes that are no message. They count against the owner's rate like a request.
pub(crate) fn reject(receiver: &ReceiverInner, caller: &Caller, rejected: &InvalidMessage) -> MessageResponse {
    let (id, error) = match receiver.rates.admit(&caller.owner, RequestKind::Other) {
        Ok(()) => (rejected.id.as_ref(), rejected.error.clone()),
        Err(too_many) => (None, too_many),
    };
    audit::turned_away(Some(&caller.owner), &error);
    MessageResponse::error(id, &error, MetricsLabel::Refused)
}

//! Tasks that the client runs: a client may answer a question by way of a task of its own, which the server polls until
//! it has ended.

use std::sync::Arc;
use std::time::Duration;

use longhaul_wire::Capability;
use longhaul_wire::jsonrpc::RequestId;
use longhaul_wire::remote_task::{self as wire, RemoteTask};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::timeout;

use super::Session;
use super::outgoing::{ClientResponse, NoAnswer, OutgoingRequest};
use super::question::QuestionStream;
use crate::stream::MessageStream;

/// The shortest interval between two polls, whatever the client asks for.
const POLL_MS_MIN: u64 = 100;

/// The longest interval.
const POLL_MS_MAX: u64 = 60_000;

/// The interval if the client names none.
const POLL_MS_USUAL: u64 = 1_000;

/// How long the client may take to respond before the request is sent again: it may have been lost with its stream.
const RESPONSE_TIME_MAX: Duration = Duration::from_secs(60);

/// The result of a client's task, when it has ended. Dropping the future cancels the task, if the client supports that.
/// `notices` counts the client's notifications about its tasks since before this task was created.
pub(super) async fn result(
    session: &Arc<Session>,
    stream: &QuestionStream,
    mut task: RemoteTask,
    notices: &watch::Receiver<u64>,
) -> Result<ClientResponse, NoAnswer> {
    let mut following = FollowedRemoteTask::new(session, &task.id);
    // A notification may have arrived together with the task, before the follower was registered.
    let mut is_notified = notices.has_changed().unwrap_or(false);
    while !task.status.is_terminal() {
        let wait_ms = wait_ms(task.poll_interval_ms);
        if !std::mem::take(&mut is_notified) {
            // A notification ends the wait early.
            let _ = timeout(Duration::from_millis(wait_ms), following.changed.notified()).await;
        }
        let response = request(session, stream, false, |id| wire::get(id, &task.id)).await?;
        match response.result() {
            Err(_) => return Ok(response),
            Ok(shown) => match RemoteTask::parse(shown) {
                Ok(shown) if shown.id == task.id => task = shown,
                Ok(_) => {
                    return Err(NoAnswer::Unfit("it showed another task than the one it was asked about".into()));
                }
                Err(not_a_task) => return Err(NoAnswer::Unfit(not_a_task.to_string())),
            },
        }
    }
    following.has_ended = true;
    request(session, stream, stream.is_of_task(), |id| wire::result(id, &task.id)).await
}

fn wait_ms(poll_interval_ms: Option<u64>) -> u64 {
    poll_interval_ms.unwrap_or(POLL_MS_USUAL).clamp(POLL_MS_MIN, POLL_MS_MAX)
}

fn outgoing(session: &Session, is_stored: bool) -> OutgoingRequest {
    OutgoingRequest { id: session.next_request_id(), is_cancelled_by_notification: true, is_stored }
}

/// Sends a request until it has a response: it is sent again if its stream is lost.
async fn request(
    session: &Arc<Session>,
    stream: &QuestionStream,
    is_stored: bool,
    write: impl Fn(&RequestId) -> String,
) -> Result<ClientResponse, NoAnswer> {
    loop {
        let current = stream.current(session).await?;
        match session.send_request(&current, outgoing(session, is_stored), &write).await {
            Ok(pending) => {
                tokio::select! {
                    response = pending.response() => return response,
                    () = lost(session, stream, &current) => {}
                    () = tokio::time::sleep(RESPONSE_TIME_MAX) => {}
                }
            }
            // The stream ended after it was chosen. A call has no other stream.
            Err(NoAnswer::SessionOver) if stream.is_of_task() && !session.ended.is_cancelled() => {
                tokio::task::yield_now().await;
            }
            Err(why) => return Err(why),
        }
    }
}

/// Resolves when a stream has lost its reader and another one will be used. The stream of a call is kept for its client.
async fn lost(session: &Session, stream: &QuestionStream, current: &MessageStream) {
    let mut changes = session.reader_changes.subscribe();
    while !stream.is_of_task() || current.has_reader() {
        // The sender lives as long as the session.
        let _ = changes.changed().await;
    }
}

struct FollowedRemoteTask {
    session: Arc<Session>,
    id: Box<str>,
    changed: Arc<Notify>,
    has_ended: bool,
}

impl FollowedRemoteTask {
    fn new(session: &Arc<Session>, id: &str) -> Self {
        let changed = Arc::new(Notify::new());
        session.remote_tasks.lock().insert(id.into(), Arc::clone(&changed));
        Self { session: Arc::clone(session), id: id.into(), changed, has_ended: false }
    }
}

impl Drop for FollowedRemoteTask {
    fn drop(&mut self) {
        self.session.remote_tasks.lock().remove(&self.id);
        if !self.has_ended {
            let session = Arc::clone(&self.session);
            let id = std::mem::take(&mut self.id);
            self.session.receiver.tracker.spawn(async move { cancel(&session, &id).await });
        }
    }
}

/// Cancels a client's task, if the client supports that. Its response changes nothing.
async fn cancel(session: &Arc<Session>, id: &str) {
    let Some(stream) = session.any_stream() else { return };
    if session.ended.is_cancelled() || !session.peer.capabilities.has(Capability::CancelTasks) {
        return;
    }
    let sent = session.send_request(&stream, outgoing(session, false), |request| wire::cancel(request, id)).await;
    if let Ok(pending) = sent {
        let _ = session.ended.run_until_cancelled(timeout(RESPONSE_TIME_MAX, pending.response())).await;
    }
}

/// Waits for the response to a question that is no longer open, and cancels the task if the client has made one.
pub(super) fn cancel_when_created(
    session: &Arc<Session>,
    request: RequestId,
    response: oneshot::Receiver<ClientResponse>,
) {
    #[derive(Deserialize)]
    struct Created<'a> {
        #[serde(borrow)]
        task: &'a RawValue,
    }
    let session = Arc::clone(session);
    let tracker = session.receiver.tracker.clone();
    tracker.spawn(async move {
        let response = session.ended.run_until_cancelled(timeout(RESPONSE_TIME_MAX, response)).await;
        session.forget_request(&request);
        let Some(Ok(Ok(response))) = response else { return };
        let task = response.result().ok().and_then(|result| {
            let created = serde_json::from_str::<Created<'_>>(result.get()).ok()?;
            RemoteTask::parse(created.task).ok()
        });
        // Acknowledged before the cancellation, to which the client has to respond in turn.
        drop(response);
        if let Some(task) = task {
            cancel(&session, &task.id).await;
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_chooses_the_poll_interval_within_limits() {
        for (wanted, waited) in [
            (None, POLL_MS_USUAL),
            (Some(0), POLL_MS_MIN),
            (Some(POLL_MS_MIN + 1), POLL_MS_MIN + 1),
            (Some(POLL_MS_MAX - 1), POLL_MS_MAX - 1),
            (Some(u64::MAX), POLL_MS_MAX),
        ] {
            assert_eq!(wait_ms(wanted), waited, "{wanted:?}");
        }
    }
}

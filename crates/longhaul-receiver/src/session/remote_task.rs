//! Tasks of the client: a client may respond to a question with a task of its own. The server polls this task until it has
//! ended, and requests its result.

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

/// Waits for the end of a client's task and requests its result. Dropping the future cancels the task, if the client supports
/// that. `notices` changes with every notification of the client about its tasks; its owner subscribed before the client
/// could create this one.
pub(super) async fn result(
    session: &Arc<Session>,
    stream: &QuestionStream,
    mut task: RemoteTask,
    notices: &watch::Receiver<u64>,
) -> Result<ClientResponse, NoAnswer> {
    let mut followed = FollowedRemoteTask::new(session, &task.id);
    // A notification may have arrived before `followed` was registered.
    let mut is_notified = notices.has_changed().unwrap_or(false);
    while !task.status.is_terminal() {
        let wait_ms = wait_ms(task.poll_interval_ms);
        if !std::mem::take(&mut is_notified) {
            // A notification ends the wait early.
            let _ = timeout(Duration::from_millis(wait_ms), followed.changed.notified()).await;
        }
        let response = request(session, stream, false, |id| wire::get(id, &task.id)).await?;
        match response.result() {
            Err(_) => return Ok(response),
            Ok(result) => match RemoteTask::parse(result) {
                Ok(polled) if polled.id == task.id => task = polled,
                Ok(_) => {
                    return Err(NoAnswer::Unfit("the client's response to `tasks/get` is about another task".into()));
                }
                Err(error) => return Err(NoAnswer::Unfit(error.to_string())),
            },
        }
    }
    followed.has_ended = true;
    request(session, stream, stream.is_of_task(), |id| wire::result(id, &task.id)).await
}

fn wait_ms(poll_interval_ms: Option<u64>) -> u64 {
    poll_interval_ms.unwrap_or(POLL_MS_USUAL).clamp(POLL_MS_MIN, POLL_MS_MAX)
}

fn outgoing(session: &Session, must_be_stored: bool) -> OutgoingRequest {
    OutgoingRequest { id: session.next_request_id(), is_cancelled_by_notification: true, must_be_stored }
}

/// Sends a request, and sends it again if its stream is lost or the response takes too long.
async fn request(
    session: &Arc<Session>,
    stream: &QuestionStream,
    must_be_stored: bool,
    write: impl Fn(&RequestId) -> String,
) -> Result<ClientResponse, NoAnswer> {
    loop {
        let current = stream.current(session).await?;
        match session.send_request(&current, outgoing(session, must_be_stored), &write).await {
            Ok(pending) => {
                tokio::select! {
                    response = pending.response() => return response,
                    () = reader_lost(session, stream, &current) => {}
                    () = tokio::time::sleep(RESPONSE_TIME_MAX) => {}
                }
            }
            // The stream ended after it was chosen. For a task there may be another one, for a call there is none.
            Err(NoAnswer::SessionOver) if stream.is_of_task() && !session.ended.is_cancelled() => {
                tokio::task::yield_now().await;
            }
            Err(why) => return Err(why),
        }
    }
}

/// Resolves when the stream of a task's question has lost its reader. Never resolves for the stream of a call: the client
/// receives the request when it resumes that stream.
async fn reader_lost(session: &Session, stream: &QuestionStream, current: &MessageStream) {
    let mut changes = session.reader_changes.subscribe();
    while !stream.is_of_task() || current.has_reader() {
        // This does not fail: the session holds the sender.
        let _ = changes.changed().await;
    }
}

/// Registers a client's task for notifications. Dropping it cancels the task, unless it has ended.
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

/// Cancels a client's task, if the client supports that. The content of the response is ignored.
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
    struct CreateTaskResult<'a> {
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
            let created = serde_json::from_str::<CreateTaskResult<'_>>(result.get()).ok()?;
            RemoteTask::parse(created.task).ok()
        });
        // Dropping the response acknowledges it. Until then the client may not be able to respond to the cancellation.
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
        for (requested, expected) in [
            (None, POLL_MS_USUAL),
            (Some(0), POLL_MS_MIN),
            (Some(POLL_MS_MIN + 1), POLL_MS_MIN + 1),
            (Some(POLL_MS_MAX - 1), POLL_MS_MAX - 1),
            (Some(u64::MAX), POLL_MS_MAX),
        ] {
            assert_eq!(wait_ms(requested), expected, "{requested:?}");
        }
    }
}

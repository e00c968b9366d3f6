//! The server as requestor: a client that made a task of a question is asked about it until it has ended.

use std::sync::Arc;
use std::time::Duration;

use longhaul_wire::Capability;
use longhaul_wire::core2025::requestor::{self as wire, RemoteTask};
use longhaul_wire::jsonrpc::RequestId;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::timeout;

use super::channel::Channel;
use super::questions::{Came, Outgoing, Place, Unanswered};
use super::session::Session;

/// The shortest wait before a client is asked again about its task, whatever it says.
const POLL_MS_MIN: u64 = 100;

/// The longest.
const POLL_MS_MAX: u64 = 60_000;

/// How often it is asked when it does not say.
const POLL_MS_USUAL: u64 = 1_000;

/// How long a client may take to answer before it is asked anew: the question may have gone with its stream.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);

/// The result of a client's task, once it has ended. Whoever drops this cancels the task, if the client can do that.
/// `told` counts what the client has told of its tasks since before it could make this one.
pub(super) async fn result(
    session: &Arc<Session>,
    place: &Place,
    mut task: RemoteTask,
    told: &watch::Receiver<u64>,
) -> Result<Came, Unanswered> {
    let mut following = Following::new(session, &task.id);
    // Its word of a change may have come together with the task, before anybody waited for it.
    let mut was_told = told.has_changed().unwrap_or(false);
    while !task.status.is_terminal() {
        let wait_ms = wait_ms(task.poll_interval_ms);
        if !std::mem::take(&mut was_told) {
            // Word of a change comes sooner, if it comes.
            let _ = timeout(Duration::from_millis(wait_ms), following.changed.notified()).await;
        }
        let came = request(session, place, false, |id| wire::get(id, &task.id)).await?;
        match &came.outcome {
            Err(_) => return Ok(came),
            Ok(shown) => match RemoteTask::parse(shown) {
                Ok(shown) if shown.id == task.id => task = shown,
                Ok(_) => {
                    return Err(Unanswered::Unfit("it showed another task than the one it was asked about".into()));
                }
                Err(no_task) => return Err(Unanswered::Unfit(no_task.to_string())),
            },
        }
    }
    following.has_ended = true;
    // This is the answer.
    request(session, place, matches!(place, Place::Task(_)), |id| wire::result(id, &task.id)).await
}

/// How long to wait for a client that wants to be asked this often.
fn wait_ms(poll_interval_ms: Option<u64>) -> u64 {
    poll_interval_ms.unwrap_or(POLL_MS_USUAL).clamp(POLL_MS_MIN, POLL_MS_MAX)
}

/// A request about a task of the client's.
fn about_a_task(session: &Session) -> Outgoing {
    Outgoing { id: session.next_id(), tells: true, is_stored: false }
}

/// A request and its response, asked again if the stream was lost.
async fn request(
    session: &Arc<Session>,
    place: &Place,
    is_stored: bool,
    write: impl Fn(&RequestId) -> String,
) -> Result<Came, Unanswered> {
    loop {
        let channel = place.outlet(session).await?;
        match session.send(&channel, Outgoing { is_stored, ..about_a_task(session) }, &write).await {
            Ok(sent) => {
                tokio::select! {
                    outcome = sent.response() => return outcome,
                    () = lost(session, place, &channel) => {}
                    () = tokio::time::sleep(ANSWER_TIME_MAX) => {}
                }
            }
            // The stream ended between the look and the word; a call that is over has no other.
            Err(Unanswered::Gone) if matches!(place, Place::Task(_)) && !session.ended.is_cancelled() => {
                tokio::task::yield_now().await;
            }
            Err(why) => return Err(why),
        }
    }
}

/// Resolves when a stream is not heard any more on which somebody else will not go on: that of a call is kept for it.
async fn lost(session: &Session, place: &Place, channel: &Channel) {
    let mut moves = session.moves.subscribe();
    while matches!(place, Place::Call(_)) || channel.is_heard() {
        // The sender lives as long as the session.
        let _ = moves.changed().await;
    }
}

/// A client's task that is waited for.
struct Following {
    session: Arc<Session>,
    id: Box<str>,
    changed: Arc<Notify>,
    has_ended: bool,
}

impl Following {
    fn new(session: &Arc<Session>, id: &str) -> Self {
        let changed = Arc::new(Notify::new());
        session.remote.lock().insert(id.into(), Arc::clone(&changed));
        Self { session: Arc::clone(session), id: id.into(), changed, has_ended: false }
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.session.remote.lock().remove(&self.id);
        if !self.has_ended {
            let session = Arc::clone(&self.session);
            let id = std::mem::take(&mut self.id);
            self.session.shared.tracker.spawn(async move { cancel(&session, &id).await });
        }
    }
}

/// Cancels a client's task, if the client can do that. What it answers changes nothing.
async fn cancel(session: &Arc<Session>, id: &str) {
    let Some(channel) = session.any_outlet() else { return };
    if session.ended.is_cancelled() || !session.peer.capabilities.has(Capability::CancelTasks) {
        return;
    }
    if let Ok(sent) = session.send(&channel, about_a_task(session), |request| wire::cancel(request, id)).await {
        let _ = session.ended.run_until_cancelled(timeout(ANSWER_TIME_MAX, sent.response())).await;
    }
}

/// Waits for what a client makes of a question that is not open any more: a task that it makes now is of no use.
pub(super) fn cancel_what_it_makes(session: &Arc<Session>, request: RequestId, response: oneshot::Receiver<Came>) {
    #[derive(Deserialize)]
    struct Made<'a> {
        #[serde(borrow)]
        task: &'a RawValue,
    }
    let session = Arc::clone(session);
    let tracker = session.shared.tracker.clone();
    tracker.spawn(async move {
        let response = session.ended.run_until_cancelled(timeout(ANSWER_TIME_MAX, response)).await;
        session.asking.lock().remove(&request);
        let Some(Ok(Ok(Came { outcome: Ok(result), receipt }))) = response else { return };
        // Nothing is stored, and its sender has to answer more.
        drop(receipt);
        let made = serde_json::from_str::<Made<'_>>(result.get()).ok();
        if let Some(task) = made.and_then(|made| RemoteTask::parse(made.task).ok()) {
            cancel(&session, &task.id).await;
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_asked_as_often_as_it_says_within_reason() {
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

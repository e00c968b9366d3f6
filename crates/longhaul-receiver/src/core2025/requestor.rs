//! The server as requestor: a client that made a task of a question is asked about it until it has ended.

use std::sync::Arc;
use std::time::Duration;

use longhaul_wire::Capability;
use longhaul_wire::core2025::requestor::{self as wire, RemoteTask};
use longhaul_wire::jsonrpc::RequestId;
use tokio::sync::Notify;
use tokio::time::timeout;

use super::questions::{Outcome, Place, Unanswered};
use super::session::Session;

/// The shortest and the longest wait before a client is asked again about its task, whatever it says.
const POLL_MS: std::ops::RangeInclusive<u64> = 100..=60_000;

/// How often it is asked when it does not say.
const POLL_MS_USUAL: u64 = 1_000;

/// How long a client may take to answer before it is asked anew: the question may have gone with its stream.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);

/// The result of a client's task, once it has ended. Whoever drops this cancels the task, if the client can do that.
pub(super) async fn result(session: &Arc<Session>, place: &Place, mut task: RemoteTask) -> Result<Outcome, Unanswered> {
    let mut following = Following::new(session, &task.id);
    while !task.status.is_terminal() {
        let wait_ms = task.poll_interval_ms.unwrap_or(POLL_MS_USUAL).clamp(*POLL_MS.start(), *POLL_MS.end());
        // Word of a change comes sooner, if it comes.
        let _ = timeout(Duration::from_millis(wait_ms), following.changed.notified()).await;
        match request(session, place, |id| wire::get(id, &task.id)).await? {
            Err(error) => return Ok(Err(error)),
            Ok(shown) => match RemoteTask::parse(&shown) {
                Ok(shown) if shown.id == task.id => task = shown,
                Ok(_) => {
                    return Err(Unanswered::Unfit("it showed another task than the one it was asked about".into()));
                }
                Err(no_task) => return Err(Unanswered::Unfit(no_task.to_string())),
            },
        }
    }
    following.has_ended = true;
    request(session, place, |id| wire::result(id, &task.id)).await
}

/// A request and its response, asked again if the stream was lost.
async fn request(
    session: &Arc<Session>,
    place: &Place,
    write: impl Fn(&RequestId) -> String,
) -> Result<Outcome, Unanswered> {
    loop {
        let channel = place.outlet(session).await?;
        match session.send(&channel, true, &write).await {
            Ok(sent) => {
                if let Ok(outcome) = timeout(ANSWER_TIME_MAX, sent.response()).await {
                    return outcome;
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
        let is_over = self.has_ended || self.session.ended.is_cancelled();
        if !is_over && self.session.peer.capabilities.has(Capability::CancelTasks) {
            let (session, id) = (Arc::clone(&self.session), std::mem::take(&mut self.id));
            let tracker = session.shared.tracker.clone();
            tracker.spawn(async move {
                let Some(channel) = session.any_outlet() else { return };
                if let Ok(sent) = session.send(&channel, false, |request| wire::cancel(request, &id)).await {
                    // What it answers changes nothing.
                    let ended = session.ended.clone();
                    let _ = ended.run_until_cancelled(timeout(ANSWER_TIME_MAX, sent.response())).await;
                }
            });
        }
    }
}

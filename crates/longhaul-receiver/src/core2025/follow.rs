//! What a client hears of its tasks without asking: status, progress, log lines, questions. Pushes carry state, not a log: whoever
//! begins to listen gets the newest, and the end is always told.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use longhaul_engine::LogTail;
use longhaul_store::Snapshot;
use longhaul_task::{Task, TaskKey};
use longhaul_wire::core2025::{Related, logging, progress, tasks_status};
use longhaul_wire::jsonrpc::RequestId;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::channel::Channel;
use super::questions::Open;
use super::session::Session;
use crate::log;
use crate::shown::Shown;

/// How many tasks that ended unheard are told of when the client listens again.
const UNTOLD_MAX: usize = 100;

/// How long a client is given to take in that there is a task before it is asked what the task wants to know. A published
/// client dismisses by itself what belongs to a task that it does not know yet, even if it has just been told of it.
const QUESTION_GRACE_MAX: Duration = Duration::from_secs(1);

/// One task that a session follows.
pub(super) struct Follow {
    look_again: Notify,
    /// The client has shown that it knows the task: it came back to it.
    is_known: AtomicBool,
    /// Under which name the client wants to hear of progress. Whoever made the task says so, perhaps after it was looked at.
    token: Mutex<Option<RequestId>>,
    log: LogTail,
}

impl Follow {
    /// Has it look where the client listens now.
    pub(super) fn nudge(&self) {
        self.look_again.notify_one();
    }

    /// Lets the client hear what the task has logged, as far as it wants to.
    fn pass_on_log(&self, session: &Session, task: &Task, outlet: &Channel) {
        let level = session.log_level();
        self.log.pass_on(|line| {
            let message = log::message(&line);
            if logging::is_wanted(message, level) {
                outlet.offer(&logging::notification(message, Some(Related::to(task))));
            }
        });
    }
}

/// What a client knows of a task.
#[derive(Debug, Default)]
pub(super) struct Told {
    revision: u64,
    /// How far it was when the client last heard of it: the protocol lets that only grow.
    done: Option<f64>,
    /// Under which name it wants to hear of progress.
    pub(super) token: Option<RequestId>,
    /// What the task has logged, from when it was made; otherwise it is listened to from when it is followed.
    pub(super) log: Option<LogTail>,
}

impl Told {
    /// All of this.
    pub(super) fn of(snapshot: &Snapshot) -> Self {
        Self { revision: snapshot.task.revision, ..Self::default() }
    }
}

impl Session {
    /// The client has made a task or looked at one that goes on: from now on it hears of it, and is the one to be asked.
    /// `is_known` says that it waits for questions of it already.
    pub(super) fn attend(self: &Arc<Self>, key: &TaskKey, mut told: Told, is_known: bool) {
        let mut follows = self.follows.lock();
        if let Some(follow) = follows.get(&key.id) {
            if told.token.is_some() {
                *follow.token.lock() = told.token;
                follow.nudge();
            }
            let was_asked = self.shared.asked.lock().insert(key.clone(), self.nonce) == Some(self.nonce);
            if !(follow.is_known.swap(true, Ordering::Relaxed) && was_asked) {
                follow.nudge();
            }
            return;
        }
        if follows.len() >= self.limits.followed_max || self.ended.is_cancelled() {
            return;
        }
        self.shared.asked.lock().insert(key.clone(), self.nonce);
        let log = told.log.take().unwrap_or_else(|| self.shared.engine.listen(key));
        let (is_known, token) = (AtomicBool::new(is_known), Mutex::new(told.token.take()));
        let follow = Arc::new(Follow { look_again: Notify::new(), is_known, token, log });
        follows.insert(key.id.clone(), Arc::clone(&follow));
        self.shared.tracker.spawn(run(Arc::clone(self), key.clone(), follow, told));
    }

    /// Has a client that waits for a task's result hear before it what the task has logged.
    pub(super) fn pass_on_log(&self, task: &Task, channel: &Channel) {
        let follow = self.follows.lock().get(&task.key.id).cloned();
        if let Some(follow) = follow {
            follow.pass_on_log(self, task, channel);
        }
    }
}

/// Follows one task until it or the session has ended.
async fn run(session: Arc<Session>, key: TaskKey, follow: Arc<Follow>, mut told: Told) {
    let shared = Arc::clone(&session.shared);
    let mut watch = shared.engine.watch(&key);
    let mut open = Open::default();
    let grace = tokio::time::sleep(QUESTION_GRACE_MAX);
    tokio::pin!(grace);
    // A task that is gone has nothing more to say.
    while let Ok(shown) = Shown::read(&shared, &key).await {
        let task = &shown.snapshot.task;
        let outlet = session.outlet(&key.id);
        let is_heard = match &outlet {
            Some(outlet) => {
                // What it said before its end is heard before its end. Without a stream the lines wait, as far as there is
                // room: a client that has just begun may not have opened its own yet.
                follow.pass_on_log(&session, task, outlet);
                tell(outlet, &session, &shown, &follow, &mut told).await
            }
            None => false,
        };
        let is_known = follow.is_known.load(Ordering::Relaxed);
        let asks = is_known && shared.asked.lock().get(&key) == Some(&session.nonce);
        open.keep_up(&session, task, outlet.as_ref().filter(|_| asks));
        if task.is_settled() {
            if !is_heard {
                let mut untold = session.untold.lock();
                untold.push_back(key.clone());
                if untold.len() > UNTOLD_MAX {
                    untold.pop_front();
                }
            }
            break;
        }
        tokio::select! {
            () = watch.changed() => {}
            () = follow.look_again.notified() => {}
            () = follow.log.changed() => {}
            () = &mut grace, if !is_known => follow.is_known.store(true, Ordering::Relaxed),
            () = session.ended.cancelled() => break,
        }
    }
    session.follows.lock().remove(&key.id);
    let mut asked = shared.asked.lock();
    if asked.get(&key) == Some(&session.nonce) {
        asked.remove(&key);
    }
}

/// Says on a stream what the client does not know yet; says whether that was possible.
async fn tell(outlet: &Channel, session: &Session, shown: &Shown, follow: &Follow, told: &mut Told) -> bool {
    let Snapshot { task, progress: said } = &shown.snapshot;
    let token = follow.token.lock().clone();
    if let (Some(token), Some(said)) = (&token, said)
        && told.done.is_none_or(|done| said.done > done)
    {
        if !outlet.say(progress::notification(token, said, Some(Related::to(task)))).await {
            return false;
        }
        told.done = Some(said.done);
    }
    if told.revision != task.revision {
        if !outlet.say(tasks_status::notification(&shown.view(&session.shared))).await {
            return false;
        }
        told.revision = task.revision;
    }
    true
}

/// Tells on a new stream how those tasks ended that ended while nobody listened.
pub(super) fn tell_untold(session: &Arc<Session>, channel: &Arc<Channel>) {
    let untold = std::mem::take(&mut *session.untold.lock());
    if untold.is_empty() {
        return;
    }
    let tracker = session.shared.tracker.clone();
    let (session, channel) = (Arc::clone(session), Arc::clone(channel));
    tracker.spawn(async move {
        for key in untold {
            if let Ok(shown) = Shown::read(&session.shared, &key).await {
                channel.say(tasks_status::notification(&shown.view(&session.shared))).await;
            }
        }
    });
}

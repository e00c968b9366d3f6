//! What a client hears of its tasks without asking: status, progress, log lines, questions. Notifications carry state and
//! not a log of changes: a client that begins to listen gets the newest state, and always the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use longhaul_engine::LogTail;
use longhaul_store::Snapshot;
use longhaul_task::{Progress, QuestionKey, Task, TaskId, TaskKey};
use longhaul_wire::jsonrpc::RequestId;
use longhaul_wire::{Generation, RelatedTask, logging, progress};
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

use super::Session;
use super::question::AskedQuestions;
use crate::loaded_task::LoadedTask;
use crate::log;
use crate::stream::MessageStream;

/// Tasks that ended without a stream to report it on, and are reported on the next one.
const UNREPORTED_MAX: usize = 100;

/// How long a client has, after it was told of a new task, before the task's questions are put to it. A published client
/// rejects requests that belong to a task it has not registered yet.
const QUESTION_GRACE_MAX: Duration = Duration::from_secs(1);

/// One task that a session follows.
pub(super) struct FollowedTask {
    generation: Generation,
    check_again: Notify,
    /// The client has shown that it knows the task, by asking for it.
    is_known_to_client: AtomicBool,
    /// The client knows no tasks.
    is_quiet: AtomicBool,
    /// Set by the request that created the task, which may be answered after the client has first polled the task.
    progress_token: Mutex<Option<RequestId>>,
    /// Its parent, if that is followed, too: without a stream of its own, the client hears of it on that of its parent.
    parent: Option<TaskId>,
    log: LogTail,
    /// Questions that this client is not asked again, although they are open.
    pub(super) given_up: watch::Sender<Vec<QuestionKey>>,
}

impl FollowedTask {
    pub(super) fn parent(&self) -> Option<&TaskId> {
        self.parent.as_ref()
    }

    /// Has the follower look for the client's streams again.
    pub(super) fn check_again(&self) {
        self.check_again.notify_one();
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.is_quiet.load(Ordering::Relaxed)
    }

    /// How messages about the task name it.
    fn related<'t>(&self, task: &'t Task) -> Option<RelatedTask<'t>> {
        (!self.is_quiet()).then(|| RelatedTask::to(self.generation, task))
    }

    /// Sends the log lines that the client wants.
    fn send_log(&self, session: &Session, task: &Task, stream: &MessageStream) {
        let level = session.log_level();
        self.log.pass_on(|line| {
            let message = log::message(&line);
            if logging::is_wanted(message, level, session.peer.revision) {
                stream.send_lossy(&logging::notification(message, self.related(task)));
            }
        });
    }
}

/// The state of a task that the client knows.
#[derive(Debug)]
pub(crate) struct LastNotified {
    pub(crate) key: TaskKey,
    pub(crate) generation: Generation,
    pub(crate) revision: u64,
    /// The last progress that was sent.
    pub(crate) progress: Option<f64>,
    /// The last progress that the client knows, where it is told of it as a change of the task.
    pub(crate) progress_shown: Option<Arc<Progress>>,
    pub(crate) progress_token: Option<RequestId>,
    /// The client knows no tasks: it is asked, and hears nothing else.
    pub(crate) is_quiet: bool,
    /// The parent of a child that is followed because its parent is.
    pub(crate) parent: Option<TaskId>,
    /// The log lines since the task was created; otherwise log lines are sent from when the task is followed.
    pub(crate) log: Option<LogTail>,
}

impl LastNotified {
    /// The client has received no state of the task yet.
    fn unseen(key: TaskKey, generation: Generation) -> Self {
        Self {
            key,
            generation,
            revision: 0,
            progress: None,
            progress_shown: None,
            progress_token: None,
            is_quiet: false,
            parent: None,
            log: None,
        }
    }

    /// The client has just received the task in this state.
    pub(crate) fn of(task: &Task, generation: Generation) -> Self {
        Self { revision: task.revision, ..Self::unseen(task.key.clone(), generation) }
    }

    pub(crate) fn quiet(self) -> Self {
        Self { is_quiet: true, ..self }
    }
}

impl Session {
    /// Follows a task that the client has created or looked at: the client hears of its changes, and is the one that its
    /// questions are put to. `is_known_to_client`: the client is ready for the task's questions.
    pub(crate) fn follow(self: &Arc<Self>, mut last: LastNotified, is_known_to_client: bool) {
        let key = last.key.clone();
        let mut followed = self.followed.lock();
        if let Some(task) = followed.get(&key.id) {
            task.is_quiet.fetch_and(last.is_quiet, Ordering::Relaxed);
            if last.progress_token.is_some() {
                *task.progress_token.lock() = last.progress_token;
                task.check_again();
            }
            if let Some(earlier) = last.log {
                task.log.begin_with(&earlier);
            }
            let was_asked = self.receiver.asked_session.lock().insert(key, self.nonce) == Some(self.nonce);
            if !(task.is_known_to_client.swap(true, Ordering::Relaxed) && was_asked) {
                task.check_again();
            }
            return;
        }
        if followed.len() >= self.limits.followed_max || self.ended.is_cancelled() {
            return;
        }
        self.receiver.asked_session.lock().insert(key.clone(), self.nonce);
        let log = last.log.take().unwrap_or_else(|| self.receiver.engine.listen(&key));
        let task = Arc::new(FollowedTask {
            generation: last.generation,
            check_again: Notify::new(),
            is_known_to_client: AtomicBool::new(is_known_to_client),
            is_quiet: AtomicBool::new(last.is_quiet),
            progress_token: Mutex::new(last.progress_token.take()),
            parent: last.parent.take(),
            log,
            given_up: watch::Sender::default(),
        });
        followed.insert(key.id.clone(), Arc::clone(&task));
        self.receiver.tracker.spawn(run(Arc::clone(self), task, last));
    }

    /// The open questions of a task that this client is not asked again.
    pub(crate) fn given_up_questions(&self, task: &TaskId) -> Option<watch::Receiver<Vec<QuestionKey>>> {
        self.followed.lock().get(task).map(|followed| followed.given_up.subscribe())
    }

    /// Sends the log lines of a task to a client that waits for its result, before the result.
    pub(crate) fn send_log(&self, task: &Task, stream: &MessageStream) {
        let followed = self.followed.lock().get(&task.key.id).cloned();
        if let Some(followed) = followed {
            followed.send_log(self, task, stream);
        }
    }

    /// Reports on a new stream the tasks that ended while the client had none.
    pub(super) fn report_unreported(self: &Arc<Self>, stream: &Arc<MessageStream>) {
        let unreported = std::mem::take(&mut *self.unreported.lock());
        if unreported.is_empty() {
            return;
        }
        let (session, stream) = (Arc::clone(self), Arc::clone(stream));
        self.receiver.tracker.spawn(async move {
            for (key, generation) in unreported {
                if let Ok(task) = LoadedTask::read(&session.receiver, &key, Some(&session)).await
                    && let Some(changed) = generation.changed(None, &task.view())
                {
                    stream.send(changed).await;
                }
            }
        });
    }
}

/// Follows one task until it or the session has ended.
async fn run(session: Arc<Session>, followed: Arc<FollowedTask>, mut last: LastNotified) {
    let receiver = Arc::clone(&session.receiver);
    let key = last.key.clone();
    let mut watch = receiver.engine.watch(&key);
    let mut asked = AskedQuestions::new(followed.generation);
    let grace = tokio::time::sleep(QUESTION_GRACE_MAX);
    tokio::pin!(grace);
    // The number of the task's children that are followed as well.
    let mut children = 0;
    // The loop ends when the task has been deleted.
    while let Ok(view) = LoadedTask::read(&receiver, &key, Some(&session)).await {
        let task = &view.snapshot.task;
        let stream = session.stream_for(&key.id);
        let is_notified = match &stream {
            Some(stream) => {
                // Log lines precede the end of the task. Without a stream they wait within a limit: a client that has just
                // connected may not have opened its stream yet.
                followed.send_log(&session, task, stream);
                notify(stream, &view, &followed, &mut last).await
            }
            None => false,
        };
        let is_known_to_client = followed.is_known_to_client.load(Ordering::Relaxed);
        for child in &view.children()[children..] {
            let related = RelatedTask { generation: followed.generation, task_id: child, parent: Some(&task.key.id) };
            // In the other generations the client hears of the child by the parent's notification.
            let is_quiet = followed.is_quiet();
            if let Some(announcement) = followed.generation.announcement(related).filter(|_| !is_quiet) {
                // Without a stream it is announced, and followed, when there is one.
                let Some(stream) = &stream else { break };
                if !stream.send(announcement).await {
                    break;
                }
            }
            children += 1;
            let key = TaskKey { owner: key.owner.clone(), id: child.clone() };
            let child = LastNotified {
                is_quiet,
                parent: Some(task.key.id.clone()),
                ..LastNotified::unseen(key, followed.generation)
            };
            session.follow(child, is_known_to_client);
        }
        let asks = is_known_to_client && receiver.asked_session.lock().get(&key) == Some(&session.nonce);
        asked.update(&session, task, stream.as_ref().filter(|_| asks), &followed);
        if task.is_settled() {
            if !is_notified && !followed.is_quiet() {
                let mut unreported = session.unreported.lock();
                unreported.push_back((key.clone(), followed.generation));
                if unreported.len() > UNREPORTED_MAX {
                    unreported.pop_front();
                }
            }
            break;
        }
        tokio::select! {
            () = watch.changed() => {}
            () = followed.check_again.notified() => {}
            () = followed.log.changed() => {}
            () = &mut grace, if !is_known_to_client => followed.is_known_to_client.store(true, Ordering::Relaxed),
            () = session.ended.cancelled() => break,
        }
    }
    session.followed.lock().remove(&key.id);
    let mut asked_session = receiver.asked_session.lock();
    if asked_session.get(&key) == Some(&session.nonce) {
        asked_session.remove(&key);
    }
}

/// Sends what the client does not know yet. Returns false if the stream has ended.
async fn notify(stream: &MessageStream, view: &LoadedTask, followed: &FollowedTask, last: &mut LastNotified) -> bool {
    let Snapshot { task, progress: newest } = &view.snapshot;
    let token = followed.progress_token.lock().clone();
    if let (Some(token), Some(newest)) = (&token, newest)
        && progress::grows(last.progress, newest)
    {
        if !stream.send(progress::notification(token, newest, followed.related(task))).await {
            return false;
        }
        last.progress = Some(newest.done);
    }
    let has_news = followed.generation.progress_is_change() && *newest != last.progress_shown;
    if last.revision != task.revision || has_news {
        if !followed.is_quiet()
            && let Some(changed) = followed.generation.changed(None, &view.view())
            && !stream.send(changed).await
        {
            return false;
        }
        (last.revision, last.progress_shown) = (task.revision, newest.clone());
    }
    true
}

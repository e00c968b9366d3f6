//! The wait for a task by a client without tasks, with signs of life.

use std::sync::Arc;
use std::time::Duration;

use longhaul_engine::{LogTail, audit};
use longhaul_task::{Progress, Question, QuestionKey, TaskKey, Timestamp};
use longhaul_wire::jsonrpc::{RequestId, RpcError};
use longhaul_wire::{LogLevel, logging, progress};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::exchange::Exchange;
use crate::loaded_task::LoadedTask;
use crate::session::LastNotified;
use crate::stream::MessageStream;
use crate::{log, refusal};

/// How much of a unit of progress a heartbeat counts. Progress has to grow with every notification, and a heartbeat
/// must leave room for the next report of the handler.
const HEARTBEAT_PROGRESS: f64 = 1e-6;

pub(super) struct TaskWait {
    pub(super) exchange: Exchange,
    pub(super) key: TaskKey,
    pub(super) token: Option<RequestId>,
    pub(super) stream: Option<Arc<MessageStream>>,
    /// The log lines of the task since it was created, if it was created for this wait.
    pub(super) log: Option<LogTail>,
    /// The log lines that a stateless client asked for.
    pub(super) log_level: Option<LogLevel>,
    /// Whether the task is cancelled if its client gives up, or has no connection when the wait is over.
    pub(super) cancels_abandoned: bool,
}

impl TaskWait {
    /// Waits until the task has ended, asks what this client cannot be asked, or the patience is over. If the server stops, the
    /// wait ends soon, because the task is found again after that.
    pub(super) async fn run(self, patience: Duration) -> Result<LoadedTask, RpcError> {
        if !self.cancels_abandoned {
            return self.wait(patience).await;
        }
        let (exchange, key, stream) = (self.exchange.clone(), self.key.clone(), self.stream.clone());
        let mut abandoned = AbandonedWait { exchange: exchange.clone(), key: Some(key.clone()) };
        let waited = self.wait(patience).await;
        abandoned.key = None;
        let task = waited?;
        // A server that stops closes the connections of its clients itself.
        let is_lost = stream.is_some_and(|stream| !stream.has_reader()) && !exchange.receiver.closing.is_cancelled();
        if task.snapshot.task.is_settled() || !is_lost {
            return Ok(task);
        }
        cancel(&exchange, &key).await;
        let task = LoadedTask::read(&exchange.receiver, &key, exchange.session.as_deref()).await;
        task.map_err(|error| refusal::of_engine(&error))
    }

    async fn wait(self, patience: Duration) -> Result<LoadedTask, RpcError> {
        let Self { exchange, key, token, stream, mut log, log_level, cancels_abandoned: _ } = self;
        let receiver = &exchange.receiver;
        let mut watch = receiver.engine.watch(&key);
        let _marks_stream = match (&exchange.session, &stream) {
            (Some(session), Some(stream)) => Some(session.wait_for_result(&key.id, stream)),
            _ => None,
        };
        let mut signs = Signs { token, stream, sent: None, started: Instant::now() };
        let interval = receiver.tickets().map_or(patience, |tickets| tickets.heartbeat);
        let deadline = tokio::time::sleep(patience);
        let stopped = receiver.response_time_over();
        tokio::pin!(deadline, stopped);
        let mut is_over = patience.is_zero();
        // Set when the session follows the task.
        let mut given_up: Option<watch::Receiver<Vec<QuestionKey>>> = None;
        loop {
            let task = LoadedTask::read(receiver, &key, exchange.session.as_deref()).await;
            let task = task.map_err(|error| refusal::of_engine(&error))?;
            signs.report(task.snapshot.progress.as_deref()).await;
            // A session sends the log of the tasks that it follows.
            if let (None, Some(log), Some(stream)) = (&exchange.session, &log, &signs.stream) {
                send_log(&exchange, log, log_level, stream);
            }
            if task.snapshot.task.is_settled() || is_over || asks_in_vain(&exchange, &task, given_up.as_mut()) {
                if let (Some(session), Some(stream)) = (&exchange.session, &signs.stream) {
                    session.send_log(&task.snapshot.task, stream);
                }
                audit::read(exchange.source(), &task.snapshot.task);
                return Ok(task);
            }
            if let Some(session) = exchange.session.as_ref().filter(|_| given_up.is_none()) {
                let last = LastNotified::of(&task.snapshot.task, exchange.generation).quiet();
                session.follow(LastNotified { log: log.take(), ..last }, true);
                given_up = session.given_up_questions(&key.id);
            }
            let heartbeat = tokio::time::sleep(interval);
            tokio::select! {
                () = watch.changed() => {}
                () = news(log.as_ref()), if log.is_some() => {}
                () = changed(given_up.as_mut()), if given_up.is_some() => {}
                () = heartbeat, if signs.token.is_some() => signs.beat().await,
                () = &mut deadline => is_over = true,
                () = &mut stopped => is_over = true,
            }
        }
    }
}

/// Cancels the task of a call that its client has abandoned. A task that has ended stays as it is.
async fn cancel(exchange: &Exchange, key: &TaskKey) {
    match exchange.receiver.engine.cancel(key, None).await {
        Ok(_) => audit::cancelled(exchange.source(), &key.id, true),
        Err(error) => tracing::debug!(task = %key.id, %error, "the task of an abandoned call goes on"),
    }
}

/// Cancels the task if the wait is dropped before it is over.
struct AbandonedWait {
    exchange: Exchange,
    key: Option<TaskKey>,
}

impl Drop for AbandonedWait {
    fn drop(&mut self) {
        // Without a runtime the process ends, and no client has given up.
        let (Some(key), Ok(runtime)) = (self.key.take(), Handle::try_current()) else { return };
        let exchange = self.exchange.clone();
        self.exchange.receiver.tracker.spawn_on(async move { cancel(&exchange, &key).await }, &runtime);
    }
}

fn send_log(exchange: &Exchange, log: &LogTail, level: Option<LogLevel>, stream: &MessageStream) {
    log.pass_on(|line| {
        let message = log::message(&line);
        if logging::is_wanted(message, level, exchange.peer.revision) {
            stream.send_lossy(&logging::notification(message, None));
        }
    });
}

async fn changed(given_up: Option<&mut watch::Receiver<Vec<QuestionKey>>>) {
    // The sender is gone when the task is no longer followed.
    if let Some(given_up) = given_up
        && given_up.changed().await.is_err()
    {
        std::future::pending::<()>().await;
    }
}

async fn news(log: Option<&LogTail>) {
    if let Some(log) = log {
        log.changed().await;
    }
}

/// Whether the task waits for an answer that its client cannot be asked for while it waits.
fn asks_in_vain(
    exchange: &Exchange,
    task: &LoadedTask,
    given_up: Option<&mut watch::Receiver<Vec<QuestionKey>>>,
) -> bool {
    let given_up = given_up.map(|given_up| given_up.borrow_and_update().clone()).unwrap_or_default();
    let can_ask = |asked: &Question| {
        let can_answer = exchange.session.is_some() && exchange.peer.can_answer(asked.kind, &asked.params);
        can_answer && !given_up.contains(&asked.key)
    };
    let open = task.snapshot.task.phase.questions();
    let in_vain = open.is_some_and(|open| !open.iter().all(can_ask));
    // What a subtask asks is not read here; a client that can be asked anything is asked by its session.
    let is_deaf = exchange.session.is_none() || !exchange.peer.capabilities.can_be_asked();
    in_vain || (task.view().asking_child.is_some() && is_deaf)
}

/// What a client that waits is told.
struct Signs {
    token: Option<RequestId>,
    stream: Option<Arc<MessageStream>>,
    sent: Option<Progress>,
    started: Instant,
}

impl Signs {
    async fn report(&mut self, newest: Option<&Progress>) {
        let last = self.sent.as_ref().map(|sent| sent.done);
        if let Some(newest) = newest.filter(|newest| progress::grows(last, newest)) {
            self.send(newest.clone()).await;
        }
    }

    async fn beat(&mut self) {
        let seconds = self.started.elapsed().as_secs();
        let last = self.sent.clone().unwrap_or(Progress { done: 0.0, total: None, message: None, at: Timestamp::ZERO });
        let message = match &last.message {
            Some(message) => format!("{message} ({seconds} s)"),
            None => format!("Still running after {seconds} s"),
        };
        let beat = Progress { done: last.done + HEARTBEAT_PROGRESS, message: Some(message.into()), ..last.clone() };
        self.send(beat).await;
        // The next heartbeat repeats what the handler said, and not this one.
        if let Some(sent) = &mut self.sent {
            sent.message = last.message;
        }
    }

    async fn send(&mut self, progress: Progress) {
        if let (Some(token), Some(stream)) = (&self.token, &self.stream) {
            stream.send(progress::notification(token, &progress, None)).await;
        }
        self.sent = Some(progress);
    }
}

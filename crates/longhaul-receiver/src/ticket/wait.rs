//! The wait for a task by a client without tasks, with signs of life.

use std::sync::Arc;
use std::time::Duration;

use longhaul_engine::audit;
use longhaul_task::{Progress, TaskKey, Timestamp};
use longhaul_wire::jsonrpc::{RequestId, RpcError};
use longhaul_wire::progress;
use tokio::time::Instant;

use crate::exchange::Exchange;
use crate::loaded_task::LoadedTask;
use crate::refusal;
use crate::session::LastNotified;
use crate::stream::MessageStream;

/// How much of a unit of progress a heartbeat counts. Progress has to grow with every notification, and a heartbeat
/// must leave room for the next report of the handler.
const HEARTBEAT_PROGRESS: f64 = 1e-6;

pub(super) struct TaskWait {
    pub(super) exchange: Exchange,
    pub(super) key: TaskKey,
    pub(super) token: Option<RequestId>,
    pub(super) stream: Option<Arc<MessageStream>>,
}

impl TaskWait {
    /// Waits until the task has ended, asks what this client cannot be asked, or the patience is over; also until the server
    /// stops, because the task is found again after that.
    pub(super) async fn run(self, patience: Duration) -> Result<LoadedTask, RpcError> {
        let Self { exchange, key, token, stream } = self;
        let receiver = &exchange.receiver;
        let mut watch = receiver.engine.watch(&key);
        let _marks_stream = match (&exchange.session, &stream) {
            (Some(session), Some(stream)) => Some(session.wait_for_result(&key.id, stream)),
            _ => None,
        };
        let mut signs = Signs { token, stream, sent: None, started: Instant::now() };
        let interval = receiver.tickets().map_or(patience, |tickets| tickets.heartbeat);
        let deadline = tokio::time::sleep(patience);
        tokio::pin!(deadline);
        let mut is_over = patience.is_zero();
        let mut is_followed = false;
        loop {
            let task = LoadedTask::read(receiver, &key).await.map_err(|error| refusal::of_engine(&error))?;
            signs.report(task.snapshot.progress.as_deref()).await;
            if task.snapshot.task.is_settled() || is_over || asks_in_vain(&exchange, &task) {
                if let (Some(session), Some(stream)) = (&exchange.session, &signs.stream) {
                    session.send_log(&task.snapshot.task, stream);
                }
                audit::read(exchange.source(), &task.snapshot.task);
                return Ok(task);
            }
            if let Some(session) = exchange.session.as_ref().filter(|_| !is_followed) {
                session.follow(LastNotified::of(&task.snapshot.task, exchange.generation).quiet(), true);
                is_followed = true;
            }
            let heartbeat = tokio::time::sleep(interval);
            tokio::select! {
                () = watch.changed() => {}
                () = heartbeat, if signs.token.is_some() => signs.beat().await,
                () = &mut deadline => is_over = true,
                () = receiver.closing.cancelled() => is_over = true,
            }
        }
    }
}

/// Whether the task waits for an answer that its client cannot be asked for while it waits.
fn asks_in_vain(exchange: &Exchange, task: &LoadedTask) -> bool {
    let can_ask = |kind, params| exchange.session.is_some() && exchange.peer.can_answer(kind, params);
    let open = task.snapshot.task.phase.questions();
    let in_vain = open.is_some_and(|open| open.iter().any(|asked| !can_ask(asked.kind, &asked.params)));
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

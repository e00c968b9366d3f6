//! `tasks/get`, `tasks/result`, `tasks/list`, `tasks/cancel`.

use std::sync::Arc;
use std::time::Duration;

use longhaul_engine::{EngineError, audit as events};
use longhaul_store::{Listing, StoreError};
use longhaul_task::{Refused, TaskId, TaskKey};
use longhaul_wire::core2025::{Operation, tasks_cancel, tasks_get, tasks_list, tasks_result};
use longhaul_wire::jsonrpc::{self, RequestId, RpcError};
use longhaul_wire::{View, refusal as words};

use super::channel::Channel;
use super::follow::Told;
use super::session::Session;
use crate::seal::bound;
use crate::shown::Shown;
use crate::{audit, refusal};

const RESULT: &str = "tasks/result";

/// How long whoever waits for a result still does when the server stops: less than its connections may take to end.
const RESULT_AT_STOP_TIME_MAX: Duration = Duration::from_secs(4);

/// How many tasks a page of the list has.
const PAGE_TASKS_MAX: usize = 50;

pub(super) async fn get(session: &Arc<Session>, id: &RequestId, task: TaskId) -> Result<String, RpcError> {
    let key = session.key(task);
    let shown = look_up(session, &key, "tasks/get").await?;
    if !shown.snapshot.task.is_settled() {
        session.attend(&key, Told::of(&shown.snapshot), false);
    }
    Ok(tasks_get::answer(id, &shown.view(&session.shared)))
}

/// The result, if it is there already.
pub(super) async fn result_now(
    session: &Arc<Session>,
    id: &RequestId,
    key: &TaskKey,
) -> Result<Option<String>, RpcError> {
    Ok(result_of(session, id, key, &look_up(session, key, RESULT).await?))
}

fn result_of(session: &Arc<Session>, id: &RequestId, key: &TaskKey, shown: &Shown) -> Option<String> {
    let answer = tasks_result::answer(id, &shown.view(&session.shared), session.peer.revision);
    if answer.is_none() {
        session.attend(key, Told::of(&shown.snapshot), true);
    }
    answer
}

/// The result, once it is there. Meanwhile the client hears of the task on this stream.
pub(super) async fn result(session: &Arc<Session>, id: &RequestId, key: &TaskKey, channel: &Arc<Channel>) -> String {
    let shared = &session.shared;
    let mut watch = shared.engine.watch(key);
    let refused = |error| {
        let operation = Operation::TasksResult(key.id.clone());
        audit::refused_in_session(&session.owner, Some(&operation), &error);
        jsonrpc::error(Some(id), &error)
    };
    let _waits = session.awaits_result(&key.id, channel);
    let stopped = stopped(session);
    tokio::pin!(stopped);
    loop {
        let is_waiting = match read(session, key).await {
            Ok(shown) => {
                if let Some(answer) = result_of(session, id, key, &shown) {
                    session.pass_on_log(&shown.snapshot.task, channel);
                    events::read(audit::stateful(&session.owner, RESULT), &shown.snapshot.task);
                    return answer;
                }
                shown.snapshot.task.phase.questions().is_some()
            }
            Err(error) => return refused(error),
        };
        tokio::select! {
            () = watch.changed() => {}
            () = &mut stopped => return refused(refusal::of_engine(&EngineError::Draining)),
            // Nobody will answer any more.
            () = shared.closing.cancelled(), if is_waiting => {
                return refused(refusal::of_engine(&EngineError::Draining));
            }
        }
    }
}

/// Resolves when a server that stops cannot wait for results any longer: some tasks still end in time.
async fn stopped(session: &Session) {
    session.shared.closing.cancelled().await;
    tokio::time::sleep(RESULT_AT_STOP_TIME_MAX).await;
}

pub(super) async fn list(session: &Session, id: &RequestId, cursor: Option<&str>) -> Result<String, RpcError> {
    if !session.is_known {
        return Err(words::no_such_method("tasks/list"));
    }
    let shared = &session.shared;
    let place = bound(&["cursor", session.owner.as_str()]);
    let after = match cursor {
        None => None,
        Some(cursor) => {
            let last = shared.session_seal.open(&place, cursor).and_then(|last| String::from_utf8(last).ok());
            let last = last.and_then(|last| TaskId::parse(&last).ok()).ok_or_else(words::no_such_cursor)?;
            Some(session.key(last))
        }
    };
    let listing = Listing { owner: Some(session.owner.clone()), after, limit: PAGE_TASKS_MAX };
    let failed = |error: EngineError| refusal::of_engine(&error);
    let page = shared.engine.store().list(&listing).await.map_err(|error| failed(error.into()))?;
    let now = shared.engine.now().await.map_err(failed)?;
    let last = page.tasks.last().filter(|_| page.more).map(|last| last.task.key.id.clone());
    let mut shown = Vec::with_capacity(page.tasks.len());
    for snapshot in page.tasks {
        shown.push(Shown::of(shared, snapshot, now).await.map_err(failed)?);
    }
    events::listed(audit::stateful(&session.owner, "tasks/list"), shown.len());
    let views: Vec<View<'_>> = shown.iter().map(|shown| shown.view(shared)).collect();
    let chance = &**shared.engine.chance();
    let next = last.and_then(|last| shared.session_seal.close(&place, last.as_str().as_bytes(), chance));
    Ok(tasks_list::answer(id, &views, next.as_deref()))
}

pub(super) async fn cancel(session: &Session, id: &RequestId, task: TaskId) -> Result<String, RpcError> {
    let key = session.key(task);
    let shared = &session.shared;
    match shared.rates.look_up(&session.owner, shared.engine.cancel(&key, None)).await? {
        Ok(_) => {
            events::cancelled(audit::stateful(&session.owner, "tasks/cancel"), &key.id, true);
            Ok(tasks_cancel::answer(id, &read(session, &key).await?.view(&session.shared)))
        }
        Err(EngineError::Store(StoreError::Refused(Refused::Settled))) => {
            Err(tasks_cancel::already_ended(&read(session, &key).await?.view(&session.shared)))
        }
        Err(error) => Err(refusal::of_engine(&error)),
    }
}

/// Reads a task by the name that the client gave.
async fn look_up(session: &Session, key: &TaskKey, method: &str) -> Result<Shown, RpcError> {
    let shared = &session.shared;
    let found = shared.rates.look_up(&session.owner, Shown::read(shared, key)).await?;
    let shown = found.map_err(|error| refusal::of_engine(&error))?;
    events::read(audit::stateful(&session.owner, method), &shown.snapshot.task);
    Ok(shown)
}

async fn read(session: &Session, key: &TaskKey) -> Result<Shown, RpcError> {
    Shown::read(&session.shared, key).await.map_err(|error| refusal::of_engine(&error))
}

impl Session {
    pub(super) fn key(&self, id: TaskId) -> TaskKey {
        TaskKey { owner: self.owner.clone(), id }
    }
}

//! `tasks/get`, `tasks/update`, `tasks/cancel`.

use longhaul_engine::{EngineError, audit as events};
use longhaul_store::StoreError;
use longhaul_task::{Json, Owner, QuestionKey, Refused, TaskKey};
use longhaul_wire::ext2026::{Params, required_task_id, tasks_cancel, tasks_get, tasks_update};
use longhaul_wire::jsonrpc::{RequestId, RpcError};

use crate::receiver::Shared;
use crate::shown::Shown;
use crate::{Reply, audit, refusal};

pub(super) async fn get(
    shared: &Shared,
    owner: &Owner,
    id: &RequestId,
    params: &Params<'_>,
) -> Result<Reply, RpcError> {
    let key = TaskKey { owner: owner.clone(), id: required_task_id(params)? };
    let shown = shared.rates.look_up(owner, Shown::read(shared, &key)).await?;
    let shown = shown.map_err(|error| refusal::of_engine(&error))?;
    events::read(audit::stateless(owner, "tasks/get"), &shown.snapshot.task);
    Ok(Reply::ok(tasks_get::answer(id, &shown.view(shared), &shared.server)))
}

pub(super) async fn update(
    shared: &Shared,
    owner: &Owner,
    id: &RequestId,
    params: &Params<'_>,
) -> Result<Reply, RpcError> {
    let update = tasks_update::Update::parse(params)?;
    let key = TaskKey { owner: owner.clone(), id: update.task_id };
    let found = shared.rates.look_up(owner, shared.engine.read(&key)).await?;
    let task = found.map_err(|error| refusal::of_engine(&error))?.task;
    let mut answers = Vec::new();
    for (name, body) in update.input_responses.iter() {
        let question = QuestionKey::from_text(name);
        // What was never asked or has been answered is not looked at.
        if let Some(open) = task.phase.questions().and_then(|open| open.find(&question)) {
            tasks_update::check(open, body)?;
            answers.push((question, Json::from_text(body.get())));
        }
    }
    for (question, body) in answers {
        match shared.engine.answer(&key, question.clone(), body).await {
            Ok(_) => events::answered(audit::stateless(owner, "tasks/update"), &key.id, &question),
            // Somebody else was quicker, or the task is over: this answer is one to a spent key.
            Err(EngineError::Store(StoreError::Refused(_))) => {}
            Err(error) => return Err(refusal::of_engine(&error)),
        }
    }
    Ok(Reply::ok(tasks_update::answer(id, &shared.server)))
}

pub(super) async fn cancel(
    shared: &Shared,
    owner: &Owner,
    id: &RequestId,
    params: &Params<'_>,
) -> Result<Reply, RpcError> {
    let key = TaskKey { owner: owner.clone(), id: tasks_cancel::task_id(params)? };
    let changed = match shared.rates.look_up(owner, shared.engine.cancel(&key, None)).await? {
        Ok(_) => true,
        Err(EngineError::Store(StoreError::Refused(Refused::Settled))) => false,
        Err(error) => return Err(refusal::of_engine(&error)),
    };
    events::cancelled(audit::stateless(owner, "tasks/cancel"), &key.id, changed);
    Ok(Reply::ok(tasks_cancel::answer(id, &shared.server)))
}

//! The cancellation of a task.

use longhaul_engine::{EngineError, audit};
use longhaul_store::StoreError;
use longhaul_task::TransitionError;
use longhaul_wire::ticket;
use serde_json::value::RawValue;

use super::{NoResult, TaskArguments, TicketResult, names, read, task_id};
use crate::exchange::Exchange;
use crate::refusal;

pub(super) async fn perform(exchange: &Exchange, arguments: &RawValue) -> TicketResult {
    let TaskArguments { task_id: id } = read(arguments)?;
    let receiver = &exchange.receiver;
    let key = exchange.find_key(task_id(&id)?).await;
    match receiver.rates.look_up(&exchange.owner, receiver.engine.cancel(&key, None)).await? {
        Ok(_) => audit::cancelled(exchange.source(), &key.id, true),
        Err(EngineError::Store(StoreError::Refused(TransitionError::Settled))) => {
            audit::cancelled(exchange.source(), &key.id, false);
        }
        Err(error) => return Err(NoResult::from(refusal::of_engine(&error))),
    }
    let task = exchange.look_up(&key).await?;
    Ok(ticket::ticket(&task.view(), &names(exchange)))
}

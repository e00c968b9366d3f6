//! The deletion of a task, with its subtasks, before its retention ends.

use longhaul_engine::{EngineError, audit};
use longhaul_store::StoreError;
use longhaul_task::{TaskId, TransitionError};
use longhaul_wire::jsonrpc::RpcError;
use longhaul_wire::{RelatedTask, refusal as wire_refusal};

use crate::exchange::Exchange;
use crate::refusal;

pub(super) async fn perform(exchange: &Exchange, id: TaskId) -> Result<String, RpcError> {
    let receiver = &exchange.receiver;
    let key = exchange.find_key(id).await;
    match receiver.rates.look_up(&exchange.owner, receiver.engine.delete(&key)).await? {
        Ok(task) => {
            audit::deleted(exchange.source(), &task);
            let deleted = RelatedTask::to(exchange.generation, &task);
            Ok(exchange.generation.deleted(&exchange.reply_to(), deleted))
        }
        Err(EngineError::Store(StoreError::Refused(TransitionError::NotRoot))) => {
            Err(wire_refusal::cannot_delete_subtask())
        }
        Err(EngineError::Store(StoreError::Refused(TransitionError::WrongPhase(_)))) => {
            Err(wire_refusal::cannot_delete_open_task())
        }
        Err(error) => Err(refusal::of_engine(&error)),
    }
}

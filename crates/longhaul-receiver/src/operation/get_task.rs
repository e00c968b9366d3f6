//! The state of a task.

use longhaul_task::TaskId;
use longhaul_wire::jsonrpc::RpcError;

use crate::exchange::Exchange;

pub(super) async fn perform(exchange: &Exchange, id: TaskId) -> Result<String, RpcError> {
    let task = exchange.look_up(&exchange.key(id)).await?;
    exchange.follow(&task.snapshot.task, false);
    Ok(exchange.generation.task(&exchange.reply_to(), &task.view()))
}

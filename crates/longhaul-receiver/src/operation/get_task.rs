//! The state of a task.

use longhaul_task::TaskId;
use longhaul_wire::jsonrpc::RpcError;

use crate::exchange::Exchange;

pub(super) async fn perform(exchange: &Exchange, id: TaskId) -> Result<String, RpcError> {
    let task = exchange.look_up(&exchange.find_key(id).await).await?;
    let exchange = exchange.about(&task.snapshot.task);
    exchange.follow(&task.snapshot.task, false);
    Ok(exchange.generation.task(&exchange.reply_to(), &task.view()))
}

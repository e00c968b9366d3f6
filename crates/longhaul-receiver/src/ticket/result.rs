//! The result of a task that has ended; before, how it stands.

use longhaul_wire::ticket;
use serde_json::value::RawValue;

use super::{TaskArguments, TicketResult, names, read, task_id};
use crate::exchange::Exchange;

pub(super) async fn perform(exchange: &Exchange, arguments: &RawValue) -> TicketResult {
    let TaskArguments { task_id: id } = read(arguments)?;
    let task = exchange.look_up(&exchange.find_key(task_id(&id)?).await).await?;
    let view = task.view();
    Ok(ticket::result(&view).unwrap_or_else(|| ticket::ticket(&view, &names(exchange))))
}

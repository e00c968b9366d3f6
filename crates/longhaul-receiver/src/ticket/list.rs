//! The tasks of a caller that is known.

use longhaul_wire::{TaskView, ticket};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{TicketResult, names, read};
use crate::exchange::Exchange;
use crate::loaded_task::LoadedTask;
use crate::operation::list_tasks;

#[derive(Deserialize)]
struct ListArguments {
    cursor: Option<String>,
}

pub(super) async fn perform(exchange: &Exchange, arguments: &RawValue) -> TicketResult {
    let ListArguments { cursor } = read(arguments)?;
    let (tasks, next) = list_tasks::page(exchange, cursor.as_deref()).await?;
    let views: Vec<TaskView<'_>> = tasks.iter().map(LoadedTask::view).collect();
    Ok(ticket::page(&views, &names(exchange), next.as_deref()))
}

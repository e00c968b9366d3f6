//! The tasks of one owner, page by page, in descending order of their IDs: newest first, except for IDs that clients chose.

use longhaul_engine::{EngineError, audit};
use longhaul_store::ListQuery;
use longhaul_task::TaskId;
use longhaul_wire::jsonrpc::RpcError;
use longhaul_wire::{TaskView, refusal as wire_refusal};

use crate::exchange::Exchange;
use crate::loaded_task::LoadedTask;
use crate::refusal;
use crate::seal::binding_of;

/// Tasks on one page.
const PAGE_TASKS_MAX: usize = 50;

pub(super) async fn perform(exchange: &Exchange, cursor: Option<&str>) -> Result<String, RpcError> {
    if !exchange.is_identified {
        return Err(wire_refusal::unknown_method_in_session(exchange.method));
    }
    let (tasks, next) = page(exchange, cursor).await?;
    let views: Vec<TaskView<'_>> = tasks.iter().map(LoadedTask::view).collect();
    Ok(exchange.generation.page(&exchange.reply_to(), &views, next.as_deref()))
}

/// One page, and the cursor of the next one.
pub(crate) async fn page(
    exchange: &Exchange,
    cursor: Option<&str>,
) -> Result<(Vec<LoadedTask>, Option<String>), RpcError> {
    let receiver = &exchange.receiver;
    let binding = binding_of(&["cursor", exchange.owner.as_str()]);
    let after = match cursor {
        None => None,
        Some(cursor) => {
            let last = receiver.session_seal.open(&binding, cursor).and_then(|last| String::from_utf8(last).ok());
            let last = last.and_then(|last| TaskId::parse(&last).ok()).ok_or_else(wire_refusal::no_such_cursor)?;
            Some(exchange.key(last))
        }
    };
    let listing = ListQuery { owner: Some(exchange.owner.clone()), after, limit: PAGE_TASKS_MAX };
    let failed = |error: EngineError| refusal::of_engine(&error);
    let page = receiver.engine.store().list(&listing).await.map_err(|error| failed(error.into()))?;
    let last = page.tasks.last().filter(|_| page.has_more).map(|last| last.task.key.id.clone());
    let mut tasks = Vec::with_capacity(page.tasks.len());
    for snapshot in page.tasks {
        tasks.push(LoadedTask::of(receiver, snapshot, exchange.session.as_deref()).await.map_err(failed)?);
    }
    audit::listed(exchange.source(), tasks.len());
    let random = &**receiver.engine.random();
    let next = last.and_then(|last| receiver.session_seal.close(&binding, last.as_str().as_bytes(), random));
    Ok((tasks, next))
}

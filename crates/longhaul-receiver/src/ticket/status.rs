//! How a task stands; waits a while for its end or for a question.

use std::sync::Arc;
use std::time::Duration;

use longhaul_wire::jsonrpc::RequestId;
use longhaul_wire::ticket;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::wait::TaskWait;
use super::{TicketResult, names, read, task_id};
use crate::exchange::Exchange;
use crate::stream::MessageStream;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StatusArguments {
    task_id: String,
    #[serde(default)]
    wait_seconds: f64,
}

pub(super) async fn perform(
    exchange: &Exchange,
    arguments: &RawValue,
    token: Option<RequestId>,
    stream: Option<Arc<MessageStream>>,
) -> TicketResult {
    let StatusArguments { task_id: id, wait_seconds } = read(arguments)?;
    let key = exchange.find_key(task_id(&id)?).await;
    exchange.look_up(&key).await?;
    let longest = exchange.receiver.tickets().map(|tickets| tickets.patience).unwrap_or_default();
    let wait = Duration::try_from_secs_f64(wait_seconds).unwrap_or(longest).min(longest);
    let exchange = exchange.clone();
    let (log, log_level, cancels_abandoned) = (None, None, false);
    let waiting = TaskWait { exchange: exchange.clone(), key, token, stream, log, log_level, cancels_abandoned };
    let task = waiting.run(wait).await?;
    Ok(ticket::ticket(&task.view(), &names(&exchange)))
}

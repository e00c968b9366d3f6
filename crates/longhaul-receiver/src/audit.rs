//! Refused requests in the audit log. Everything else is logged where it is done.

use longhaul_engine::audit::{AuditRefusal, is_wanted, refused as record, word};
use longhaul_task::{Owner, TaskId};
use longhaul_wire::jsonrpc::{Request, RpcError};
use longhaul_wire::{Generation, refusal as wire_refusal};
use serde::Deserialize;

use crate::exchange::Exchange;

pub use longhaul_engine::audit::TARGET;

/// A request was refused before or by its operation.
pub(crate) fn refused(owner: &Owner, generation: Generation, request: &Request<'_>, error: &RpcError) {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Names {
        #[serde(rename = "taskId")]
        task: String,
        name: Option<String>,
    }
    if !is_wanted() {
        return;
    }
    let names = request.params.raw().and_then(|params| serde_json::from_str::<Names>(params.get()).ok());
    let Names { task, name } = names.unwrap_or_default();
    let task = TaskId::parse(&task).ok();
    let refusal = AuditRefusal {
        owner: Some(owner),
        generation: Some(generation.label()),
        method: Some(&*request.method),
        task: task.as_ref(),
        tool: name.as_deref(),
        ..AuditRefusal::default()
    };
    write(refusal, error);
}

/// A request was refused while it was worked on.
pub(crate) fn work_failed(exchange: &Exchange, task: Option<&TaskId>, tool: Option<&str>, error: &RpcError) {
    if is_wanted() {
        let (generation, method) = (Some(exchange.generation.label()), Some(exchange.method));
        write(
            AuditRefusal { owner: Some(&exchange.owner), generation, method, task, tool, ..AuditRefusal::default() },
            error,
        );
    }
}

/// Bytes in a session were no message.
pub(crate) fn not_a_message(owner: &Owner, generation: Generation, error: &RpcError) {
    if is_wanted() {
        write(
            AuditRefusal { owner: Some(owner), generation: Some(generation.label()), ..AuditRefusal::default() },
            error,
        );
    }
}

/// A request was refused on its way to the receiver, or its response on the way back.
pub fn turned_away(owner: Option<&Owner>, error: &RpcError) {
    if is_wanted() {
        write(AuditRefusal { owner, ..AuditRefusal::default() }, error);
    }
}

fn write(refusal: AuditRefusal<'_>, error: &RpcError) {
    let own = word(error.data.as_ref());
    // On the wire an unknown task is an invalid parameter like any other. The log shows callers who guess IDs.
    let code = own.as_deref().or_else(|| wire_refusal::is_no_such_task(error).then_some("NOT_FOUND"));
    record(&AuditRefusal { error: error.code, code, http_status: Some(error.http_status()), ..refusal });
}

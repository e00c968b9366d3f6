//! Refused requests, for the audit log. Everything else that is in it is told where it is done.

use longhaul_engine::audit::{By, Refusal, is_wanted, refused as record, word};
use longhaul_task::{Owner, TaskId};
use longhaul_wire::core2025::{self, Operation};
use longhaul_wire::ext2026;
use longhaul_wire::jsonrpc::{Request, RpcError};
use serde::Deserialize;

pub use longhaul_engine::audit::TARGET;

/// Who asked for something in the stateless era.
pub(crate) fn stateless<'a>(owner: &'a Owner, method: &'a str) -> By<'a> {
    By { owner, generation: ext2026::ORIGIN, method }
}

/// Who asked for something in a session.
pub(crate) fn stateful<'a>(owner: &'a Owner, method: &'a str) -> By<'a> {
    By { owner, generation: core2025::ORIGIN, method }
}

/// A request of the stateless era was refused.
pub(crate) fn refused(owner: &Owner, request: &Request<'_>, error: &RpcError) {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Named {
        #[serde(rename = "taskId")]
        task: String,
        name: Option<String>,
    }
    if !is_wanted() {
        return;
    }
    let params = request.params.and_then(|params| serde_json::from_str::<Named>(params.get()).ok());
    let Named { task, name } = params.unwrap_or_default();
    let task = TaskId::parse(&task).ok();
    let (generation, method) = (Some(ext2026::ORIGIN), Some(&*request.method));
    let named = Refusal { generation, method, task: task.as_ref(), tool: name.as_deref(), ..Refusal::default() };
    say(owner, named, error);
}

/// A request of a session was refused; without an operation, if it was none.
pub(crate) fn refused_in_session(owner: &Owner, operation: Option<&Operation<'_>>, error: &RpcError) {
    if !is_wanted() {
        return;
    }
    let (task, tool) = match operation {
        Some(Operation::TasksGet(task) | Operation::TasksResult(task) | Operation::TasksCancel(task)) => {
            (Some(task), None)
        }
        Some(Operation::ToolsCall(call)) => (None, Some(&*call.name)),
        _ => (None, None),
    };
    let (generation, method) = (Some(core2025::ORIGIN), operation.map(Operation::method));
    say(owner, Refusal { generation, method, task, tool, ..Refusal::default() }, error);
}

/// A call that was begun came to an error: no task was made of it, or its tool refused it.
pub(crate) fn call_failed(generation: &'static str, owner: &Owner, tool: &str, error: &RpcError) {
    if is_wanted() {
        let (generation, method) = (Some(generation), Some("tools/call"));
        say(owner, Refusal { generation, method, tool: Some(tool), ..Refusal::default() }, error);
    }
}

/// A request was refused on the way to the receiver, or its answer on the way back.
pub fn turned_away(owner: Option<&Owner>, error: &RpcError) {
    if is_wanted() {
        tell(Refusal { owner, ..Refusal::default() }, error);
    }
}

fn say<'a>(owner: &'a Owner, named: Refusal<'a>, error: &'a RpcError) {
    tell(Refusal { owner: Some(owner), ..named }, error);
}

fn tell(named: Refusal<'_>, error: &RpcError) {
    let own = word(error.data.as_ref());
    // On the wire these are bad parameters like any others; whoever tries names out is to be found here.
    let code = own.as_deref().or_else(|| (*error == ext2026::no_such_task()).then_some("NOT_FOUND"));
    record(&Refusal { error: error.code, code, http_status: Some(error.http_status()), ..named });
}

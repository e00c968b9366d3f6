//! What is refused in the same words by every generation.

use longhaul_task::Json;

use crate::jsonrpc::{RpcError, code, shown};

/// The answer for a task that does not exist, that has expired, or that is somebody else's: nobody can tell which.
pub fn no_such_task() -> RpcError {
    RpcError::invalid_params("Failed to retrieve task: Task not found")
}

/// The answer for a tool that is not there.
pub fn no_such_tool(name: &str) -> RpcError {
    RpcError::invalid_params(format!("Unknown tool: {}", shown(name)))
}

/// The answer for a cursor that was never given out, or not to this caller.
pub fn no_such_cursor() -> RpcError {
    RpcError::invalid_params("The cursor is not valid; start again without one.")
}

/// The answer for a method that is not there, in a session. It carries no HTTP status of its own: there, 404 would
/// tell the client that its session is gone.
pub fn no_such_method(method: &str) -> RpcError {
    RpcError::new(code::METHOD_NOT_FOUND, format!("Method not found: {}", shown(method)))
}

/// The answer for a call as a task of a tool that never runs as one.
pub fn task_forbidden(tool: &str) -> RpcError {
    RpcError::new(code::METHOD_NOT_FOUND, format!("The tool '{}' does not support task augmentation", shown(tool)))
}

/// The answer for an ordinary call of a tool that always runs as a task.
pub fn task_required(tool: &str) -> RpcError {
    let message = format!("Task augmentation required for tools/call requests of the tool '{}'", shown(tool));
    RpcError::new(code::METHOD_NOT_FOUND, message)
}

/// The answer for the cancellation of a task that has ended, in the generations that do not simply acknowledge it.
pub fn already_ended(status: &str) -> RpcError {
    RpcError::invalid_params(format!("Cannot cancel task: already in terminal status '{status}'"))
}

/// The answer for the result of a task that was cancelled, where that is asked for.
pub fn task_was_cancelled() -> RpcError {
    RpcError::internal("The task was cancelled.").with_data(Json::from_text("{\"code\":\"CANCELLED\"}"))
}

/// The answer for a request whose own answer is not here any more.
pub fn lost() -> RpcError {
    RpcError::internal(
        "The answer to this request is lost, because the server was restarted or it was not fetched in time.",
    )
    .with_data(Json::from_text("{\"code\":\"ANSWER_LOST\"}"))
}

/// The answer for a second handshake in one session.
pub fn already_initialized() -> RpcError {
    RpcError::invalid_request("this session is initialized already")
}

/// The answer for an `MCP-Protocol-Version` header that names no version spoken here.
pub fn unsupported_header(sent: &str, spoken: &[&str]) -> RpcError {
    let (sent, spoken) = (shown(sent), spoken.join(", "));
    RpcError::invalid_request(&format!("MCP-Protocol-Version is '{sent}'; spoken here: {spoken}"))
}

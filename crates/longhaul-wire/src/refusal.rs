//! What is refused in the same words by every generation.

use crate::jsonrpc::{RpcError, shown};

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

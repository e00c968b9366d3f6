//! Errors that operations and generations choose by name. Codes and HTTP statuses of JSON-RPC are in `jsonrpc/error.rs`.

use longhaul_task::Json;

use crate::jsonrpc::{RpcError, code, quote};
use crate::{Capabilities, Capability, Peer, Revision, question};

/// For a task that does not exist, has expired or belongs to another owner. The three cannot be told apart.
pub fn no_such_task() -> RpcError {
    no_such_task_to("retrieve")
}

fn no_such_task_to(verb: &str) -> RpcError {
    RpcError::invalid_params(format!("Failed to {verb} task: Task not found"))
}

/// What a request wants to do with a task, by its method. Every other one retrieves it.
const TASK_VERBS: [(&str, &str); 3] =
    [("tasks/cancel", "cancel"), ("tasks/delete", "delete"), ("tasks/update", "update")];

/// Whether an error is for a task that does not exist, in a request with any method.
pub fn is_no_such_task(error: &RpcError) -> bool {
    *error == no_such_task() || TASK_VERBS.iter().any(|(_, verb)| *error == no_such_task_to(verb))
}

/// Names the action of the request in [`no_such_task`]: "Failed to cancel task". Other errors stay as they are.
pub fn with_verb_of_method(error: RpcError, method: &str) -> RpcError {
    match TASK_VERBS.iter().find(|(of, _)| *of == method) {
        Some((_, verb)) if error == no_such_task() => no_such_task_to(verb),
        _ => error,
    }
}

/// For an unknown tool.
pub fn no_such_tool(name: &str) -> RpcError {
    RpcError::invalid_params(format!("Unknown tool: {}", quote(name)))
}

/// For an unknown prompt.
pub fn no_such_prompt(name: &str) -> RpcError {
    RpcError::invalid_params(format!("Unknown prompt: {}", quote(name)))
}

/// For the completion of a resource or template that the server does not have.
pub fn no_such_template(uri: &str) -> RpcError {
    RpcError::invalid_params(format!("Unknown resource template: {}", quote(uri)))
}

/// For the completion of an argument that its prompt or template does not have.
pub fn no_such_argument(name: &str) -> RpcError {
    RpcError::invalid_params(format!("Unknown argument: {}", quote(name)))
}

/// For a method of a feature that the server does not offer.
pub fn not_offered(method: &str, revision: Revision) -> RpcError {
    if revision.is_stateless() { unknown_method(method) } else { unknown_method_in_session(method) }
}

/// For a cursor that the server did not issue, or not to this caller.
pub fn no_such_cursor() -> RpcError {
    RpcError::invalid_params("The cursor is not valid; start again without one.")
}

/// For an unknown method in the stateless era.
pub fn unknown_method(method: &str) -> RpcError {
    unknown_method_in_session(method).with_status(404)
}

/// For an unknown method in a session. Its HTTP status is not 404, which would tell the client that the session has ended.
pub fn unknown_method_in_session(method: &str) -> RpcError {
    RpcError::new(code::METHOD_NOT_FOUND, format!("Method not found: {}", quote(method)))
}

/// For a message outside of a session that is part of one.
pub fn session_required() -> RpcError {
    RpcError::invalid_request(
        "a request needs one Mcp-Session-Id header, which the answer to `initialize` has, or the `_meta` of 2026-07-28",
    )
}

/// For a request on a pipe that comes before the handshake.
pub fn handshake_required() -> RpcError {
    RpcError::malformed_params("a request needs a session, which `initialize` opens, or the `_meta` of 2026-07-28")
}

/// For a session that is unknown, has ended, or belongs to another owner. The three cannot be told apart.
pub fn no_such_session() -> RpcError {
    RpcError::invalid_request("there is no such session; begin a new one with `initialize`").with_status(404)
}

/// For a `requestState` that was not sealed for this call and owner, or that is too old.
pub fn no_such_state() -> RpcError {
    RpcError::invalid_params("`requestState` is not one that this call was given, or too old")
}

/// For a call that asks for a task of a tool that never runs as one.
pub fn task_forbidden(tool: &str) -> RpcError {
    RpcError::new(code::METHOD_NOT_FOUND, format!("The tool '{}' does not support task augmentation", quote(tool)))
}

/// For an ordinary call of a tool that always runs as a task.
pub fn task_required(tool: &str) -> RpcError {
    let message = format!("Task augmentation required for tools/call requests of the tool '{}'", quote(tool));
    RpcError::new(code::METHOD_NOT_FOUND, message)
}

/// For a question that the client of an ordinary call has not declared to be able to answer: the question, what is missing,
/// and what can be done.
pub fn cannot_ask(label: &str, params: &Json, capability: Capability, revision: Revision) -> String {
    let question = match question::message(params) {
        Some(message) => format!("\"{}\" (`{label}`)", quote(&message)),
        None => format!("`{label}`"),
    };
    let peer = Peer::new(revision, Capabilities::default().and(capability));
    let exists_at_revision = peer.capabilities.has(capability);
    let needed = if exists_at_revision {
        format!("a client with the capability {}", capability.declaration())
    } else {
        format!("a client of a later revision than {}", revision.as_str())
    };
    format!(
        "The tool asks {question}, which needs {needed}. Call it from such a client, or as a task, whose questions can be \
         answered from another client."
    )
}

/// For an idempotency key that is not valid.
pub fn bad_idempotency_key(why: &str) -> RpcError {
    RpcError::invalid_params(format!("The idempotency key is not valid: {why}."))
        .with_data(Json::from_text("{\"code\":\"BAD_IDEMPOTENCY_KEY\"}"))
}

/// For an idempotency key under which another request has created a task.
pub fn idempotency_key_used() -> RpcError {
    RpcError::invalid_params(
        "The idempotency key was used for a request with another tool, other arguments or another retention. Repeat that \
         request, or use a new key for this one.",
    )
    .with_data(Json::from_text("{\"code\":\"IDEMPOTENCY_KEY_USED\"}"))
}

/// For an idempotency key of a caller with neither an identity nor a session.
pub fn idempotency_key_needs_identity() -> RpcError {
    RpcError::invalid_params(
        "An idempotency key needs a caller with an identity or a session, because others could guess it. Send a token, open \
         a session, or leave the key out.",
    )
    .with_data(Json::from_text("{\"code\":\"IDEMPOTENCY_KEY_NEEDS_IDENTITY\"}"))
}

/// For the cancellation of a task that has ended, in the generations that do not simply acknowledge it.
pub fn already_ended(status: &str) -> RpcError {
    RpcError::invalid_params(format!("Cannot cancel task: already in terminal status '{status}'"))
}

/// For the result of a task that has not completed, in the generations whose request for it does not wait.
pub fn not_completed(status: &str) -> RpcError {
    RpcError::invalid_params(format!("Cannot retrieve result: Task status is '{status}', not 'completed'"))
}

/// For a task ID that the requestor has used before.
pub fn task_id_exists(id: &str) -> RpcError {
    RpcError::invalid_params(format!("Task ID already exists: {}", quote(id)))
}

/// For a task ID that is too long for the session of a requestor without an identity.
pub fn task_id_too_long(bytes: usize, bytes_max: usize) -> RpcError {
    let why = format!("The task ID has {bytes} bytes; the limit here is {bytes_max}. Choose a shorter one.");
    RpcError::invalid_params(why)
}

/// For the deletion of a task that has not ended.
pub fn cannot_delete_open_task() -> RpcError {
    RpcError::invalid_params(
        "Cannot delete task: it has not ended. Cancel it first, with `notifications/cancelled` or `tasks/cancel`.",
    )
}

/// For the deletion of a subtask, which its parent refers to.
pub fn cannot_delete_subtask() -> RpcError {
    RpcError::invalid_params("Cannot delete task: it is a subtask, and is deleted together with its parent.")
}

/// For the result of a cancelled task.
pub fn task_was_cancelled() -> RpcError {
    RpcError::internal("The task was cancelled.").with_data(Json::from_text("{\"code\":\"CANCELLED\"}"))
}

/// For a request whose answer is no longer stored.
pub fn lost() -> RpcError {
    RpcError::internal(
        "The answer to this request is lost, because the server was restarted or it was not fetched in time.",
    )
    .with_data(Json::from_text("{\"code\":\"ANSWER_LOST\"}"))
}

/// For a call that may have run already, and whose result is not stored.
pub fn not_repeated() -> RpcError {
    RpcError::internal(
        "The server ended before this call was done, and its result is lost. Call again if that does no harm.",
    )
    .with_data(Json::from_text("{\"code\":\"ANSWER_LOST\"}"))
}

/// For a second handshake in one session.
pub fn already_initialized() -> RpcError {
    RpcError::invalid_request("this session is initialized already")
}

/// For an `MCP-Protocol-Version` header that names an unsupported version.
pub fn unsupported_header(sent: &str, spoken: &[&str]) -> RpcError {
    let (sent, spoken) = (quote(sent), spoken.join(", "));
    RpcError::invalid_request(&format!("MCP-Protocol-Version is '{sent}'; spoken here: {spoken}"))
}

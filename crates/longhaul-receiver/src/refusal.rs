//! Refusals of the engine as JSON-RPC errors.

use longhaul_engine::{CtxError, EngineError};
use longhaul_store::StoreError;
use longhaul_task::{Json, TaskError};
use longhaul_wire::call_result::ResultForm;
use longhaul_wire::jsonrpc::{RpcError, quote};
use longhaul_wire::{Capability, Revision, refusal as wire_refusal};

/// Retry interval for refusals that end when others are done: unknown when, and one request a second costs little.
pub const SOON_MS: u64 = 1_000;

/// Retry interval for refusals that end when the operator acts.
const LATER_MS: u64 = 10_000;

/// An error of the engine as a JSON-RPC error, with the engine's stable code in its data.
pub(crate) fn of_engine(error: &EngineError) -> RpcError {
    if *error == EngineError::Store(StoreError::NotFound) {
        return wire_refusal::no_such_task();
    }
    if *error == EngineError::Store(StoreError::IdempotencyKeyUsed) {
        return wire_refusal::idempotency_key_used();
    }
    let code = error.code();
    let data = || Json::from_text(format!("{{\"code\":\"{code}\"}}"));
    match error {
        EngineError::InputTooLarge { .. } | EngineError::NoSuchTool(_) | EngineError::BadAnswer { .. } => {
            RpcError::invalid_params(error.to_string()).with_data(data())
        }
        EngineError::QueueFull { .. }
        | EngineError::TooManyCalls { .. }
        | EngineError::TooManyOpen { .. }
        | EngineError::Draining => RpcError::try_later(code, error.to_string(), SOON_MS),
        EngineError::Store(cause) => {
            // The cause may name files and disks, so it is not sent to clients. The store logs it.
            tracing::debug!(%cause, "a request was refused because of the store");
            let unchanged = "The server could not store this. Nothing was changed; try again later.";
            // Trying again could do the work twice.
            let in_doubt = "The server does not know whether this was stored. Look before you try again.";
            match cause {
                StoreError::Unavailable(_) => RpcError::try_later(code, unchanged, SOON_MS),
                StoreError::Full(_) => RpcError::try_later(code, unchanged, LATER_MS),
                StoreError::InDoubt(_) | StoreError::Stopped(_) => RpcError::internal(in_doubt).with_data(data()),
                _ => RpcError::internal("The server did not store this. Nothing was changed.").with_data(data()),
            }
        }
        other => RpcError::internal(other.to_string()).with_data(data()),
    }
}

/// The same, for a request with a result of this form: the engine runs prompts and reads of resources like tools.
pub(crate) fn of_engine_for(form: ResultForm, error: &EngineError) -> RpcError {
    let mut refusal = of_engine(error);
    let what = match form {
        ResultForm::Tool => return refusal,
        ResultForm::Prompt => "prompt",
        ResultForm::Resource(_) => "resource",
        ResultForm::Completion => "completion",
    };
    let why = match error {
        EngineError::NoSuchTool(_) => format!("this {what} is no longer offered"),
        EngineError::InputTooLarge { bytes, bytes_max } => {
            format!("the parameters have {bytes} bytes; this {what} takes at most {bytes_max}")
        }
        EngineError::QueueFull { queued_max } => format!(
            "you have used up your part of this {what}'s queue ({queued_max} tasks for all callers); try again later"
        ),
        EngineError::TooManyCalls { calls_max } => format!(
            "you have used up your part of the requests for this {what} ({calls_max} at once for all callers); try again in a \
             moment"
        ),
        _ => return refusal,
    };
    refusal.message = why.into();
    refusal
}

/// The refusal of a request past the limit of open requests.
pub(crate) fn too_many_in_flight() -> RpcError {
    let why = "too many requests are under way; wait for one of them or cancel it";
    RpcError::try_later("TOO_MANY_IN_FLIGHT", why, SOON_MS)
}

/// The refusal of a subscription past the limit of a session.
pub(crate) fn too_many_subscriptions(subscriptions_max: usize) -> RpcError {
    let why = format!("this session has subscribed to {subscriptions_max} resources; unsubscribe from some of them");
    RpcError::invalid_params(why).with_data(Json::from_text("{\"code\":\"TOO_MANY_SUBSCRIPTIONS\"}"))
}

/// The end of an ordinary call because the server stops. It says nothing about trying again: the work may be half done.
pub(crate) fn call_stopped() -> RpcError {
    let why = "The server is stopping, so this call was ended before it was done. What it has done so far remains.";
    RpcError::internal(why).with_data(Json::from_text("{\"code\":\"DRAINING\"}"))
}

/// The answer to a call whose task has not ended when the server stops. It says nothing about trying again: the same request
/// would be refused, because the ID of its task is used.
pub(crate) fn task_goes_on(id: &str) -> RpcError {
    let why = format!(
        "The server is stopping, and the task {} has not ended. The task is kept. Do not send this request again: when the \
         server is back, ask for the task by its ID, with `tasks/get` and then `tasks/result`.",
        quote(id)
    );
    RpcError::internal(why).with_data(Json::from_text("{\"code\":\"DRAINING\"}"))
}

/// The refusal of a request whose ID an open request of the same client has.
pub(crate) fn request_id_in_use() -> RpcError {
    RpcError::invalid_request("a request of this ID is still under way")
}

/// Why an ordinary call cannot go on. A stateless client can repair it: by declaring a capability, or by another answer.
pub(crate) fn of_stop(stop: &CtxError, revision: Revision) -> RpcError {
    match stop {
        CtxError::CannotAsk { kind, label, params } => {
            let capability = Capability::to_answer(*kind, params);
            let why = wire_refusal::cannot_ask(label, params, capability, revision);
            if revision.is_stateless() {
                capability.missing_for(&why)
            } else {
                RpcError::from(&TaskError::with_code(stop.code(), why))
            }
        }
        _ if !revision.is_stateless() => RpcError::from(&stop.task_error()),
        CtxError::BadAnswer(why) => RpcError::invalid_params(why.clone()),
        other => RpcError::internal(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_prompt_is_not_called_a_tool() {
        for error in [
            EngineError::NoSuchTool("prompts/get digest".into()),
            EngineError::InputTooLarge { bytes: 2, bytes_max: 1 },
            EngineError::QueueFull { queued_max: 1 },
            EngineError::TooManyCalls { calls_max: 1 },
        ] {
            let (tool, prompt) = (of_engine(&error), of_engine_for(ResultForm::Prompt, &error));
            assert_eq!(
                (prompt.code, &prompt.data, prompt.retry_after_ms()),
                (tool.code, &tool.data, tool.retry_after_ms())
            );
            assert!(prompt.message.contains("this prompt") && !prompt.message.contains("tool"), "{prompt}");
            assert_eq!(of_engine_for(ResultForm::Tool, &error), tool);
        }
    }

    #[test]
    fn what_passes_with_time_says_when_and_nothing_else_does() {
        let why = String::new;
        for (error, retry_after_ms) in [
            (EngineError::NoSuchTool("x".into()), None),
            (EngineError::InputTooLarge { bytes: 2, bytes_max: 1 }, None),
            (EngineError::QueueFull { queued_max: 1 }, Some(SOON_MS)),
            (EngineError::TooManyCalls { calls_max: 1 }, Some(SOON_MS)),
            (EngineError::TooManyOpen { open_max: 1 }, Some(SOON_MS)),
            (EngineError::Draining, Some(SOON_MS)),
            (StoreError::Unavailable(why()).into(), Some(SOON_MS)),
            (StoreError::Full(why()).into(), Some(LATER_MS)),
            (StoreError::InDoubt(why()).into(), None),
            (StoreError::Lapsed.into(), None),
            (StoreError::IdempotencyKeyUsed.into(), None),
            (StoreError::Stopped(why()).into(), None),
        ] {
            let refusal = of_engine(&error);
            let data = refusal.data.as_ref().unwrap().as_str();
            assert!(data.contains(&format!("\"code\":\"{}\"", error.code())), "{data}");
            let names_retry = retry_after_ms.is_none_or(|ms| data.contains(&format!("\"retryAfterMs\":{ms}")));
            assert!(names_retry && refusal.retry_after_ms() == retry_after_ms, "{data}");
            let is_certain = refusal.message.contains("Nothing was changed");
            let may_be_stored = matches!(error, EngineError::Store(StoreError::InDoubt(_) | StoreError::Stopped(_)));
            assert!(!(is_certain && may_be_stored), "{error}: {}", refusal.message);
        }
    }
}

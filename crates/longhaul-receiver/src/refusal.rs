//! The engine's refusals in the protocol's words.

use longhaul_engine::{EngineError, Stop};
use longhaul_store::StoreError;
use longhaul_task::Json;
use longhaul_wire::ext2026::{self, Capability};
use longhaul_wire::jsonrpc::RpcError;

/// When to try again what depends on others: nobody knows when they are done, and to ask once a second costs little.
pub const SOON_MS: u64 = 1_000;

/// When to try again what an operator has to see to.
const LATER_MS: u64 = 10_000;

/// Why the engine said no, as a JSON-RPC error. Our own code travels in its data, for scripts.
pub(crate) fn of_engine(error: &EngineError) -> RpcError {
    if *error == EngineError::Store(StoreError::NotFound) {
        return ext2026::no_such_task();
    }
    let code = error.code();
    let data = || Json::from_text(format!("{{\"code\":\"{code}\"}}"));
    match error {
        EngineError::InputTooLarge { .. } | EngineError::NoSuchTool(_) => {
            RpcError::invalid_params(error.to_string()).with_data(data())
        }
        EngineError::QueueFull { .. } | EngineError::TooManyOpen { .. } | EngineError::Draining => {
            RpcError::try_later(code, error.to_string(), SOON_MS)
        }
        EngineError::Store(cause) => {
            // The cause may name files and disks: it is for the operator, and the store itself puts it into the log.
            tracing::debug!(%cause, "a request was refused because of the store");
            let why = "The server could not store this. Nothing was changed; try again later.";
            match cause {
                StoreError::Unavailable(_) => RpcError::try_later(code, why, SOON_MS),
                StoreError::Full(_) => RpcError::try_later(code, why, LATER_MS),
                // Trying again would not help, or could do harm.
                _ => RpcError::internal(why).with_data(data()),
            }
        }
        other => RpcError::internal(other.to_string()).with_data(data()),
    }
}

/// The refusal of a request that is one too many of those under way.
pub fn too_many_in_flight() -> RpcError {
    let why = "too many requests are under way; wait for one of them or cancel it";
    RpcError::try_later("TOO_MANY_IN_FLIGHT", why, SOON_MS)
}

/// Why an ordinary call cannot go on.
pub(crate) fn of_stop(stop: &Stop) -> RpcError {
    match stop {
        Stop::CannotAsk(kind) => Capability::to_answer(*kind, &Json::from_text("{}")).missing(),
        Stop::BadAnswer(why) => RpcError::invalid_params(why.clone()),
        other => RpcError::internal(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_with_time_says_when_and_nothing_else_does() {
        let why = String::new;
        for (error, retry_after_ms) in [
            (EngineError::NoSuchTool("x".into()), None),
            (EngineError::InputTooLarge { bytes: 2, bytes_max: 1 }, None),
            (EngineError::QueueFull { queued_max: 1 }, Some(SOON_MS)),
            (EngineError::TooManyOpen { open_max: 1 }, Some(SOON_MS)),
            (EngineError::Draining, Some(SOON_MS)),
            (StoreError::Unavailable(why()).into(), Some(SOON_MS)),
            (StoreError::Full(why()).into(), Some(LATER_MS)),
            (StoreError::InDoubt(why()).into(), None),
            (StoreError::Lapsed.into(), None),
            (StoreError::Stopped(why()).into(), None),
        ] {
            let refusal = of_engine(&error);
            let data = refusal.data.as_ref().unwrap().as_str();
            assert!(data.contains(&format!("\"code\":\"{}\"", error.code())), "{data}");
            let told = retry_after_ms.is_none_or(|ms| data.contains(&format!("\"retryAfterMs\":{ms}")));
            assert!(told && refusal.retry_after_ms() == retry_after_ms, "{data}");
        }
    }
}

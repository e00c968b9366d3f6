//! The engine's refusals in the protocol's words.

use longhaul_engine::{EngineError, Stop};
use longhaul_store::StoreError;
use longhaul_task::Json;
use longhaul_wire::ext2026::{self, Capability};
use longhaul_wire::jsonrpc::RpcError;

/// Why the engine said no, as a JSON-RPC error. Our own code travels in its data, for scripts.
pub(crate) fn of_engine(error: &EngineError) -> RpcError {
    if *error == EngineError::Store(StoreError::NotFound) {
        return ext2026::no_such_task();
    }
    let data = Json::from_text(format!("{{\"code\":\"{}\"}}", error.code()));
    let refusal = match error {
        EngineError::InputTooLarge { .. } | EngineError::NoSuchTool(_) => RpcError::invalid_params(error.to_string()),
        EngineError::QueueFull { .. } | EngineError::TooManyOpen { .. } | EngineError::Draining => {
            RpcError::internal(error.to_string())
        }
        EngineError::Store(cause) => {
            // The cause may name files and disks: it is for the operator, and the store itself puts it into the log.
            tracing::debug!(%cause, "a request was refused because of the store");
            RpcError::internal("The server could not store this. Nothing was changed; try again later.")
        }
    };
    refusal.with_data(data)
}

/// Why an ordinary call cannot go on.
pub(crate) fn of_stop(stop: &Stop) -> RpcError {
    match stop {
        Stop::CannotAsk(kind) => Capability::to_answer(*kind, &Json::from_text("{}")).missing(),
        Stop::BadAnswer(why) => RpcError::invalid_params(why.clone()),
        other => RpcError::internal(other.to_string()),
    }
}

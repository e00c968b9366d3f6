//! Which requests under an idempotency key are the same, and to whom the key belongs.

use std::sync::Arc;

use longhaul_store::IdempotencyKey;
use longhaul_task::TaskId;
use longhaul_wire::canonical::canonical;
use longhaul_wire::jsonrpc::RpcError;
use longhaul_wire::{CallTool, Headers, TaskRequest, Ttl, refusal as wire_refusal};
use sha2::{Digest as _, Sha256};

use crate::exchange::Exchange;
use crate::seal::binding_of;

/// The idempotency key of a call that becomes a task, with the digest of what the call asks for.
pub(crate) fn of_call(
    exchange: &Exchange,
    call: &CallTool<'_>,
    headers: Option<&(dyn Headers + Sync)>,
) -> Result<Option<IdempotencyKey>, RpcError> {
    let Some(key) = call.idempotency_key(headers.map(|headers| headers as &dyn Headers))? else { return Ok(None) };
    of_request(exchange, &key, &call.name, call.arguments.get(), call.task.as_ref()).map(Some)
}

/// The key that a client or a relay has given to a request, with the digest of what the request asks for.
pub(crate) fn of_request(
    exchange: &Exchange,
    key: &str,
    function: &str,
    input: &str,
    task: Option<&TaskRequest>,
) -> Result<IdempotencyKey, RpcError> {
    Ok(IdempotencyKey { key: scoped_key(exchange, key)?, digest: digest(function, input, task) })
}

/// Names the same call of the same client in a period of time; `None` for a client that cannot be told from others.
pub(crate) fn of_same_call(exchange: &Exchange, tool: &str, arguments: &str, period: u64) -> Option<IdempotencyKey> {
    let digest = digest(tool, arguments, None);
    let name = digest[..16].iter().fold(String::new(), |name, byte| format!("{name}{byte:02x}"));
    // The control character keeps it apart from the keys that clients choose.
    let key = scoped_key(exchange, &format!("call\u{1f}{period}\u{1f}{name}")).ok()?;
    Some(IdempotencyKey { key, digest })
}

/// The key as it is stored for the owner. All callers without an identity are one owner, and one of them could guess the key of
/// another and see its task. So the stored key of such a caller includes its session.
fn scoped_key(exchange: &Exchange, key: &str) -> Result<Arc<str>, RpcError> {
    match &exchange.session {
        _ if exchange.is_identified => Ok(key.into()),
        // The control character keeps it apart from the keys of callers with an identity.
        Some(session) => Ok(format!("{}\u{1f}{key}", session.scope()).into()),
        None => Err(wire_refusal::idempotency_key_needs_identity()),
    }
}

/// Digest of what a call asks for: its tool, its arguments, its retention, and the ID of its task if it has chosen one. The order
/// of the members of the arguments and the generation of the call make no difference.
fn digest(tool: &str, arguments: &str, task: Option<&TaskRequest>) -> [u8; 32] {
    let arguments = canonical(arguments);
    let retention = match task.map(|task| task.ttl).unwrap_or_default() {
        Ttl::Usual | Ttl::UsualAfterEnd => String::new(),
        Ttl::Unlimited => "unlimited".to_owned(),
        Ttl::Ms(ms) => ms.to_string(),
        Ttl::MsAfterEnd(ms) => format!("{ms} after its end"),
    };
    let mut parts = vec![tool, arguments.as_deref().unwrap_or_default(), &retention];
    parts.extend(task.and_then(|task| task.id.as_ref()).map(TaskId::as_str));
    Sha256::digest(binding_of(&parts)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_its_tool_its_arguments_its_retention_and_its_task_id() {
        let ttl = |ttl| Some(TaskRequest { ttl, ..TaskRequest::default() });
        let first = digest("echo", r#"{"a":1,"b":2}"#, None);
        let chosen = TaskRequest { id: TaskId::parse("mine").ok(), ..TaskRequest::default() };
        assert_eq!(first, digest("echo", r#"{"b": 2, "a": 1.0}"#, None), "the order of members does not count");
        assert_eq!(first, digest("echo", r#"{"a":1,"b":2}"#, ttl(Ttl::Usual).as_ref()), "nor the generation");
        for other in [
            digest("echo2", r#"{"a":1,"b":2}"#, None),
            digest("echo", r#"{"a":1,"b":3}"#, None),
            digest("echo", r#"{"a":1}"#, None),
            digest("echo", r#"{"a":1,"b":2}"#, ttl(Ttl::Ms(60_000)).as_ref()),
            digest("echo", r#"{"a":1,"b":2}"#, ttl(Ttl::Unlimited).as_ref()),
            digest("echo", r#"{"a":1,"b":2}"#, Some(&chosen)),
        ] {
            assert_ne!(first, other);
        }
    }
}

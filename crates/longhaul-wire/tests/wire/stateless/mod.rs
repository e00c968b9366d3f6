//! Requests at 2026-07-28, and tasks by the extension.

mod conversation;
mod headers;
mod properties;
mod requests;
mod schemas;

use longhaul_wire::jsonrpc::{RequestId, RpcError};
use longhaul_wire::{Context, Generation, ReplyTo, Revision, RoutedRequest, ServerInfo, route};

use crate::common::*;

const TASKS: Generation = Generation::Ext2026;

fn routed(message: &str) -> Result<RoutedRequest<'_>, RpcError> {
    route(&request(message), &Context::Stateless { headers: None })
}

fn accepted(message: &str) -> RoutedRequest<'_> {
    routed(message).unwrap()
}

fn refused(message: &str) -> RpcError {
    routed(message).unwrap_err()
}

fn to<'a>(id: &'a RequestId, server: &'a ServerInfo) -> ReplyTo<'a> {
    ReplyTo { id, revision: Revision::V2026_07_28, server }
}

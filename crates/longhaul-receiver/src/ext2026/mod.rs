//! The stateless era: every request stands for itself.

mod subscriptions_listen;
mod tasks;
mod tools_call;

use std::sync::Arc;

use longhaul_wire::ext2026::{
    Accepted, Cache, Capability, Headers, Method, VERSION, accept, discover, subscriptions_listen::Filter, tools_list,
};
use longhaul_wire::jsonrpc::{Request, RpcError};

use crate::receiver::Shared;
use crate::{Caller, Kind, Reply, audit};

/// The protocol versions that are spoken here.
pub(crate) const VERSIONS: &[&str] = &[VERSION];

/// Answers one request.
pub(crate) async fn receive(
    shared: &Arc<Shared>,
    caller: &Caller,
    request: &Request<'_>,
    headers: Option<&(dyn Headers + Sync)>,
) -> Reply {
    match dispatch(shared, caller, request, headers).await {
        Ok(reply) => reply,
        Err(error) => {
            audit::refused(&caller.owner, request, &error);
            Reply::refusal(Some(&request.id), &error)
        }
    }
}

async fn dispatch(
    shared: &Arc<Shared>,
    caller: &Caller,
    request: &Request<'_>,
    headers: Option<&(dyn Headers + Sync)>,
) -> Result<Reply, RpcError> {
    shared.rates.admit(&caller.owner, Kind::of(&request.method))?;
    let accepted = accept(request, headers.map(|headers| headers as &dyn Headers), VERSIONS)?;
    let Accepted { method, params, meta } = &accepted;
    if method.is_about_a_task() {
        meta.capabilities.require(Capability::Tasks)?;
    }
    let (id, owner) = (&request.id, &caller.owner);
    match method {
        Method::TasksGet => tasks::get(shared, owner, id, params).await,
        Method::ToolsCall => tools_call::receive(shared, caller, id, &accepted, headers).await,
        Method::TasksUpdate => tasks::update(shared, owner, id, params).await,
        Method::TasksCancel => tasks::cancel(shared, owner, id, params).await,
        Method::SubscriptionsListen => {
            let filter = Filter::parse(params, meta.capabilities)?;
            subscriptions_listen::receive(shared, owner, id, filter).await
        }
        Method::Discover => {
            let instructions = shared.options.instructions.as_deref();
            let cache = cache(shared);
            let found = discover::Discovered { versions: VERSIONS, tells_tool_changes: false, instructions, cache };
            Ok(Reply::ok(discover::answer(id, &found, &shared.server)))
        }
        Method::ToolsList => {
            // All tools are on the first page, so nobody can have a cursor of ours.
            if tools_list::cursor(params)?.is_some() {
                return Err(tools_list::no_such_cursor());
            }
            let tools = shared.catalogue.declarations();
            let page =
                tools_list::Page { tools: &tools, next_cursor: None, cache: cache(shared), may_get_tickets: false };
            Ok(Reply::ok(tools_list::answer(id, &page, &shared.server)))
        }
    }
}

fn cache(shared: &Shared) -> Cache {
    Cache { ttl_ms: shared.options.list_ttl_ms, is_public: true }
}

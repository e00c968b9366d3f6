//! `tasks/get`: how a task stands, with everything it has to show.

use super::{ServerInfo, task};
use crate::View;
use crate::jsonrpc::{self, RequestId};

/// The answer. Its own result type is always `complete`: it is the whole answer to this request.
pub fn answer(id: &RequestId, view: &View<'_>, server: &ServerInfo) -> String {
    jsonrpc::response(id, server.room() + task::room(view), |out| {
        out.push_str("{\"resultType\":\"complete\",");
        task::write_detailed(out, view);
        server.write_meta(out);
        out.push('}');
    })
}

//! `tasks/get`: how a task stands.

use super::task;
use crate::jsonrpc::{self, RequestId};
use crate::{View, project};

/// The answer. Its result is not in it: that is what `tasks/result` is for.
pub fn answer(id: &RequestId, view: &View<'_>) -> String {
    jsonrpc::response(id, project::room(view), |out| {
        out.push('{');
        task::write(out, view);
        out.push('}');
    })
}

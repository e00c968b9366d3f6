//! `notifications/tasks/status`: a task has changed.

use super::task;
use crate::{View, jsonrpc, project};

/// The notification: all of the task, as `tasks/get` would show it. It needs no related-task key, having the ID.
pub fn notification(view: &View<'_>) -> String {
    jsonrpc::notification("notifications/tasks/status", project::room(view), |out| {
        out.push('{');
        task::write(out, view);
        out.push('}');
    })
}

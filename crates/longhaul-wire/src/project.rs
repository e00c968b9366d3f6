//! The members of a task that every generation shows, each under the generation's names.

use crate::{TaskView, text};

/// The names and values in which generations differ.
pub(crate) struct TaskFields<'a> {
    pub(crate) status: &'a str,
    pub(crate) message: Option<&'a str>,
    /// The name of the retention, and its smallest valid value.
    pub(crate) ttl: (&'static str, u64),
    /// The name of the poll hint.
    pub(crate) poll_interval: &'static str,
}

/// Appends the members, from `"taskId"` on, without a comma before it.
pub(crate) fn write(out: &mut String, view: &TaskView<'_>, fields: &TaskFields<'_>) {
    let task = view.task;
    out.push_str("\"taskId\":");
    text::push_str(out, task.key.id.shown());
    text::push_str_member(out, "status", fields.status);
    write_message(out, "statusMessage", view, fields.message);
    text::push_time_member(out, "createdAt", task.created_at);
    text::push_time_member(out, "lastUpdatedAt", view.updated_at());
    let (ttl, ttl_ms_min) = fields.ttl;
    match task.ttl_ms() {
        Some(ms) => text::push_number_member(out, ttl, ms.max(ttl_ms_min)),
        None => text::push_raw_member(out, ttl, "null"),
    }
    if view.poll_interval_ms > 0 {
        text::push_number_member(out, fields.poll_interval, view.poll_interval_ms);
    }
    write_family(out, view);
}

/// Appends the status message, which names the child that waits for an answer: a client that knows no subtasks would not look
/// at it.
pub(crate) fn write_message(out: &mut String, name: &str, view: &TaskView<'_>, message: Option<&str>) {
    match (message, view.asking_child) {
        (Some(message), None) => text::push_str_member(out, name, message),
        (message, Some(child)) => {
            let message = message.map_or(String::new(), |message| format!("{message} "));
            let asking = format!("{message}(The subtask {} waits for an answer.)", child.shown());
            text::push_str_member(out, name, &asking);
        }
        (None, None) => {}
    }
}

/// Appends the parent and the children of a task.
pub(crate) fn write_family(out: &mut String, view: &TaskView<'_>) {
    if let Some(parent) = &view.task.family.parent {
        text::push_str_member(out, "parentTaskId", parent.shown());
    }
    if !view.children.is_empty() {
        out.push_str(",\"childTaskIds\":[");
        for (index, child) in view.children.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            text::push_str(out, child.shown());
        }
        out.push(']');
    }
}

/// Bytes of these members, roughly.
pub(crate) fn room(view: &TaskView<'_>) -> usize {
    const PLAIN_BYTES: usize = 384;
    const CHILD_BYTES: usize = 48;
    PLAIN_BYTES + view.message().map_or(0, |message| message.len()) + CHILD_BYTES * view.children.len()
}

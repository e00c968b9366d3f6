use longhaul_task::{Task, TaskId};
use serde_json::value::RawValue;

use crate::text;

/// The key that ties a message to a task.
pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

/// The task that a message belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Related<'a> {
    /// Its ID.
    pub task_id: &'a TaskId,
    /// Its parent's, if it is a subtask.
    pub parent: Option<&'a TaskId>,
}

impl<'a> Related<'a> {
    /// To that task.
    pub fn to(task: &'a Task) -> Self {
        Self { task_id: &task.key.id, parent: task.family.parent.as_ref() }
    }

    /// Appends the key and its value.
    fn write(self, out: &mut String) {
        text::push_str(out, RELATED_TASK);
        out.push_str(":{\"taskId\":");
        text::push_str(out, self.task_id.as_str());
        if let Some(parent) = self.parent {
            text::push_str_member(out, "parentTaskId", parent.as_str());
        }
        out.push('}');
    }
}

/// Appends `,"_meta":{…}` with what is there already and the key, or nothing when there is neither. A key that is
/// there already is somebody else's task: an upstream's, in a message that was passed on.
pub(super) fn write_meta(out: &mut String, there: Option<&RawValue>, related: Option<Related<'_>>) {
    let mut members = String::new();
    if let Some(related) = related {
        members.push(',');
        related.write(&mut members);
    }
    if let Some(there) = there {
        text::each_member(there, |name, value| {
            if name != RELATED_TASK {
                text::push_foreign_member(&mut members, &name, value.get());
            }
        });
    }
    if !members.is_empty() {
        out.push_str(",\"_meta\":{");
        out.push_str(&members[1..]);
        out.push('}');
    }
}

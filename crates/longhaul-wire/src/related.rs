use longhaul_task::{Task, TaskId};
use serde_json::value::RawValue;

use crate::{Generation, text};

/// The task that a message belongs to. Its key in `_meta` is the generation's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RelatedTask<'a> {
    pub generation: Generation,
    pub task_id: &'a TaskId,
    pub parent: Option<&'a TaskId>,
}

impl<'a> RelatedTask<'a> {
    pub fn to(generation: Generation, task: &'a Task) -> Self {
        Self { generation, task_id: &task.key.id, parent: task.family.parent.as_ref() }
    }

    /// Appends `,"key":{…}`; nothing in a generation without such a key.
    fn write(self, out: &mut String) {
        let Some(key) = self.generation.related_task_key() else { return };
        out.push(',');
        text::push_str(out, key);
        out.push_str(":{\"taskId\":");
        text::push_str(out, self.task_id.shown());
        if let Some(parent) = self.parent {
            text::push_str_member(out, "parentTaskId", parent.shown());
        }
        out.push('}');
    }
}

/// The related-task keys of all generations.
pub(crate) fn keys() -> impl Iterator<Item = &'static str> {
    Generation::ALL.into_iter().filter_map(|generation| generation.related_task_key())
}

/// Appends `,"_meta":{…}` with the members of `there` and the related task, or nothing when there are none. A related-task
/// key in `there` is left out: in a message that was passed on it names a task of the upstream server.
pub(crate) fn write_meta(out: &mut String, there: Option<&RawValue>, related: Option<RelatedTask<'_>>) {
    let mut members = String::new();
    if let Some(related) = related {
        related.write(&mut members);
    }
    if let Some(there) = there {
        text::each_member(there, |name, value| {
            if keys().all(|key| key != name) {
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

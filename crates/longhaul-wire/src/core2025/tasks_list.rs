//! `tasks/list`: the tasks of one requestor, page by page.

use super::task;
use crate::jsonrpc::{self, RequestId};
use crate::{View, project, text};

/// The answer. `next_cursor` is there exactly when there are more.
pub fn answer(id: &RequestId, page: &[View<'_>], next_cursor: Option<&str>) -> String {
    let room: usize = page.iter().map(project::room).sum();
    jsonrpc::response(id, room + 64 + next_cursor.map_or(0, str::len), |out| {
        out.push_str("{\"tasks\":[");
        for (place, view) in page.iter().enumerate() {
            out.push_str(if place > 0 { ",{" } else { "{" });
            task::write(out, view);
            out.push('}');
        }
        out.push(']');
        if let Some(cursor) = next_cursor {
            text::push_str_member(out, "nextCursor", cursor);
        }
        out.push('}');
    })
}

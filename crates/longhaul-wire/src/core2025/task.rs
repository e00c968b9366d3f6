//! A task as this era shows it.

use std::sync::Arc;

use longhaul_task::{Outcome, Phase, Progress};
use serde_json::value::RawValue;

use super::Status;
use crate::project::{self, Words};
use crate::{View, text};

/// Appends the members of a task, from `"taskId"` on, without a comma before it.
pub(super) fn write(out: &mut String, view: &View<'_>) {
    let told = tool_error(&view.task.phase);
    let message = told.as_ref().or_else(|| view.message());
    write_as(out, view, Status::of(&view.task.phase), message.map(|message| &**message));
}

/// Appends the same for the answer to its creation. A task begins as `working`, even one that was over before the
/// answer was written: its end is told by the first poll.
pub(super) fn write_new(out: &mut String, view: &View<'_>) {
    let message = view.message().filter(|_| !view.task.is_settled());
    write_as(out, view, Status::Working, message.map(|message| &**message));
}

fn write_as(out: &mut String, view: &View<'_>, status: Status, message: Option<&str>) {
    let words = Words { status: status.as_str(), message, ttl: ("ttl", 0), poll_interval: "pollInterval" };
    project::write(out, view, &words);
}

/// What a tool said when it failed, within the limit of a status message. Clients show this and drop the result of a
/// task that failed.
fn tool_error(phase: &Phase) -> Option<Arc<str>> {
    let Some(Outcome::Answer { body, is_error: true }) = phase.outcome() else {
        return None;
    };
    let content = text::member(text::raw(body.as_str())?, "content")?;
    let blocks: Vec<&RawValue> = serde_json::from_str(content.get()).ok()?;
    let texts: Vec<_> =
        blocks.into_iter().filter_map(|block| text::member(block, "text")).filter_map(text::string).collect();
    (!texts.is_empty()).then(|| Progress::message(&texts.join("\n")))
}

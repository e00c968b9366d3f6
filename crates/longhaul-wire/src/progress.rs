//! `notifications/progress`, which is the same in every generation.

use longhaul_task::Progress;

use crate::jsonrpc::{self, RequestId};
use crate::text;

/// The notification, under the token that the call gave; `meta` appends what else the generation has to say. Numbers
/// that JSON cannot write are left out or shown as zero.
pub(crate) fn notification(token: &RequestId, progress: &Progress, meta: impl FnOnce(&mut String)) -> String {
    jsonrpc::notification("notifications/progress", 256, |out| {
        out.push_str("{\"progressToken\":");
        out.push_str(token.as_json());
        text::push_raw_member(out, "progress", &number(progress.done).unwrap_or_else(|| "0".to_owned()));
        if let Some(total) = progress.total.and_then(number) {
            text::push_raw_member(out, "total", &total);
        }
        if let Some(message) = &progress.message {
            text::push_str_member(out, "message", message);
        }
        meta(out);
        out.push('}');
    })
}

fn number(value: f64) -> Option<String> {
    value.is_finite().then(|| value.to_string())
}

//! `notifications/progress`: how far an ordinary call is. Never sent for a task.

use longhaul_task::Progress;

use crate::jsonrpc::{self, RequestId};
use crate::text;

/// The notification, under the token that the call gave. Numbers that JSON cannot write are left out or shown as
/// zero.
pub fn notification(token: &RequestId, progress: &Progress) -> String {
    jsonrpc::notification("notifications/progress", 128, |out| {
        out.push_str("{\"progressToken\":");
        out.push_str(token.as_json());
        text::push_raw_member(out, "progress", &number(progress.done).unwrap_or_else(|| "0".to_owned()));
        if let Some(total) = progress.total.and_then(number) {
            text::push_raw_member(out, "total", &total);
        }
        if let Some(message) = &progress.message {
            text::push_str_member(out, "message", message);
        }
        out.push('}');
    })
}

fn number(value: f64) -> Option<String> {
    value.is_finite().then(|| value.to_string())
}

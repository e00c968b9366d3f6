//! `notifications/progress`: how far an ordinary call is. Never sent for a task.

use longhaul_task::Progress;

use crate::jsonrpc::RequestId;
use crate::progress;

/// The notification, under the token that the call gave.
pub fn notification(token: &RequestId, progress: &Progress) -> String {
    progress::notification(token, progress, |_| {})
}

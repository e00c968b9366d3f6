//! `notifications/progress`, in both directions.

use std::borrow::Cow;

use longhaul_task::Progress;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::jsonrpc::{self, RequestId};
use crate::related::{RelatedTask, write_meta};
use crate::text;

/// Whether progress may be sent after `last`: the protocol requires numbers that grow, and JSON has only finite ones.
pub fn grows(last: Option<f64>, newest: &Progress) -> bool {
    newest.done.is_finite() && last.is_none_or(|last| newest.done > last)
}

/// The progress of a call under its token. In a session the token of a task stays valid until the task ends, and
/// `related` is the task; a stateless client gets no progress of tasks. Numbers that JSON cannot express are left out or
/// written as zero.
pub fn notification(token: &RequestId, progress: &Progress, related: Option<RelatedTask<'_>>) -> String {
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
        write_meta(out, None, related);
        out.push('}');
    })
}

fn number(value: f64) -> Option<String> {
    value.is_finite().then(|| value.to_string())
}

/// The client's progress with a request of the server.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientProgress<'a> {
    /// The token of the server's request.
    pub token: RequestId,
    pub done: f64,
    pub total: Option<f64>,
    pub message: Option<Cow<'a, str>>,
}

impl<'a> ClientProgress<'a> {
    /// `None` if the notification cannot be read; the protocol wants it ignored then.
    pub(crate) fn parse(params: Option<&'a RawValue>) -> Option<Self> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct ProgressParams<'a> {
            #[serde(borrow)]
            progress_token: &'a RawValue,
            progress: f64,
            #[serde(default)]
            total: Option<f64>,
            #[serde(borrow, default)]
            message: Option<&'a RawValue>,
        }
        let members: ProgressParams<'a> = serde_json::from_str(params?.get()).ok()?;
        Some(Self {
            token: RequestId::parse(members.progress_token)?,
            done: members.progress,
            total: members.total,
            message: members.message.and_then(text::string),
        })
    }
}

//! `notifications/progress`, in both directions.

use std::borrow::Cow;

use longhaul_task::Progress;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Related;
use super::related::write_meta;
use crate::jsonrpc::RequestId;
use crate::text;

/// How far a call is, under the token that it gave. For a task the token stays good until its end, and `related` is
/// the task.
pub fn notification(token: &RequestId, progress: &Progress, related: Option<Related<'_>>) -> String {
    crate::progress::notification(token, progress, |out| write_meta(out, None, related))
}

/// How far a client is with a request of ours.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientProgress<'a> {
    /// The token that our request gave.
    pub token: RequestId,
    /// How much is done.
    pub done: f64,
    /// Out of how much, if that is known.
    pub total: Option<f64>,
    /// What is going on.
    pub message: Option<Cow<'a, str>>,
}

impl<'a> ClientProgress<'a> {
    /// Reads the notification; one that cannot be read is to be ignored.
    pub(super) fn parse(params: Option<&'a RawValue>) -> Option<Self> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Members<'a> {
            #[serde(borrow)]
            progress_token: &'a RawValue,
            progress: f64,
            #[serde(default)]
            total: Option<f64>,
            #[serde(borrow, default)]
            message: Option<&'a RawValue>,
        }
        let members: Members<'a> = serde_json::from_str(params?.get()).ok()?;
        Some(Self {
            token: RequestId::parse(members.progress_token)?,
            done: members.progress,
            total: members.total,
            message: members.message.and_then(text::string),
        })
    }
}

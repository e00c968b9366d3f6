//! The notifications that a client can send.

use crate::CancelledRequest;
use crate::jsonrpc::Notification;
use crate::progress::ClientProgress;
use crate::remote_task::RemoteTask;

/// A notification of a session's client.
#[derive(Debug)]
pub enum ClientNotification<'a> {
    /// `notifications/initialized`: from now on the server may send requests.
    Initialized,
    /// `notifications/cancelled`: the client no longer needs the answer to a request of its own.
    Cancelled(CancelledRequest),
    /// `notifications/progress` of a request of the server.
    Progress(ClientProgress<'a>),
    /// `notifications/tasks/status` of a task that the client runs for the server.
    TaskStatus(RemoteTask),
    /// `notifications/roots/list_changed`
    RootsChanged,
    /// Unknown or unreadable; the protocol wants such notifications ignored.
    Ignored,
}

impl<'a> ClientNotification<'a> {
    pub fn read(notification: &Notification<'a>) -> Self {
        let params = notification.params.raw();
        let notice = match &*notification.method {
            "notifications/initialized" => Some(Self::Initialized),
            "notifications/cancelled" => CancelledRequest::parse(params).map(Self::Cancelled),
            "notifications/progress" => ClientProgress::parse(params).map(Self::Progress),
            "notifications/tasks/status" => params.and_then(|task| RemoteTask::parse(task).ok()).map(Self::TaskStatus),
            "notifications/roots/list_changed" => Some(Self::RootsChanged),
            _ => None,
        };
        notice.unwrap_or(Self::Ignored)
    }
}

use std::borrow::Cow;

use longhaul_task::TaskId;

use super::params::Params;
use super::requestor::RemoteTask;
use super::tools_call::Call;
use super::{ClientProgress, Meta, Revision};
use crate::jsonrpc::{self, Message, Rejected, RequestId, Response, RpcError};
use crate::params::{optional_string, required_string, required_task_id};
use crate::{Cancelled, LogLevel, refusal};

/// One message of a client, in a session.
#[derive(Debug)]
pub enum Incoming<'a> {
    /// Wants an answer.
    Request(Request<'a>),
    /// Wants none.
    Notice(Notice<'a>),
    /// Is the answer to a request of ours.
    Response(Response<'a>),
}

/// Something that a client asks for.
#[derive(Debug)]
pub struct Request<'a> {
    /// Goes back with the answer.
    pub id: RequestId,
    /// What the request says about itself.
    pub meta: Meta<'a>,
    /// What is asked for.
    pub operation: Operation<'a>,
}

/// The requests of this era. A generation that shares it adds its own here.
#[derive(Debug)]
pub enum Operation<'a> {
    /// `ping`
    Ping,
    /// `tools/list`
    ToolsList {
        /// Where the page begins; at the beginning, when it does not say.
        cursor: Option<Cow<'a, str>>,
    },
    /// `tools/call`
    ToolsCall(Call<'a>),
    /// `tasks/get`
    TasksGet(TaskId),
    /// `tasks/result`
    TasksResult(TaskId),
    /// `tasks/list`
    TasksList {
        /// Where the page begins; at the beginning, when it does not say.
        cursor: Option<Cow<'a, str>>,
    },
    /// `tasks/cancel`
    TasksCancel(TaskId),
    /// `logging/setLevel`
    SetLevel(LogLevel),
}

impl Operation<'_> {
    /// The method's name.
    pub const fn method(&self) -> &'static str {
        match self {
            Self::Ping => "ping",
            Self::ToolsList { .. } => "tools/list",
            Self::ToolsCall(_) => "tools/call",
            Self::TasksGet(_) => "tasks/get",
            Self::TasksResult(_) => "tasks/result",
            Self::TasksList { .. } => "tasks/list",
            Self::TasksCancel(_) => "tasks/cancel",
            Self::SetLevel(_) => "logging/setLevel",
        }
    }
}

/// Something that a client tells. What cannot be read is ignored, as the protocol wants it.
#[derive(Debug)]
pub enum Notice<'a> {
    /// `notifications/initialized`: from now on the server may ask, too.
    Initialized,
    /// `notifications/cancelled`: it gives up a request of its own.
    Cancelled(Cancelled),
    /// `notifications/progress`: how far a request of ours is.
    Progress(ClientProgress<'a>),
    /// `notifications/tasks/status`: a task that it runs for us has changed.
    TaskStatus(RemoteTask),
    /// `notifications/roots/list_changed`: it works in other folders now.
    RootsChanged,
    /// Anything else.
    Ignored,
}

/// What came in one piece.
#[derive(Debug)]
pub enum Read<'a> {
    /// One message.
    One(Incoming<'a>),
    /// Several, each by itself: a bad one spoils no other. The answers go out as [`jsonrpc::batch`].
    Batch(Vec<Result<Incoming<'a>, Rejected>>),
}

/// Reads what a client sent in a session. A batch is taken where the revision has them.
pub fn read(bytes: &[u8], revision: Revision) -> Result<Read<'_>, Rejected> {
    if revision.has_batches() && jsonrpc::is_batch(bytes) {
        let messages = jsonrpc::parse_batch(bytes)?;
        let accepted = messages.into_iter().map(|message| accept(message?, revision));
        return Ok(Read::Batch(accepted.collect()));
    }
    accept(jsonrpc::parse(bytes)?, revision).map(Read::One)
}

/// Sorts one message of a session: what it is, and whether its parameters can be read.
///
/// The requests about tasks are taken at every revision, because generations without a revision of their own share
/// their names: whoever finds the task knows whether there is one.
pub fn accept(message: Message<'_>, revision: Revision) -> Result<Incoming<'_>, Rejected> {
    match message {
        Message::Request(request) => {
            let id = request.id.clone();
            asked(request, revision).map(Incoming::Request).map_err(|error| Rejected { id: Some(id), error })
        }
        Message::Notification(told) => Ok(Incoming::Notice(notice(&told).unwrap_or(Notice::Ignored))),
        Message::Response(response) => Ok(Incoming::Response(response)),
    }
}

fn asked(request: jsonrpc::Request<'_>, revision: Revision) -> Result<Request<'_>, RpcError> {
    let params = Params::parse(request.params)?;
    let operation = match &*request.method {
        "ping" => Operation::Ping,
        "tools/list" => Operation::ToolsList { cursor: optional_string("cursor", params.cursor)? },
        "tools/call" => Operation::ToolsCall(Call::parse(&params, revision)?),
        "tasks/get" => Operation::TasksGet(required_task_id(params.task_id)?),
        "tasks/result" => Operation::TasksResult(required_task_id(params.task_id)?),
        "tasks/list" => Operation::TasksList { cursor: optional_string("cursor", params.cursor)? },
        "tasks/cancel" => Operation::TasksCancel(required_task_id(params.task_id)?),
        "logging/setLevel" => Operation::SetLevel(level(&params)?),
        "initialize" => return Err(refusal::already_initialized()),
        other => return Err(refusal::no_such_method(other)),
    };
    Ok(Request { id: request.id, meta: Meta::parse(params.meta)?, operation })
}

fn notice<'a>(told: &jsonrpc::Notification<'a>) -> Option<Notice<'a>> {
    match &*told.method {
        "notifications/initialized" => Some(Notice::Initialized),
        "notifications/cancelled" => Cancelled::parse(told.params).map(Notice::Cancelled),
        "notifications/progress" => ClientProgress::parse(told.params).map(Notice::Progress),
        "notifications/tasks/status" => RemoteTask::parse(told.params?).ok().map(Notice::TaskStatus),
        "notifications/roots/list_changed" => Some(Notice::RootsChanged),
        _ => None,
    }
}

fn level(params: &Params<'_>) -> Result<LogLevel, RpcError> {
    let name = required_string("level", params.level)?;
    LogLevel::parse(&name).ok_or_else(|| {
        let names = LogLevel::ALL.map(LogLevel::as_str).join(", ");
        RpcError::invalid_params(format!("`level` must be one of {names}"))
    })
}

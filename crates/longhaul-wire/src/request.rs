//! The operations that a request can ask for, and their parameters.

use std::borrow::Cow;

use longhaul_task::{Json, TaskId};
use serde_json::value::RawValue;

use crate::completion::Complete;
use crate::jsonrpc::{RequestId, RpcError};
use crate::meta::{StatelessMeta, is_repeated, session_idempotency_key, session_relayed_ms};
use crate::params::{RequestParams, optional_string, required_string};
use crate::subscription::SubscriptionFilter;
use crate::text::ObjectMembers;
use crate::{Generation, InputResponses, LogLevel, Peer, Revision, idempotency, text};

/// A request of a client whose parameters have been read. [`route`](crate::route()) makes it.
#[derive(Debug)]
pub struct RoutedRequest<'a> {
    pub id: RequestId,
    /// One of [`Operation::METHODS`].
    pub method: &'static str,
    pub generation: Generation,
    /// Whether the request is answered in the generation that made its task, because it does not name a generation.
    pub follows_task: bool,
    /// The client has declared only the tasks of this generation. About a task of any other generation, the request is
    /// refused for a missing capability.
    pub only_made_by: Option<Generation>,
    /// The generation that the request names. A session remembers it for later requests that name none.
    pub marker: Option<Generation>,
    /// The client of the session; without a session, the client as this request describes it.
    pub peer: Peer,
    /// Names the progress notifications of this request, until its answer or until the end of the task it becomes.
    pub progress_token: Option<RequestId>,
    /// The least severe log message that this request asks for (stateless requests only).
    pub log_level: Option<LogLevel>,
    pub operation: Operation<'a>,
}

/// The operations of all revisions except `initialize`, which opens a session.
#[derive(Debug)]
pub enum Operation<'a> {
    Ping,
    Discover,
    ListTools { cursor: Option<Cow<'a, str>> },
    CallTool(CallTool<'a>),
    ListPrompts { cursor: Option<Cow<'a, str>> },
    GetPrompt(GetPrompt<'a>),
    ListResources { cursor: Option<Cow<'a, str>> },
    ListResourceTemplates { cursor: Option<Cow<'a, str>> },
    ReadResource(ReadResource<'a>),
    SubscribeResource { uri: Cow<'a, str> },
    UnsubscribeResource { uri: Cow<'a, str> },
    Complete(Complete<'a>),
    GetTask(TaskId),
    TaskResult(TaskId),
    ListTasks { cursor: Option<Cow<'a, str>> },
    CancelTask(TaskId),
    DeleteTask(TaskId),
    UpdateTask(UpdateTask<'a>),
    Subscribe(SubscriptionFilter),
    SetLogLevel(LogLevel),
}

impl Operation<'_> {
    /// Every method of every revision, `initialize` included. Metrics use them as labels.
    pub const METHODS: &'static [&'static str] = &[
        "initialize",
        "ping",
        "server/discover",
        "tools/list",
        "tools/call",
        "prompts/list",
        "prompts/get",
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "resources/subscribe",
        "resources/unsubscribe",
        "completion/complete",
        "tasks/get",
        "tasks/result",
        "tasks/list",
        "tasks/cancel",
        "tasks/delete",
        "tasks/status",
        "tasks/update",
        "subscriptions/listen",
        "logging/setLevel",
    ];

    pub const fn method(&self) -> &'static str {
        match self {
            Self::Ping => "ping",
            Self::Discover => "server/discover",
            Self::ListTools { .. } => "tools/list",
            Self::CallTool(_) => "tools/call",
            Self::ListPrompts { .. } => "prompts/list",
            Self::GetPrompt(_) => "prompts/get",
            Self::ListResources { .. } => "resources/list",
            Self::ListResourceTemplates { .. } => "resources/templates/list",
            Self::ReadResource(_) => "resources/read",
            Self::SubscribeResource { .. } => "resources/subscribe",
            Self::UnsubscribeResource { .. } => "resources/unsubscribe",
            Self::Complete(_) => "completion/complete",
            Self::GetTask(_) => "tasks/get",
            Self::TaskResult(_) => "tasks/result",
            Self::ListTasks { .. } => "tasks/list",
            Self::CancelTask(_) => "tasks/cancel",
            Self::DeleteTask(_) => "tasks/delete",
            Self::UpdateTask(_) => "tasks/update",
            Self::Subscribe(_) => "subscriptions/listen",
            Self::SetLogLevel(_) => "logging/setLevel",
        }
    }
}

/// `tools/call`.
#[derive(Debug)]
pub struct CallTool<'a> {
    pub name: Cow<'a, str>,
    /// An object, `{}` when none was sent.
    pub arguments: &'a RawValue,
    /// Answers to the questions of an earlier round of the call.
    pub input_responses: Option<InputResponses<'a>>,
    /// The state that an earlier round gave to the client. It must be verified: the client may have made it up.
    pub request_state: Option<Cow<'a, str>>,
    /// How the call asks for a task. `None` if it does not; a stateless call never does, because there the server decides.
    pub task: Option<TaskRequest>,
    /// The idempotency key in `_meta`. It is checked later, and only if the call becomes a task.
    pub(crate) idempotency_key: Option<&'a RawValue>,
    /// The call was sent to an earlier server, too, and may have run there. If it becomes a task, its idempotency key makes
    /// sure that there is only one; an ordinary call is refused.
    pub is_repeated: bool,
    /// Set if a process that relays the call has added the idempotency key: when that process first sent the call, in
    /// milliseconds since 1970.
    pub relayed_ms: Option<u64>,
}

impl<'a> CallTool<'a> {
    /// Reads a stateless call. The `task` of an older generation is ignored.
    pub(crate) fn of_stateless(params: &RequestParams<'a>, meta: &StatelessMeta<'a>) -> Result<Self, RpcError> {
        Ok(Self {
            name: required_string("name", params.name)?,
            arguments: params.arguments()?,
            input_responses: params.input_responses.map(InputResponses::parse).transpose()?,
            request_state: optional_string("requestState", params.request_state)?,
            task: None,
            idempotency_key: meta.idempotency_key,
            is_repeated: meta.is_repeated,
            relayed_ms: meta.relayed_ms,
        })
    }

    /// Reads a call in a session.
    pub(crate) fn of_session(params: &RequestParams<'a>, task: Option<TaskRequest>) -> Result<Self, RpcError> {
        Ok(Self {
            name: required_string("name", params.name)?,
            arguments: params.arguments()?,
            input_responses: None,
            request_state: None,
            task,
            idempotency_key: session_idempotency_key(params.meta.as_ref()),
            is_repeated: is_repeated(params.meta.as_ref()),
            relayed_ms: session_relayed_ms(params.meta.as_ref()),
        })
    }
}

/// What a process that relays a request has added to it.
#[derive(Debug)]
pub struct RelayMark<'a> {
    /// An idempotency key that the process has chosen for this request.
    pub key: Cow<'a, str>,
    /// The request was sent to an earlier server, too. If it has created a task there, its answer comes from that task.
    pub is_repeated: bool,
}

impl<'a> RelayMark<'a> {
    fn read(meta: Option<&ObjectMembers<'a>>) -> Option<Self> {
        session_relayed_ms(meta)?;
        // A relay adds valid keys only.
        let key = text::string(session_idempotency_key(meta)?).filter(|key| idempotency::check(key).is_ok())?;
        Some(Self { key, is_repeated: is_repeated(meta) })
    }
}

/// `prompts/get`.
#[derive(Debug)]
pub struct GetPrompt<'a> {
    pub name: Cow<'a, str>,
    /// An object, `{}` when none was sent.
    pub arguments: &'a RawValue,
    /// As in [`CallTool`].
    pub input_responses: Option<InputResponses<'a>>,
    /// As in [`CallTool`].
    pub request_state: Option<Cow<'a, str>>,
    /// As in [`CallTool`].
    pub task: Option<TaskRequest>,
    pub relay: Option<RelayMark<'a>>,
}

impl<'a> GetPrompt<'a> {
    pub(crate) fn parse(
        params: &RequestParams<'a>,
        revision: Revision,
        task: Option<TaskRequest>,
    ) -> Result<Self, RpcError> {
        let (input_responses, request_state) = answers(params, revision)?;
        let name = required_string("name", params.name)?;
        let relay = RelayMark::read(params.meta.as_ref());
        Ok(Self { name, arguments: params.arguments()?, input_responses, request_state, task, relay })
    }

    /// The request as the input of the prompt's function.
    pub fn to_input(&self) -> Json {
        let mut out = String::from("{\"name\":");
        text::push_str(&mut out, &self.name);
        text::push_raw_member(&mut out, "arguments", self.arguments.get());
        out.push('}');
        Json::from_text(out)
    }
}

/// `resources/read`.
#[derive(Debug)]
pub struct ReadResource<'a> {
    pub uri: Cow<'a, str>,
    /// As in [`CallTool`].
    pub input_responses: Option<InputResponses<'a>>,
    /// As in [`CallTool`].
    pub request_state: Option<Cow<'a, str>>,
    /// As in [`CallTool`].
    pub task: Option<TaskRequest>,
    pub relay: Option<RelayMark<'a>>,
}

impl<'a> ReadResource<'a> {
    pub(crate) fn parse(
        params: &RequestParams<'a>,
        revision: Revision,
        task: Option<TaskRequest>,
    ) -> Result<Self, RpcError> {
        let (input_responses, request_state) = answers(params, revision)?;
        let relay = RelayMark::read(params.meta.as_ref());
        Ok(Self { uri: params.required_uri()?, input_responses, request_state, task, relay })
    }

    /// The request as the input of the resource's function.
    pub fn to_input(&self) -> Json {
        let mut out = String::from("{\"uri\":");
        text::push_str(&mut out, &self.uri);
        out.push('}');
        Json::from_text(out)
    }
}

/// The answers and the state of earlier rounds of a request. A request in a session has no rounds: its client is asked
/// while the request is open.
type Answers<'a> = (Option<InputResponses<'a>>, Option<Cow<'a, str>>);

fn answers<'a>(params: &RequestParams<'a>, revision: Revision) -> Result<Answers<'a>, RpcError> {
    if !revision.is_stateless() {
        return Ok((None, None));
    }
    let responses = params.input_responses.map(InputResponses::parse).transpose()?;
    Ok((responses, optional_string("requestState", params.request_state)?))
}

/// How a request asks to be run as a task.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TaskRequest {
    pub ttl: Ttl,
    /// The ID chosen by the requestor, in the generations that have it.
    pub id: Option<TaskId>,
    /// The requestor leaves it to the receiver whether there is a task.
    pub is_optional: bool,
    /// Why it is malformed, in the generations where this is an error only if the request would become a task.
    pub malformed: Option<Box<RpcError>>,
}

impl TaskRequest {
    pub(crate) fn with_error(error: RpcError) -> Self {
        Self { malformed: Some(Box::new(error)), ..Self::default() }
    }
}

/// The retention that a requestor asks for. The receiver may choose another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ttl {
    #[default]
    Usual,
    /// Counted from its creation.
    Ms(u64),
    /// Counted from its end.
    MsAfterEnd(u64),
    /// The usual time, counted from its end.
    UsualAfterEnd,
    /// `null`. The schema does not have it, but a published client sends it.
    Unlimited,
}

/// `tasks/update`: answers to any part of a task's open questions.
#[derive(Debug)]
pub struct UpdateTask<'a> {
    pub task_id: TaskId,
    pub input_responses: InputResponses<'a>,
}

impl<'a> UpdateTask<'a> {
    pub(crate) fn parse(params: &RequestParams<'a>) -> Result<Self, RpcError> {
        let responses =
            params.input_responses.ok_or_else(|| RpcError::invalid_params("`inputResponses` is missing"))?;
        Ok(Self { task_id: params.required_task_id()?, input_responses: InputResponses::parse(responses)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_with_a_key_that_cannot_be_stored_is_no_mark() {
        let has_mark = |key: &str| {
            let meta = serde_json::json!({ "longhaul/idempotency-key": key, "longhaul/relayed": 1 }).to_string();
            RelayMark::read(Some(&serde_json::from_str(&meta).unwrap())).is_some()
        };
        assert!(has_mark(&"k".repeat(255)));
        for key in [&*"k".repeat(256), "", "a\u{1f}b"] {
            assert!(!has_mark(key), "{key:?}");
        }
    }
}

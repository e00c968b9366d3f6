//! Which revision and which generation a request speaks, and what it asks for.
//!
//! | request | generation |
//! | --- | --- |
//! | its version header or its `_meta` names a stateless revision | [`Generation::Ext2026`]; every older marker in it is ignored |
//! | of these, `tasks/get` and `tasks/cancel` of a client that declares only the tasks of [`Generation::Core2025`] | the same, and only about tasks that were made by that generation |
//! | `tools/call` in a session | [`Generation::Core2025`] if the session's revision has tasks and there is `params.task`; else [`Generation::Sep1686`] or [`Generation::Lesson`] if its `_meta` asks for a task in their way |
//! | `prompts/get`, `resources/read` in a session | [`Generation::Sep1686`] or [`Generation::Lesson`] in the same way |
//! | `tasks/get`, `tasks/result` | [`Generation::Sep1686`] if its `_meta` names a related task in that generation's way; else [`Generation::Core2025`] if the revision has tasks, and in older sessions the generation that made the task |
//! | `tasks/delete`, `tasks/status` | [`Generation::Sep1686`], [`Generation::Lesson`] |
//! | `tasks/list` | the generation that the session named last; else [`Generation::Core2025`] if the revision has tasks, and [`Generation::Sep1686`] otherwise |
//! | `tasks/cancel` | [`Generation::Sep1686`] if its `_meta` names a related task in that generation's way; else the same as `tasks/list`, with two exceptions: where that gives [`Generation::Sep1686`], which has no `tasks/cancel`, and in a restored session that has named none since, the generation that made the task |
//! | every other request, in a session | [`Generation::Core2025`] |

use std::borrow::Cow;

use crate::completion::Complete;
use crate::headers::{self, HeaderValue, Headers};
use crate::jsonrpc::{self, Message, RpcError};
use crate::meta::{StatelessMeta, VERSION_KEY, session_progress_token};
use crate::params::{RequestParams, required_string};
use crate::request::{CallTool, GetPrompt, Operation, ReadResource, RoutedRequest, TaskRequest, UpdateTask};
use crate::subscription::SubscriptionFilter;
use crate::text::ObjectMembers;
use crate::{Capability, Generation, LogLevel, Peer, Revision, refusal, text};

/// Whether a message belongs to the stateless era: its version header names a stateless revision, or it is a request
/// whose `_meta` names any protocol version. Every other message is part of a session or opens one.
///
/// ```
/// use longhaul_wire::{Headers, is_stateless};
///
/// let by_body = |params: &str| {
///     is_stateless(format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{params}}}"#).as_bytes(), None)
/// };
/// assert!(by_body(r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#));
/// assert!(!by_body(r#"{"_meta":{"progressToken":1}}"#));
/// assert!(!by_body(r#"{"arguments":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#));
///
/// let headers: &[(&str, &str)] = &[("MCP-Protocol-Version", "2026-07-28")];
/// assert!(is_stateless(b"", Some(&headers as &dyn Headers)));
/// ```
pub fn is_stateless(body: &[u8], headers: Option<&dyn Headers>) -> bool {
    let names_stateless_revision =
        |header| Revision::STATELESS.iter().any(|revision| header == HeaderValue::Once(revision.as_str().as_bytes()));
    if headers.is_some_and(|headers| names_stateless_revision(headers.value(headers::VERSION))) {
        return true;
    }
    // Searching the text is many times faster than parsing it, and messages of sessions do not contain the key.
    if !std::str::from_utf8(body).is_ok_and(|text| text.contains(VERSION_KEY)) {
        return false;
    }
    let Ok(Message::Request(request)) = jsonrpc::parse(body) else { return false };
    if let Ok(params) = request.params.of_stateless() {
        return params.meta.as_ref().is_some_and(|meta| meta.get(VERSION_KEY).is_some());
    }
    // The era of the request decides in which form the error is sent.
    let meta = request.params.raw().and_then(|params| text::member(params, "_meta"));
    meta.is_some_and(|meta| text::member(meta, VERSION_KEY).is_some())
}

/// Where a request arrived.
#[derive(Clone, Copy)]
pub enum Context<'a> {
    /// Outside of a session. `headers` are those of HTTP; other transports have none.
    Stateless { headers: Option<&'a dyn Headers> },
    /// In a session. `last_marker` is the generation that its requests named last. If `is_restored`, the session was restored
    /// from its token, and a generation that it named before is not known.
    Session { peer: Peer, last_marker: Option<Generation>, is_restored: bool },
}

/// Reads a request and decides which generation it speaks.
pub fn route<'a>(request: &jsonrpc::Request<'a>, context: &Context<'_>) -> Result<RoutedRequest<'a>, RpcError> {
    let routed = match *context {
        Context::Stateless { headers } => route_stateless(request, headers),
        Context::Session { peer, last_marker, is_restored } => {
            route_in_session(request, peer, last_marker, is_restored)
        }
    };
    routed.map_err(|error| refusal::with_verb_of_method(error, &request.method))
}

/// The order of the checks is part of the protocol: header against body before the version, the method before the name
/// that only some methods have, the capability before the task ID is looked at.
fn route_stateless<'a>(
    request: &jsonrpc::Request<'a>,
    headers: Option<&dyn Headers>,
) -> Result<RoutedRequest<'a>, RpcError> {
    let params = request.params.of_stateless()?;
    let meta = StatelessMeta::parse(params.meta.as_ref()).map_err(|error| {
        match (&*request.method, unsupported_version_in(params.meta.as_ref())) {
            // A client that tries to open a session shows this error to its user, so the error lists the supported versions.
            ("initialize", _) => unsupported_version(&handshake_version(request)),
            // Another version may have other rules for `_meta`.
            (_, Some(version)) => unsupported_version(&version),
            (_, None) => error,
        }
    })?;
    if let Some(headers) = headers {
        headers::check_version(headers, &meta.protocol_version)?;
    }
    let revision = Revision::parse(&meta.protocol_version)
        .filter(|revision| revision.is_stateless())
        .ok_or_else(|| unsupported_version(&meta.protocol_version))?;
    if let Some(headers) = headers {
        headers::check_method(headers, &request.method)?;
    }
    let (name, needs_tasks) = match &*request.method {
        "tools/call" | "prompts/get" => (params.name, false),
        "resources/read" => (params.uri, false),
        "tasks/get" | "tasks/update" | "tasks/cancel" => (params.task_id, true),
        "server/discover"
        | "tools/list"
        | "prompts/list"
        | "resources/list"
        | "resources/templates/list"
        | "completion/complete"
        | "subscriptions/listen" => (None, false),
        other => return Err(refusal::unknown_method(other)),
    };
    if let Some(headers) = headers {
        headers::check_name(headers, name)?;
    }
    // A client that declares only the tasks of 2025-11-25 can still read and cancel tasks of that generation.
    let uses_legacy_tasks = matches!(&*request.method, "tasks/get" | "tasks/cancel")
        && meta.capabilities.has(Capability::LegacyTasks)
        && !meta.capabilities.has(Capability::Tasks);
    if needs_tasks && !uses_legacy_tasks {
        meta.capabilities.require(Capability::Tasks)?;
    }
    let operation = match &*request.method {
        "tasks/get" => Operation::GetTask(params.required_task_id()?),
        "tools/call" => Operation::CallTool(CallTool::of_stateless(params, &meta)?),
        "tasks/update" => Operation::UpdateTask(UpdateTask::parse(params)?),
        "tasks/cancel" => Operation::CancelTask(params.required_task_id()?),
        "subscriptions/listen" => {
            Operation::Subscribe(SubscriptionFilter::parse(params.notifications, meta.capabilities)?)
        }
        "server/discover" => Operation::Discover,
        other => match shared_operation(other, params, revision, None)? {
            Some(operation) => operation,
            None => return Err(refusal::unknown_method(other)),
        },
    };
    Ok(RoutedRequest {
        id: request.id.clone(),
        method: operation.method(),
        generation: generation_of(revision),
        follows_task: false,
        only_made_by: uses_legacy_tasks.then_some(Generation::Core2025),
        marker: None,
        peer: Peer { revision, capabilities: meta.capabilities },
        progress_token: meta.progress_token,
        log_level: meta.log_level,
        operation,
    })
}

/// Requests about tasks are accepted at every revision of sessions, because generations without a revision of their own
/// use the same methods. Whether the task exists is decided when it is looked up.
fn route_in_session<'a>(
    request: &jsonrpc::Request<'a>,
    peer: Peer,
    last_marker: Option<Generation>,
    is_restored: bool,
) -> Result<RoutedRequest<'a>, RpcError> {
    let params = request.params.of_session()?;
    let progress_token = session_progress_token(params.meta.as_ref())?;
    let has_tasks = peer.revision.has_tasks();
    let (creator, asks) = asked_task(&request.method, &params, has_tasks)?.unzip();
    let operation = match &*request.method {
        "ping" => Operation::Ping,
        "tools/call" => Operation::CallTool(CallTool::of_session(&params, asks)?),
        "tasks/get" | "tasks/status" => Operation::GetTask(params.required_task_id()?),
        "tasks/result" => Operation::TaskResult(params.required_task_id()?),
        "tasks/list" => Operation::ListTasks { cursor: params.cursor()? },
        "tasks/cancel" => Operation::CancelTask(params.required_task_id()?),
        "tasks/delete" => Operation::DeleteTask(params.required_task_id()?),
        "logging/setLevel" => Operation::SetLogLevel(log_level(&params)?),
        "resources/subscribe" => Operation::SubscribeResource { uri: params.required_uri()? },
        "resources/unsubscribe" => Operation::UnsubscribeResource { uri: params.required_uri()? },
        "initialize" => return Err(refusal::already_initialized()),
        other => match shared_operation(other, &params, peer.revision, asks)? {
            Some(operation) => operation,
            None => return Err(refusal::unknown_method_in_session(other)),
        },
    };
    let names_task = || {
        let key = Generation::Sep1686.related_task_key().unwrap_or_default();
        params.meta.as_ref().is_some_and(|meta| meta.get(key).is_some())
    };
    let marker = match &*request.method {
        "tasks/get" | "tasks/result" | "tasks/cancel" if names_task() => Some(Generation::Sep1686),
        "tasks/delete" => Some(Generation::Sep1686),
        "tasks/status" => Some(Generation::Lesson),
        _ => creator,
    };
    let of_revision = generation_of(peer.revision);
    let unmarked = last_marker.unwrap_or(if has_tasks { of_revision } else { Generation::Sep1686 });
    let generation = marker.unwrap_or(match &*request.method {
        "tasks/list" | "tasks/cancel" => unmarked,
        _ => of_revision,
    });
    let task_decides = match &*request.method {
        "tasks/get" | "tasks/result" => !has_tasks,
        "tasks/cancel" => unmarked == Generation::Sep1686 || (is_restored && last_marker.is_none()),
        _ => false,
    };
    Ok(RoutedRequest {
        id: request.id.clone(),
        method: known_method(&request.method),
        generation,
        only_made_by: None,
        follows_task: marker.is_none() && task_decides,
        marker,
        peer,
        progress_token,
        log_level: None,
        operation,
    })
}

/// The task that a request of a session asks for, and the generation in which it asks. If it asks in several, the first of
/// the order below counts.
fn asked_task(
    method: &str,
    params: &RequestParams<'_>,
    has_tasks: bool,
) -> Result<Option<(Generation, TaskRequest)>, RpcError> {
    let task = params.task.filter(|_| has_tasks);
    let generations = [Generation::Core2025, Generation::Sep1686, Generation::Lesson];
    for generation in generations.into_iter().filter(|generation| generation.augments(method)) {
        if let Some(request) = generation.task_request(task, params.meta.as_ref())? {
            return Ok(Some((generation, request)));
        }
    }
    Ok(None)
}

fn known_method(method: &str) -> &'static str {
    Operation::METHODS.iter().find(|known| **known == method).copied().unwrap_or_default()
}

/// The generation in which a request is answered that follows its task. `origin` is the label of the generation that made
/// the task. A task that was made without a session is shown in the form that sessions use by default.
pub fn generation_of_task(origin: &str) -> Generation {
    match Generation::of_label(origin) {
        None | Some(Generation::Ext2026) => Generation::Core2025,
        Some(made_by) => made_by,
    }
}

/// The operations that both eras have in the same form. `task` is the task that a request of a session asks for.
fn shared_operation<'a>(
    method: &str,
    params: &RequestParams<'a>,
    revision: Revision,
    task: Option<TaskRequest>,
) -> Result<Option<Operation<'a>>, RpcError> {
    Ok(Some(match method {
        "tools/list" => Operation::ListTools { cursor: params.cursor()? },
        "prompts/list" => Operation::ListPrompts { cursor: params.cursor()? },
        "prompts/get" => Operation::GetPrompt(GetPrompt::parse(params, revision, task)?),
        "resources/list" => Operation::ListResources { cursor: params.cursor()? },
        "resources/templates/list" => Operation::ListResourceTemplates { cursor: params.cursor()? },
        "resources/read" => Operation::ReadResource(ReadResource::parse(params, revision, task)?),
        "completion/complete" => Operation::Complete(Complete::parse(params)?),
        _ => return Ok(None),
    }))
}

/// The generation of a request that names none, and of a message that cannot be parsed.
pub fn generation_of(revision: Revision) -> Generation {
    if revision.is_stateless() { Generation::Ext2026 } else { Generation::Core2025 }
}

/// The version that `_meta` names, if it is no supported stateless revision.
fn unsupported_version_in<'a>(meta: Option<&ObjectMembers<'a>>) -> Option<Cow<'a, str>> {
    let version = text::string(meta?.get(VERSION_KEY)?)?;
    let is_spoken = Revision::parse(&version).is_some_and(Revision::is_stateless);
    (!is_spoken).then_some(version)
}

fn unsupported_version(requested: &str) -> RpcError {
    RpcError::unsupported_version(&Revision::STATELESS.map(Revision::as_str), requested)
}

fn handshake_version<'a>(request: &jsonrpc::Request<'a>) -> Cow<'a, str> {
    let version = request.params.raw().and_then(|params| text::member(params, "protocolVersion"));
    version.and_then(text::string).unwrap_or_default()
}

fn log_level(params: &RequestParams<'_>) -> Result<LogLevel, RpcError> {
    let name = required_string("level", params.level)?;
    LogLevel::parse(&name).ok_or_else(|| {
        let names = LogLevel::ALL.map(LogLevel::as_str).join(", ");
        RpcError::invalid_params(format!("`level` must be one of {names}"))
    })
}

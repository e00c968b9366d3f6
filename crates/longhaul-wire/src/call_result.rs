//! The results of `tools/call`, `prompts/get`, `resources/read` and `completion/complete`: as answers, and as results of
//! the tasks that such requests have become.

use longhaul_task::{Json, QuestionKind, Task, TaskError};

use crate::jsonrpc::RpcError;
use crate::related::write_meta;
use crate::{Cache, RelatedTask, ReplyTo, Revision, jsonrpc, prompt, question, resource, session_result, splice, text};

/// What the result of a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultForm {
    Tool,
    Prompt,
    /// With how long it may be cached, in the stateless era.
    Resource(Cache),
    Completion,
}

/// The name under which the engine runs the function behind a prompt or a resource. No tool can have it, because of the
/// space.
///
/// ```
/// assert_eq!(longhaul_wire::call_result::function_name("prompts/get", "review"), "prompts/get review");
/// ```
pub fn function_name(method: &str, name: &str) -> String {
    format!("{method} {name}")
}

impl ResultForm {
    /// The form of a task's result, which is that of the request that it was made of.
    fn of(task: &Task) -> Self {
        match task.tool.name.split_once(' ') {
            Some(("prompts/get", _)) => Self::Prompt,
            // It was read some time ago.
            Some(("resources/read", _)) => Self::Resource(Cache::NONE),
            _ => Self::Tool,
        }
    }

    /// The error that such a request is answered with when it has failed.
    pub fn error(self, error: &TaskError, revision: Revision) -> RpcError {
        match self {
            Self::Resource(_) => resource::of_revision(RpcError::from(error), revision),
            Self::Tool | Self::Prompt | Self::Completion => RpcError::from(error),
        }
    }

    fn write_stateless(self, out: &mut String, body: &str, meta_member: &str) {
        splice::write_complete(out, body, meta_member);
        if let Self::Resource(cache) = self {
            push_members(out, |out| cache.write(out));
        }
    }

    fn write_in_session(self, out: &mut String, body: &str, revision: Revision, related: Option<RelatedTask<'_>>) {
        match self {
            Self::Tool => return session_result::write(out, body, revision, related),
            Self::Prompt => prompt::write_result(out, body, revision),
            Self::Resource(_) | Self::Completion => out.push_str(body),
        }
        push_members(out, |out| write_meta(out, None, related));
    }
}

/// Appends members to an object that has been written. Every stored result of a prompt or a resource is an object with
/// members, so its last character can be replaced.
fn push_members(out: &mut String, write: impl FnOnce(&mut String)) {
    if out.ends_with('}') {
        out.pop();
        write(out);
        out.push('}');
    }
}

/// The answer with a result of this form.
pub fn complete_as(form: ResultForm, to: &ReplyTo<'_>, body: &Json) -> String {
    jsonrpc::response(to.id, to.server.room() + body.bytes() + 64, |out| {
        if to.revision.is_stateless() {
            form.write_stateless(out, body.as_str(), to.server.member());
        } else {
            form.write_in_session(out, body.as_str(), to.revision, None);
        }
    })
}

/// The answer with the tool's result.
pub fn complete(to: &ReplyTo<'_>, body: &Json) -> String {
    complete_as(ResultForm::Tool, to, body)
}

/// The answer with the result of a task, as the request that it was made of would have been answered. `related` is that task,
/// in the generations that name it.
pub(crate) fn of_task(to: &ReplyTo<'_>, task: &Task, body: &Json, related: Option<RelatedTask<'_>>) -> String {
    let form = ResultForm::of(task);
    if to.revision.is_stateless() {
        return complete_as(form, to, body);
    }
    jsonrpc::response(to.id, body.bytes() + 128, |out| {
        form.write_in_session(out, body.as_str(), to.revision, related);
    })
}

/// Appends the result of a task where it is a part of the task, in the stateless era.
pub(crate) fn write_inlined(out: &mut String, task: &Task, body: &Json) {
    ResultForm::of(task).write_stateless(out, body.as_str(), "");
}

/// The result of a task as that of a tool, for a model: a model reads the content of a tool's result and nothing else.
pub(crate) fn as_tool_result(task: &Task, body: &Json) -> Json {
    let result = match ResultForm::of(task) {
        ResultForm::Tool | ResultForm::Completion => None,
        ResultForm::Prompt => prompt::as_tool_result(body),
        ResultForm::Resource(_) => resource::as_tool_result(body),
    };
    result.unwrap_or_else(|| body.clone())
}

/// The error of a task, as the request that it was made of would have been answered.
pub(crate) fn error_of_task(task: &Task, error: &TaskError, revision: Revision) -> RpcError {
    ResultForm::of(task).error(error, revision)
}

/// A question that a stateless call asks before it goes on.
#[derive(Debug, Clone)]
pub struct InputRequest {
    /// The name of its answer in `inputResponses`.
    pub key: String,
    pub kind: QuestionKind,
    pub params: Json,
}

/// The answer that asks the client for input before it calls again, in the stateless era. At least one of `requests` and
/// `state` must be present.
pub fn input_required(to: &ReplyTo<'_>, requests: &[InputRequest], state: Option<&str>) -> String {
    let asked: usize = requests.iter().map(|request| request.key.len() + request.params.bytes() + 64).sum();
    jsonrpc::response(to.id, to.server.room() + asked + state.map_or(0, str::len), |out| {
        out.push_str("{\"resultType\":\"input_required\"");
        if !requests.is_empty() {
            write_input_requests(out, requests.iter().map(|asked| (asked.key.as_str(), asked.kind, &asked.params)));
        }
        if let Some(state) = state {
            text::push_str_member(out, "requestState", state);
        }
        to.server.write_meta(out);
        out.push('}');
    })
}

/// Appends `,"inputRequests":{…}`.
pub(crate) fn write_input_requests<'q>(
    out: &mut String,
    questions: impl Iterator<Item = (&'q str, QuestionKind, &'q Json)>,
) {
    out.push_str(",\"inputRequests\":{");
    for (index, (key, kind, params)) in questions.enumerate() {
        if index > 0 {
            out.push(',');
        }
        text::push_str(out, key);
        out.push_str(":{\"method\":\"");
        out.push_str(question::method(kind));
        out.push_str("\",\"params\":");
        out.push_str(params.as_str());
        out.push('}');
    }
    out.push('}');
}

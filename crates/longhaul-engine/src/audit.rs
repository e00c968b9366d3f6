//! The audit log: what was done with tasks, by whom, and what was refused. This file has every event and all of their
//! fields; `docs/audit.md` has them for readers, and a test compares the two.
//!
//! They are `tracing` events with the target [`TARGET`], so that a host sends them wherever it likes, and cost next to
//! nothing where no subscriber takes them. Arguments, results, answers and tokens are never in them.

use longhaul_store::CommitResult;
use longhaul_task::{Effect, Json, Outcome, Owner, Phase, QuestionKey, Task, TaskId};
use serde::Deserialize;
use tracing::Level;

use crate::{CallEnd, EngineError};

/// The target of all events.
pub const TARGET: &str = "longhaul::audit";

/// Whether a subscriber takes these events.
pub fn is_wanted() -> bool {
    tracing::enabled!(target: TARGET, Level::INFO)
}

macro_rules! record {
    ($event:literal, $($field:ident = $value:expr),+ $(,)?) => {
        tracing::event!(name: $event, target: TARGET, Level::INFO, event = $event, $($field = $value),+)
    };
}

/// Who asked for something, and how.
#[derive(Debug, Clone, Copy)]
pub struct RequestSource<'a> {
    pub owner: &'a Owner,
    pub generation: &'static str,
    pub method: &'a str,
}

/// A task is there.
pub(crate) fn created(task: &Task) {
    record!(
        "task.created",
        owner = task.key.owner.as_str(),
        task = task.key.id.as_str(),
        tool = &*task.tool.name,
        generation = &*task.origin,
    );
}

/// Tasks may have ended.
pub(crate) fn applied(applied: &CommitResult) {
    let task = &*applied.task;
    for effect in &applied.effects {
        let Effect::Settled { key, tool, .. } = effect else { continue };
        // Whatever ends below a task ends because it is called off.
        let (status, error) = match &task.phase {
            Phase::Settled { outcome, .. } if *key == task.key => (status(&task.phase), outcome),
            _ => ("cancelled", &Outcome::Cancelled),
        };
        let error = match error {
            Outcome::Error(error) => Some(error),
            _ => None,
        };
        record!(
            "task.settled",
            owner = key.owner.as_str(),
            task = key.id.as_str(),
            tool = &*tool.name,
            generation = &*task.origin,
            status = status,
            error = error.and_then(|error| error.code),
            code = error.and_then(|error| word(error.data.as_ref())),
        );
    }
}

/// A call without a task, from its start to its end. Dropping it before [`ended`](Self::ended) records that the caller
/// went away.
#[derive(Debug)]
pub struct AuditedCall<'a> {
    source: RequestSource<'a>,
    tool: &'a str,
    has_ended: bool,
}

impl<'a> AuditedCall<'a> {
    /// A caller called a tool without a task.
    pub fn started(source: RequestSource<'a>, tool: &'a str) -> Self {
        record!(
            "call.started",
            owner = source.owner.as_str(),
            tool = tool,
            generation = source.generation,
            method = source.method,
        );
        Self { source, tool, has_ended: false }
    }

    pub fn ended(mut self, end: &Result<CallEnd, EngineError>) {
        self.has_ended = true;
        self.record(match end {
            Ok(CallEnd::Done(Outcome::Result { is_error: false, .. })) => "completed",
            Ok(CallEnd::Done(Outcome::Result { is_error: true, .. })) => "tool_error",
            Ok(CallEnd::Done(Outcome::Error(_) | Outcome::Cancelled) | CallEnd::Stopped(_)) => "failed",
            Ok(CallEnd::Asks { .. }) => "asks",
            Err(_) => "refused",
        });
    }

    fn record(&self, status: &str) {
        record!(
            "call.ended",
            owner = self.source.owner.as_str(),
            tool = self.tool,
            generation = self.source.generation,
            method = self.source.method,
            status = status,
        );
    }
}

impl Drop for AuditedCall<'_> {
    fn drop(&mut self) {
        if !self.has_ended {
            self.record("abandoned");
        }
    }
}

/// A caller read a task.
pub fn read(source: RequestSource<'_>, task: &Task) {
    record!(
        "task.read",
        owner = source.owner.as_str(),
        task = task.key.id.as_str(),
        tool = &*task.tool.name,
        generation = source.generation,
        method = source.method,
        status = status(&task.phase),
    );
}

/// A caller read a page of the list.
pub fn listed(source: RequestSource<'_>, tasks: usize) {
    record!(
        "task.listed",
        owner = source.owner.as_str(),
        generation = source.generation,
        method = source.method,
        tasks = tasks,
    );
}

/// A caller cancelled a task, or tried to after its end.
pub fn cancelled(source: RequestSource<'_>, task: &TaskId, changed: bool) {
    record!(
        "task.cancelled",
        owner = source.owner.as_str(),
        task = task.as_str(),
        generation = source.generation,
        method = source.method,
        changed = changed,
    );
}

/// A caller deleted a task.
pub fn deleted(source: RequestSource<'_>, task: &Task) {
    record!(
        "task.deleted",
        owner = source.owner.as_str(),
        task = task.key.id.as_str(),
        tool = &*task.tool.name,
        generation = source.generation,
        method = source.method,
    );
}

/// A caller answered a question.
pub fn answered(source: RequestSource<'_>, task: &TaskId, question: &QuestionKey) {
    record!(
        "task.answered",
        owner = source.owner.as_str(),
        task = task.as_str(),
        generation = source.generation,
        method = source.method,
        question = question.as_str(),
    );
}

/// A refusal. What is not known is left out.
#[derive(Debug, Clone, Copy, Default)]
pub struct AuditRefusal<'a> {
    pub owner: Option<&'a Owner>,
    pub generation: Option<&'static str>,
    /// The method, known or unknown.
    pub method: Option<&'a str>,
    /// The task that it names. It may not exist or belong to another owner.
    pub task: Option<&'a TaskId>,
    pub tool: Option<&'a str>,
    pub error: i64,
    pub code: Option<&'a str>,
    /// The status of the HTTP response.
    pub http_status: Option<u16>,
}

/// A request was refused.
pub fn refused(refusal: &AuditRefusal<'_>) {
    record!(
        "request.refused",
        owner = refusal.owner.map(Owner::as_str),
        generation = refusal.generation,
        method = refusal.method.map(short),
        task = refusal.task.map(TaskId::as_str),
        tool = refusal.tool.map(short),
        error = refusal.error,
        code = refusal.code,
        http_status = refusal.http_status,
    );
}

/// Where a task stands, in no generation's words.
fn status(phase: &Phase) -> &'static str {
    match phase {
        Phase::Queued { .. } => "queued",
        Phase::Running { .. } => "running",
        Phase::Waiting { .. } => "waiting",
        Phase::Parked { .. } => "parked",
        Phase::Settled { outcome: Outcome::Result { is_error: false, .. }, .. } => "completed",
        Phase::Settled { outcome: Outcome::Result { is_error: true, .. }, .. } => "tool_error",
        Phase::Settled { outcome: Outcome::Error(_), .. } => "failed",
        Phase::Settled { outcome: Outcome::Cancelled, .. } => "cancelled",
    }
}

/// Our own code in the details of an error. A tool's details may be anything, so only what looks like one of ours is
/// taken.
pub fn word(data: Option<&Json>) -> Option<String> {
    #[derive(Deserialize)]
    struct Details {
        code: String,
    }
    let details: Details = serde_json::from_str(data?.as_str()).ok()?;
    let is_ours =
        details.code.len() <= 64 && details.code.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    is_ours.then_some(details.code)
}

/// The beginning of what a caller sent.
fn short(text: &str) -> &str {
    text.char_indices().nth(64).map_or(text, |(end, _)| &text[..end])
}

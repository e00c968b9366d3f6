//! Converting tasks to the columns of their rows.

use longhaul_store::embedded::DiskError;
use longhaul_task::{
    ActiveAttempt, Json, NodeId, OnCrash, Outcome, Phase, Retention, Task, TaskId, Wait, WaitingState, WakeCondition,
};
use rusqlite::types::ValueRef;

use crate::value::{json, maybe_number, maybe_text, number, text, time_to_sql, to_sql};

/// The values of the columns that depend on a [`Phase`]. `None` is NULL.
#[derive(Default)]
pub(crate) struct PhaseColumns {
    pub(crate) not_before: Option<i64>,
    pub(crate) node: Option<[u8; NodeId::DIGITS]>,
    pub(crate) run_since: Option<i64>,
    pub(crate) questions: Option<String>,
    pub(crate) wake_at: Option<i64>,
    pub(crate) wake_children: Option<String>,
    pub(crate) outcome: Option<&'static str>,
    pub(crate) settled_at: Option<i64>,
}

impl PhaseColumns {
    pub(crate) fn node_text(&self) -> ValueRef<'_> {
        self.node.as_ref().map_or(ValueRef::Null, |digits| ValueRef::Text(digits))
    }

    fn queued(wait: Wait) -> Self {
        Self { not_before: Some(time_to_sql(wait.until)), run_since: Some(time_to_sql(wait.since)), ..Self::default() }
    }

    fn held(run: ActiveAttempt) -> Self {
        Self { node: Some(run.node.digits()), run_since: Some(time_to_sql(run.since)), ..Self::default() }
    }

    fn parked(wake_condition: &WakeCondition) -> Result<Self, DiskError> {
        let children = &wake_condition.children;
        Ok(Self {
            wake_at: wake_condition.wake_at().map(time_to_sql),
            wake_children: (!children.is_empty()).then(|| json(children)).transpose()?,
            ..Self::default()
        })
    }

    pub(crate) fn of(phase: &Phase) -> Result<Self, DiskError> {
        let columns = match phase {
            Phase::Queued { wait } => Self::queued(*wait),
            Phase::Running { run } => Self::held(*run),
            Phase::Waiting { state, questions } => Self {
                questions: Some(json(questions)?),
                ..match state {
                    WaitingState::Held(run) => Self::held(*run),
                    WaitingState::Parked(wake_condition) => Self::parked(wake_condition)?,
                    WaitingState::Queued { wait } => Self::queued(*wait),
                }
            },
            Phase::Parked { wake_condition } => Self::parked(wake_condition)?,
            Phase::Settled { outcome, at, last_attempt } => Self {
                outcome: Some(outcome_word(outcome)),
                settled_at: Some(time_to_sql(*at)),
                ..last_attempt.map_or_else(Self::default, Self::held)
            },
        };
        // `Reader::began_after` searches this column for what began later than the clock shows.
        let run_since = columns.run_since.or_else(|| phase.since().map(time_to_sql));
        Ok(Self { run_since, ..columns })
    }
}

/// The columns of a task from `owner` to `settled_at`, in the order of `select_task!` and of the statement that inserts a row.
pub(crate) fn task_columns<'a>(task: &'a Task, phase: &'a PhaseColumns) -> [ValueRef<'a>; 36] {
    let family = &task.family;
    let is_root = task.is_root();
    let (from_creation, from_end) = retention_columns(task.retention);
    [
        text(task.key.owner.as_str()),
        text(task.key.id.as_str()),
        maybe_text((!is_root).then(|| family.root.as_str())),
        maybe_text(family.parent.as_ref().map(TaskId::as_str)),
        maybe_number((!is_root).then(|| time_to_sql(family.since))),
        number(family.depth),
        number(family.children),
        number(family.ordinal),
        text(&task.tool.name),
        text(&task.tool.version),
        text(&task.origin),
        text(on_crash_word(task.policy.on_crash)),
        number(task.policy.attempts_max),
        number(to_sql(task.policy.backoff_ms)),
        number(to_sql(task.policy.backoff_ms_max)),
        number(to_sql(task.policy.running_ms_max)),
        number(to_sql(task.policy.life_ms_max)),
        maybe_number(from_creation),
        maybe_number(from_end),
        number(time_to_sql(task.created_at)),
        number(time_to_sql(task.updated_at)),
        number(to_sql(task.revision)),
        number(to_sql(task.fence)),
        number(task.attempt),
        number(task.failed_attempts),
        number(task.questions_asked),
        maybe_text(task.message.as_deref()),
        text(task.phase.name().as_str()),
        maybe_number(phase.not_before),
        phase.node_text(),
        maybe_number(phase.run_since),
        maybe_text(phase.questions.as_deref()),
        maybe_number(phase.wake_at),
        maybe_text(phase.wake_children.as_deref()),
        maybe_text(phase.outcome),
        maybe_number(phase.settled_at),
    ]
}

/// The column `began_at`.
pub(crate) fn began_at(task: &Task) -> Option<i64> {
    let run = task.phase.last_attempt().filter(|run| run.began_at != run.since);
    run.map(|run| time_to_sql(run.began_at))
}

pub(crate) fn on_crash_word(on_crash: OnCrash) -> &'static str {
    match on_crash {
        OnCrash::Fail => "fail",
        OnCrash::Retry => "retry",
        OnCrash::Resume => "resume",
    }
}

fn outcome_word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Result { is_error: false, .. } => "answer",
        Outcome::Result { is_error: true, .. } => "error",
        Outcome::Error(_) => "refusal",
        Outcome::Cancelled => "cancelled",
    }
}

/// `retention_from_creation_ms` and `retention_from_end_ms`.
fn retention_columns(retention: Retention) -> (Option<i64>, Option<i64>) {
    match retention {
        Retention::FromCreation(ms) => (Some(to_sql(ms)), None),
        Retention::FromEnd(ms) => (None, Some(to_sql(ms))),
        Retention::Unlimited => (None, None),
    }
}

/// `body`, `code` and `message` of an outcome.
pub(crate) fn outcome_columns(outcome: &Outcome) -> (Option<&Json>, Option<i64>, Option<&str>) {
    match outcome {
        Outcome::Result { body, .. } => (Some(body), None, None),
        Outcome::Error(error) => (error.data.as_ref(), error.code, Some(&*error.message)),
        Outcome::Cancelled => (None, None, None),
    }
}

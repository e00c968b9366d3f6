//! Reading rows.

use std::error::Error;
use std::sync::Arc;

use longhaul_store::{KeyedTask, Snapshot};
use longhaul_task::{
    ActiveAttempt, Family, Json, NodeId, OnCrash, Outcome, Owner, Phase, PhaseName, Policy, Progress, Questions,
    Retention, Task, TaskError, TaskId, TaskKey, Timestamp, ToolRef, Wait, WaitingState, WakeCondition,
};
use rusqlite::Row;
use rusqlite::types::{FromSql, Type, ValueRef};

use crate::checksum::Checksum;
use crate::task_columns::on_crash_word;
use crate::texts::Texts;

/// A SELECT of the columns that [`Columns::snapshot`] reads, in its order, with the clauses that choose the rows.
macro_rules! select_task {
    ($clauses:literal) => {
        concat!(
            "SELECT task.owner, task.id, root, parent, family_since, depth, children, ordinal, tool, version, origin, ",
            "on_crash, attempts_max, backoff_ms, backoff_ms_max, running_ms_max, life_ms_max, ",
            "retention_from_creation_ms, retention_from_end_ms, created_at, updated_at, revision, fence, attempt, ",
            "spent, questions_asked, task.message, phase, not_before, node, run_since, questions, wake_at, ",
            "wake_children, task.outcome, settled_at, ",
            "coalesce(small_outcome, outcome.body), outcome.code, outcome.message, due_at, began_at, checksum, ",
            "progress.done, progress.total, progress.message, progress.at ",
            "FROM task LEFT JOIN outcome ON outcome.owner = task.owner ",
            // With NULL, SQLite does not search the table at all.
            "AND outcome.id = iif(small_outcome IS NULL AND settled_at IS NOT NULL, task.id, NULL) ",
            "LEFT JOIN progress ON progress.owner = task.owner AND progress.id = task.id ",
            $clauses
        )
    };
}
pub(crate) use select_task;

pub(crate) const SELECT_TASK: &str = select_task!("WHERE task.owner = ?1 AND task.id = ?2");
pub(crate) const SELECT_INPUT: &str = "SELECT coalesce(small_input, body), input_checksum FROM task
  LEFT JOIN input ON input.owner = task.owner AND input.id = iif(small_input IS NULL, task.id, NULL)
  WHERE task.owner = ?1 AND task.id = ?2";
pub(crate) const SELECT_KEYED_TASK: &str =
    "SELECT owner, id, key, digest, checksum FROM idempotency WHERE owner = ?1 AND key = ?2";

/// Reads the columns of one row from left to right, each once, and computes their checksum on the way.
pub(crate) struct Columns<'r, 't> {
    row: &'r Row<'r>,
    next: usize,
    checksum: Checksum,
    texts: &'t mut Texts,
}

impl<'r, 't> Columns<'r, 't> {
    pub(crate) fn of(row: &'r Row<'r>, texts: &'t mut Texts) -> Self {
        Self { row, next: 0, checksum: Checksum::new(), texts }
    }

    /// Checks all columns so far by the checksum that follows them.
    pub(crate) fn check(&mut self) -> rusqlite::Result<()> {
        let index = self.next;
        let found = self.checksum.value();
        match self.value::<Option<i64>>()? {
            Some(expected) if expected != found => {
                Err(invalid_column(index, "the row is damaged: it does not have its checksum"))
            }
            // A file of an older program has rows without a checksum.
            _ => Ok(()),
        }
    }

    fn column(&mut self) -> rusqlite::Result<ValueRef<'r>> {
        let column = self.row.get_ref(self.next)?;
        self.next += 1;
        self.checksum.add(column);
        Ok(column)
    }

    pub(crate) fn value<T: FromSql>(&mut self) -> rusqlite::Result<T> {
        let index = self.next;
        T::column_result(self.column()?).map_err(|error| invalid_column(index, error))
    }

    pub(crate) fn text(&mut self) -> rusqlite::Result<Option<&'r str>> {
        let index = self.next;
        self.column()?.as_str_or_null().map_err(|error| invalid_column(index, error))
    }

    pub(crate) fn required_text(&mut self) -> rusqlite::Result<&'r str> {
        let index = self.next;
        self.text()?.ok_or_else(|| invalid_column(index, "the column is NULL and must be a text"))
    }

    /// A text that many rows share. It is in memory once for all of them.
    pub(crate) fn common_text(&mut self) -> rusqlite::Result<Arc<str>> {
        let text = self.required_text()?;
        Ok(self.texts.text(text))
    }

    pub(crate) fn parsed<T>(&mut self, parse: impl FnOnce(&str) -> Option<T>) -> rusqlite::Result<T> {
        let index = self.next;
        let text = self.required_text()?;
        parse(text).ok_or_else(|| invalid_column(index, format!("{text:?} is not a value of this column")))
    }

    fn number(&mut self) -> rusqlite::Result<u64> {
        self.maybe_number()?.ok_or_else(|| invalid_column(self.next - 1, "the column is NULL and must be a number"))
    }

    pub(crate) fn maybe_number(&mut self) -> rusqlite::Result<Option<u64>> {
        let index = self.next;
        match self.value::<Option<i64>>()? {
            None => Ok(None),
            Some(i64::MAX) => Ok(Some(u64::MAX)),
            Some(number) => u64::try_from(number).map(Some).map_err(|error| invalid_column(index, error)),
        }
    }

    pub(crate) fn time(&mut self) -> rusqlite::Result<Timestamp> {
        self.number().map(Timestamp::from_ms)
    }

    pub(crate) fn maybe_time(&mut self) -> rusqlite::Result<Option<Timestamp>> {
        Ok(self.maybe_number()?.map(Timestamp::from_ms))
    }

    pub(crate) fn id(&mut self) -> rusqlite::Result<TaskId> {
        self.parsed(|text| TaskId::parse(text).ok())
    }

    pub(crate) fn owner(&mut self) -> rusqlite::Result<Owner> {
        let index = self.next;
        let owner = self.required_text()?;
        self.texts.owner(owner).map_err(|error| invalid_column(index, error))
    }

    pub(crate) fn key(&mut self) -> rusqlite::Result<TaskKey> {
        Ok(TaskKey { owner: self.owner()?, id: self.id()? })
    }

    pub(crate) fn node(&mut self) -> rusqlite::Result<NodeId> {
        self.parsed(NodeId::parse)
    }

    pub(crate) fn tool(&mut self) -> rusqlite::Result<ToolRef> {
        Ok(ToolRef { name: self.common_text()?, version: self.common_text()? })
    }

    pub(crate) fn phase_name(&mut self) -> rusqlite::Result<PhaseName> {
        self.parsed(PhaseName::parse)
    }

    /// Reads `input, input_checksum`.
    pub(crate) fn input(&mut self) -> rusqlite::Result<Json> {
        let input = self.required_text().map(Json::from_text)?;
        self.check()?;
        Ok(input)
    }

    pub(crate) fn secret(&mut self) -> rusqlite::Result<[u8; 32]> {
        self.value()
    }

    pub(crate) fn fence(&mut self) -> rusqlite::Result<u64> {
        self.number()
    }

    pub(crate) fn count(&mut self) -> rusqlite::Result<u64> {
        self.number()
    }

    /// The task and its progress. If the caller selected the row by its key, it passes the key, and the key's columns are
    /// not parsed.
    pub(crate) fn snapshot(mut self, known: Option<&TaskKey>) -> rusqlite::Result<Snapshot> {
        let task = self.task(known)?;
        let progress = self.progress()?.map(Arc::new);
        Ok(Snapshot { task: Arc::new(task), progress })
    }

    pub(crate) fn task(&mut self, known: Option<&TaskKey>) -> rusqlite::Result<Task> {
        let key = match known {
            Some(key) => {
                self.column()?;
                self.column()?;
                key.clone()
            }
            None => self.key()?,
        };
        let root = self.text()?.map(TaskId::parse).transpose().map_err(|error| invalid_column(2, error))?;
        let parent = self.text()?.map(TaskId::parse).transpose().map_err(|error| invalid_column(3, error))?;
        let family_since = self.maybe_time()?;
        let (depth, children, ordinal) = (self.value()?, self.value()?, self.value()?);
        let tool = self.tool()?;
        let origin = self.common_text()?;
        let policy = Policy {
            on_crash: self.parsed(on_crash)?,
            attempts_max: self.value()?,
            backoff_ms: self.number()?,
            backoff_ms_max: self.number()?,
            running_ms_max: self.number()?,
            life_ms_max: self.number()?,
        };
        let retention = match (self.maybe_number()?, self.maybe_number()?) {
            (Some(ms), _) => Retention::FromCreation(ms),
            (None, Some(ms)) => Retention::FromEnd(ms),
            (None, None) => Retention::Unlimited,
        };
        let created_at = self.time()?;
        let mut task = Task {
            family: Family {
                root: root.unwrap_or_else(|| key.id.clone()),
                parent,
                since: family_since.unwrap_or(created_at),
                depth,
                children,
                ordinal,
            },
            key,
            tool,
            origin,
            policy,
            retention,
            created_at,
            updated_at: self.time()?,
            revision: self.number()?,
            fence: self.number()?,
            attempt: self.value()?,
            failed_attempts: self.value()?,
            questions_asked: self.value()?,
            message: self.text()?.map(Arc::from),
            phase: self.phase()?,
        };
        // `due_at`, which follows from the task.
        self.column()?;
        if let Some(began_at) = self.began_at()?
            && let Phase::Running { run }
            | Phase::Waiting { state: WaitingState::Held(run), .. }
            | Phase::Settled { last_attempt: Some(run), .. } = &mut task.phase
        {
            run.began_at = began_at;
        }
        self.check()?;
        Ok(task)
    }

    /// Reads `began_at`, which is in the checksum only if it is not NULL.
    fn began_at(&mut self) -> rusqlite::Result<Option<Timestamp>> {
        if self.row.get_ref(self.next)? == ValueRef::Null {
            self.next += 1;
            return Ok(None);
        }
        self.maybe_time()
    }

    fn phase(&mut self) -> rusqlite::Result<Phase> {
        let index = self.next;
        let name = self.phase_name()?;
        let not_before = self.maybe_time()?;
        let node =
            self.text()?.map(|text| NodeId::parse(text).ok_or_else(|| invalid_column(index + 2, text))).transpose()?;
        let run_since = self.maybe_time()?;
        let run = node.zip(run_since).map(|(node, since)| ActiveAttempt { node, since, began_at: since });
        let questions = self.text()?;
        // A file of an older program has no beginning of a wait.
        let wait = |until: Timestamp| Wait { since: run_since.unwrap_or(until), until };
        let not_before = not_before.map(wait);
        let timer = self.maybe_time()?.map(wait);
        let children = match self.text()? {
            Some(ranges) => serde_json::from_str(ranges).map_err(|error| invalid_column(index + 6, error))?,
            None => Vec::new(),
        };
        let wake_condition = WakeCondition { timer, children };
        let outcome_word = self.text()?;
        let settled_at = self.maybe_time()?;
        let (body, code, message) = (self.text()?, self.value::<Option<i64>>()?, self.text()?);
        let phase = match name {
            PhaseName::Queued => not_before.map(|wait| Phase::Queued { wait }),
            PhaseName::Running => run.map(|run| Phase::Running { run }),
            PhaseName::Waiting => {
                let open = serde_json::from_str(questions.unwrap_or("[]"))
                    .map_err(|error| invalid_column(index + 4, error))?;
                let state = match (run, not_before) {
                    (Some(run), _) => WaitingState::Held(run),
                    (None, Some(wait)) => WaitingState::Queued { wait },
                    (None, None) => WaitingState::Parked(wake_condition),
                };
                Questions::new(open).map(|questions| Phase::Waiting { state, questions })
            }
            PhaseName::Parked => Some(Phase::Parked { wake_condition }),
            PhaseName::Settled => outcome(outcome_word, body, code, message)
                .zip(settled_at)
                .map(|(outcome, at)| Phase::Settled { outcome, at, last_attempt: run }),
        };
        phase.ok_or_else(|| {
            invalid_column(index, format!("a column that a {} task needs is NULL or not valid", name.as_str()))
        })
    }

    fn progress(&mut self) -> rusqlite::Result<Option<Progress>> {
        let (done, total) = (self.value::<Option<f64>>()?, self.value()?);
        let message = self.text()?.map(Arc::from);
        let at = self.maybe_time()?;
        // NULL stands for NaN, which SQLite cannot store.
        Ok(at.map(|at| Progress { done: done.unwrap_or(f64::NAN), total, message, at }))
    }

    /// Reads `owner, id, key, digest, checksum`.
    pub(crate) fn keyed_task(&mut self) -> rusqlite::Result<KeyedTask> {
        let id = self.key()?.id;
        // The key is read only for the checksum: the caller knows it.
        self.column()?;
        let digest = self.value()?;
        self.check()?;
        Ok(KeyedTask { id, digest })
    }
}

fn on_crash(word: &str) -> Option<OnCrash> {
    [OnCrash::Fail, OnCrash::Retry, OnCrash::Resume].into_iter().find(|on_crash| on_crash_word(*on_crash) == word)
}

fn outcome(word: Option<&str>, body: Option<&str>, code: Option<i64>, message: Option<&str>) -> Option<Outcome> {
    let json = body.map(Json::from_text);
    match word? {
        "answer" => Some(Outcome::Result { body: json?, is_error: false }),
        "error" => Some(Outcome::Result { body: json?, is_error: true }),
        "refusal" => Some(Outcome::Error(TaskError { code, message: message?.into(), data: json })),
        "cancelled" => Some(Outcome::Cancelled),
        _ => None,
    }
}

/// The error for a column with a value that this program does not write.
pub(crate) fn invalid_column(column: usize, why: impl Into<Box<dyn Error + Send + Sync>>) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, why.into())
}

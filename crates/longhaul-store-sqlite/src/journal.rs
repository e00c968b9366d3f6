//! The journal and the attempts of a task: their statements and rows.

use std::borrow::Cow;
use std::sync::Arc;

use longhaul_store::TaskHistory;
use longhaul_store::embedded::DiskError;
use longhaul_task::{
    AttemptEnd, AttemptRecord, EntryKind, EntryState, JournalEntry, JournalPosition, Json, QuestionKey, TaskKey,
    Timestamp,
};
use rusqlite::params;

use crate::checksum;
use crate::row::{Columns, invalid_column};
use crate::sqlite_connection::Statements;
use crate::value::{json, time_to_sql, to_sql};

/// A SELECT of the columns that [`Columns::entry`] reads, in its order, with the clauses that choose the rows.
macro_rules! select_entry {
    ($clauses:literal) => {
        concat!(
            "SELECT fork, seq, kind, name, digest, state, output, question, took_ms, note, attempt, at, checksum, epoch ",
            "FROM journal WHERE owner = ?1 AND id = ?2 ",
            $clauses
        )
    };
}

pub(crate) const SELECT_EPOCH: &str = select_entry!("AND epoch = ?3 ORDER BY fork, seq");
pub(crate) const SELECT_ALL: &str = select_entry!("ORDER BY epoch, fork, seq");
pub(crate) const SELECT_POSITION: &str = select_entry!("AND epoch = ?3 AND fork = ?4 AND seq = ?5");
pub(crate) const SELECT_QUESTION: &str = select_entry!("AND question = ?3");
pub(crate) const LAST_OF_ATTEMPT: &str =
    "SELECT max(at) FROM journal WHERE owner = ?1 AND id = ?2 AND epoch = ?3 AND attempt = ?4";
const INSERT: &str = "INSERT INTO journal (owner, id, epoch, fork, seq, kind, name, digest, state, output, question,
    took_ms, note, attempt, at, checksum)
  VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16) ON CONFLICT DO NOTHING";
// Leaves out the columns of the indexes, which never change.
pub(crate) const REPLACE: &str = "UPDATE journal SET digest = ?6, state = ?7, output = ?8, took_ms = ?9, note = ?10,
    attempt = ?11, at = ?12, checksum = ?13
  WHERE owner = ?1 AND id = ?2 AND epoch = ?3 AND fork = ?4 AND seq = ?5";
const INSERT_ATTEMPT: &str = "INSERT INTO attempt (owner, id, attempt, node, since, ended_at, end, reason)
  VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT DO NOTHING";
const ATTEMPTS: &str =
    "SELECT attempt, node, since, ended_at, end, reason FROM attempt WHERE owner = ?1 AND id = ?2 ORDER BY attempt";

/// The columns `state` and `output` of an entry.
pub(crate) struct StateColumns<'a> {
    pub(crate) word: &'static str,
    pub(crate) output: Option<Cow<'a, str>>,
}

impl<'a> StateColumns<'a> {
    fn of(state: &'a EntryState) -> Result<Self, DiskError> {
        Ok(match state {
            EntryState::Open => Self { word: "open", output: None },
            EntryState::Retrying(retry) => Self { word: "retrying", output: Some(json(retry)?.into()) },
            EntryState::Done(output) => Self { word: "done", output: Some(output.as_str().into()) },
            EntryState::Failed(reason) => Self { word: "failed", output: Some((&**reason).into()) },
            EntryState::TooLarge { bytes, bytes_max } => {
                Self { word: "too_large", output: Some(json(&(bytes, bytes_max))?.into()) }
            }
        })
    }
}

pub(crate) fn insert(
    statements: &mut Statements<'_>,
    key: &TaskKey,
    epoch: u32,
    entry: &JournalEntry,
) -> Result<Option<JournalEntry>, DiskError> {
    let (owner, id) = (key.owner.as_str(), key.id.as_str());
    let JournalPosition { fork, seq } = &entry.position;
    let state = StateColumns::of(&entry.state)?;
    let params = params![
        owner,
        id,
        epoch,
        &**fork,
        seq,
        entry.kind.as_str(),
        &*entry.name,
        entry.digest.cast_signed(),
        state.word,
        state.output.as_deref(),
        entry.question.as_ref().map(QuestionKey::as_str),
        entry.took_ms.map(to_sql),
        entry.note.as_deref(),
        entry.attempt,
        time_to_sql(entry.at),
        checksum::of_entry(entry, &state),
    ];
    if statements.execute(INSERT, params)? == 1 {
        return Ok(None);
    }
    statements.row(SELECT_POSITION, params![owner, id, epoch, &**fork, seq], |mut columns| columns.entry())
}

pub(crate) fn replace(
    statements: &mut Statements<'_>,
    key: &TaskKey,
    epoch: u32,
    entry: &JournalEntry,
) -> Result<(), DiskError> {
    let state = StateColumns::of(&entry.state)?;
    let params = params![
        key.owner.as_str(),
        key.id.as_str(),
        epoch,
        &*entry.position.fork,
        entry.position.seq,
        entry.digest.cast_signed(),
        state.word,
        state.output.as_deref(),
        entry.took_ms.map(to_sql),
        entry.note.as_deref(),
        entry.attempt,
        time_to_sql(entry.at),
        checksum::of_entry(entry, &state),
    ];
    statements.execute(REPLACE, params).map(|_| ())
}

/// The entry of a question, and its epoch.
pub(crate) fn question(
    statements: &mut Statements<'_>,
    key: &TaskKey,
    question: &QuestionKey,
) -> Result<Option<(u32, JournalEntry)>, DiskError> {
    let params = [key.owner.as_str(), key.id.as_str(), question.as_str()];
    statements.row(SELECT_QUESTION, params, |mut columns| {
        let entry = columns.entry()?;
        Ok((columns.value()?, entry))
    })
}

/// When an attempt has last written an entry.
pub(crate) fn last_of_attempt(
    statements: &mut Statements<'_>,
    key: &TaskKey,
    epoch: u32,
    attempt: u32,
) -> Result<Option<Timestamp>, DiskError> {
    let params = params![key.owner.as_str(), key.id.as_str(), epoch, attempt];
    Ok(statements.row(LAST_OF_ATTEMPT, params, |mut columns| columns.maybe_time())?.flatten())
}

pub(crate) fn of_epoch(
    statements: &mut Statements<'_>,
    key: &TaskKey,
    epoch: u32,
) -> Result<Vec<JournalEntry>, DiskError> {
    let params = params![key.owner.as_str(), key.id.as_str(), epoch];
    statements.rows(SELECT_EPOCH, params, |mut columns| columns.entry())
}

pub(crate) fn insert_attempt(
    statements: &mut Statements<'_>,
    key: &TaskKey,
    attempt: &AttemptRecord,
) -> Result<(), DiskError> {
    let (end, reason) = match &attempt.end {
        AttemptEnd::Lost => ("lost", None),
        AttemptEnd::Stopped => ("stopped", None),
        AttemptEnd::Parked => ("parked", None),
        AttemptEnd::Returned => ("returned", None),
        AttemptEnd::Released(reason) => ("released", Some(&**reason)),
    };
    let params = params![
        key.owner.as_str(),
        key.id.as_str(),
        attempt.attempt,
        attempt.node.to_string(),
        time_to_sql(attempt.began_at),
        time_to_sql(attempt.ended_at),
        end,
        reason
    ];
    statements.execute(INSERT_ATTEMPT, params).map(|_| ())
}

pub(crate) fn history(statements: &mut Statements<'_>, key: &TaskKey) -> Result<TaskHistory, DiskError> {
    let params = [key.owner.as_str(), key.id.as_str()];
    let entries = statements.rows(SELECT_ALL, params, |mut columns| columns.entry())?;
    let attempts = statements.rows(ATTEMPTS, params, |mut columns| columns.attempt())?;
    Ok(TaskHistory { attempts, entries })
}

impl Columns<'_, '_> {
    /// Reads the columns of `select_entry!` up to the checksum.
    pub(crate) fn entry(&mut self) -> rusqlite::Result<JournalEntry> {
        let entry = JournalEntry {
            position: JournalPosition { fork: self.common_text()?, seq: self.value()? },
            kind: self.parsed(EntryKind::parse)?,
            name: self.common_text()?,
            digest: self.value::<i64>()?.cast_unsigned(),
            state: self.state()?,
            question: self.text()?.map(QuestionKey::from_text),
            took_ms: self.maybe_number()?,
            note: self.text()?.map(Arc::from),
            attempt: self.value()?,
            at: self.time()?,
        };
        self.check()?;
        Ok(entry)
    }

    fn state(&mut self) -> rusqlite::Result<EntryState> {
        let word = self.required_text()?;
        let output = self.text()?;
        let state = match (word, output) {
            ("open", None) => Some(EntryState::Open),
            ("retrying", Some(retry)) => serde_json::from_str(retry).ok().map(EntryState::Retrying),
            ("done", Some(output)) => Some(EntryState::Done(Json::from_text(output))),
            ("failed", Some(reason)) => Some(EntryState::Failed(reason.into())),
            ("too_large", Some(sizes)) => {
                serde_json::from_str(sizes).ok().map(|(bytes, bytes_max)| EntryState::TooLarge { bytes, bytes_max })
            }
            _ => None,
        };
        state.ok_or_else(|| invalid_column(5, format!("an entry that is {word:?} cannot have this output")))
    }

    fn attempt(&mut self) -> rusqlite::Result<AttemptRecord> {
        Ok(AttemptRecord {
            attempt: self.value()?,
            node: self.node()?,
            began_at: self.time()?,
            ended_at: self.time()?,
            end: match (self.required_text()?, self.text()?) {
                ("lost", None) => AttemptEnd::Lost,
                ("stopped", None) => AttemptEnd::Stopped,
                ("parked", None) => AttemptEnd::Parked,
                ("returned", None) => AttemptEnd::Returned,
                ("released", Some(reason)) => AttemptEnd::Released(reason.into()),
                (word, _) => return Err(invalid_column(4, format!("{word:?} is not the end of an attempt"))),
            },
        })
    }
}

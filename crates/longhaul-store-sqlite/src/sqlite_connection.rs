//! A connection with its compiled statements and its shared texts.

use std::ptr;

use longhaul_store::embedded::DiskError;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Connection, OptionalExtension, Params};

use crate::error::disk_error;
use crate::row::Columns;
use crate::texts::Texts;

/// The writer has one of its own; the readers share a few.
#[derive(Debug)]
pub(crate) struct SqliteConnection {
    pub(crate) inner: Connection,
    texts: Texts,
}

impl SqliteConnection {
    pub(crate) fn new(connection: Connection) -> Self {
        Self { inner: connection, texts: Texts::default() }
    }

    /// Starts a transaction or a read, which has taken no statement from the cache yet.
    pub(crate) fn statements(&mut self) -> Statements<'_> {
        Statements { connection: &self.inner, texts: &mut self.texts, by_text: Vec::new() }
    }
}

/// The statements that one transaction or one read has used so far. Each is taken from the connection's cache at its first use and
/// returned when this is dropped: a search by text at every use took 5 % of the writer's time.
pub(crate) struct Statements<'c> {
    connection: &'c Connection,
    texts: &'c mut Texts,
    by_text: Vec<(&'static str, CachedStatement<'c>)>,
}

impl<'c> Statements<'c> {
    pub(crate) fn connection(&self) -> &Connection {
        self.connection
    }

    /// Runs a statement that changes rows. Returns how many it changed.
    pub(crate) fn execute(&mut self, sql: &'static str, params: impl Params) -> Result<usize, DiskError> {
        self.statement(sql)?.0.execute(params).map_err(disk_error)
    }

    /// Runs a statement that changes rows, with the values of all groups as its parameters, in their order.
    pub(crate) fn execute_values(&mut self, sql: &'static str, groups: &[&[ValueRef<'_>]]) -> Result<usize, DiskError> {
        let (statement, _) = self.statement(sql)?;
        let mut index = 0;
        for group in groups {
            for value in *group {
                index += 1;
                statement.raw_bind_parameter(index, ToSqlOutput::Borrowed(*value)).map_err(disk_error)?;
            }
        }
        // A parameter that is not bound would keep its value from the last execution, which wrote another row.
        if index != statement.parameter_count() {
            return Err(disk_error(rusqlite::Error::InvalidParameterCount(index, statement.parameter_count())));
        }
        statement.raw_execute().map_err(disk_error)
    }

    /// Reads the first row of a query, if it has one.
    pub(crate) fn row<T>(
        &mut self,
        sql: &'static str,
        params: impl Params,
        read: impl FnOnce(Columns<'_, '_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, DiskError> {
        let (statement, texts) = self.statement(sql)?;
        statement.query_row(params, |row| read(Columns::of(row, texts))).optional().map_err(disk_error)
    }

    /// Reads all rows of a query.
    pub(crate) fn rows<T>(
        &mut self,
        sql: &'static str,
        params: impl Params,
        mut read: impl FnMut(Columns<'_, '_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, DiskError> {
        let (statement, texts) = self.statement(sql)?;
        let rows = statement.query_map(params, |row| read(Columns::of(row, texts))).map_err(disk_error)?;
        rows.collect::<Result<_, _>>().map_err(disk_error)
    }

    fn statement(&mut self, sql: &'static str) -> Result<(&mut CachedStatement<'c>, &mut Texts), DiskError> {
        // Addresses are compared, because it is faster. Two constants with equal texts would be two entries, and one of them would
        // be compiled again in each transaction.
        let found = self.by_text.iter().position(|(known, _)| ptr::eq(*known, sql));
        let index = found.unwrap_or(self.by_text.len());
        if found.is_none() {
            self.by_text.push((sql, self.connection.prepare_cached(sql).map_err(disk_error)?));
        }
        Ok((&mut self.by_text[index].1, self.texts))
    }
}

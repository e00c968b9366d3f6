//! Numbered steps from any older schema to the newest.
//!
//! A released step never changes; a new one is a new file and a line in [`MIGRATIONS`]. `user_version` in the file is the
//! number of steps that it has.

use std::path::Path;

use longhaul_store::OpenError;
use rusqlite::{Connection, TransactionBehavior};

use crate::error::{display_path, sqlite_error};

/// The steps in order: the first makes version 1.
pub(crate) const MIGRATIONS: &[&str] = &[
    include_str!("schema/0001_tasks.sql"),
    include_str!("schema/0002_small_texts.sql"),
    include_str!("schema/0003_turns.sql"),
    include_str!("schema/0004_checksums.sql"),
    include_str!("schema/0005_journal.sql"),
    include_str!("schema/0006_idempotency.sql"),
    include_str!("schema/0007_began_at.sql"),
];

/// `LHst` in the header of the file, so that the database of another program is not taken for a store.
const APPLICATION_ID: i32 = 0x4c48_7374;

/// Brings a file to the newest version, in one transaction.
pub(crate) fn migrate(connection: &mut Connection, path: &Path, steps: &[&str]) -> Result<(), OpenError> {
    let sqlite = |error: rusqlite::Error| sqlite_error(path, &error);
    let found = version(connection, path, steps.len())?;
    if found == steps.len() {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(sqlite)?;
    for step in &steps[found..] {
        transaction.execute_batch(step).map_err(sqlite)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID).map_err(sqlite)?;
    transaction.pragma_update(None, "user_version", number(steps.len())).map_err(sqlite)?;
    transaction.commit().map_err(sqlite)?;
    if found > 0 {
        tracing::info!(from = found, to = steps.len(), "the store was brought to a newer version");
    }
    Ok(())
}

/// The version of the file, or why this program must not use it. Zero for an empty file.
pub(crate) fn version(connection: &Connection, path: &Path, known: usize) -> Result<usize, OpenError> {
    let sqlite = |error: rusqlite::Error| sqlite_error(path, &error);
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0)).map_err(sqlite);
    let found = pragma("user_version")?;
    let is_ours = pragma("application_id")? == APPLICATION_ID;
    let count = "SELECT count(*) FROM sqlite_schema";
    let objects: i64 = connection.query_row(count, [], |row| row.get(0)).map_err(sqlite)?;
    if !is_ours && (found != 0 || objects != 0) {
        return Err(OpenError::Foreign { store: display_path(path) });
    }
    if found == 0 && objects != 0 {
        let cause = "it has tables, but its version number (`user_version`) is 0".to_owned();
        return Err(OpenError::Damaged { store: display_path(path), cause });
    }
    match usize::try_from(found) {
        Ok(found) if found <= known => Ok(found),
        _ => {
            // No version so far is below zero, so a later program wrote it.
            let found = u32::try_from(found).unwrap_or(u32::MAX);
            Err(OpenError::Newer { store: display_path(path), found, known: number(known) })
        }
    }
}

fn number(version: usize) -> u32 {
    u32::try_from(version).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOWHERE: &str = "memory";
    const SECRETS: &str = "SELECT name FROM secret";

    fn version_one() -> Connection {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, Path::new(NOWHERE), &MIGRATIONS[..1]).unwrap();
        connection.execute("INSERT INTO secret VALUES ('kept', x'00')", []).unwrap();
        connection
    }

    fn text(connection: &Connection, sql: &str) -> String {
        connection.query_row(sql, [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn a_file_of_version_1_keeps_its_rows_through_every_later_step() {
        let mut connection = version_one();
        let mut steps = MIGRATIONS.to_vec();
        steps.push("ALTER TABLE secret ADD COLUMN note TEXT NOT NULL DEFAULT 'new'");
        migrate(&mut connection, Path::new(NOWHERE), &steps).unwrap();
        assert_eq!(text(&connection, SECRETS), "kept");
        assert_eq!(text(&connection, "SELECT note FROM secret"), "new");
        assert_eq!(version(&connection, Path::new(NOWHERE), steps.len()).unwrap(), steps.len());
    }

    #[test]
    fn a_step_that_fails_leaves_the_file_as_it_was() {
        let mut connection = version_one();
        let steps = [MIGRATIONS[0], "DELETE FROM secret", "NOT SQL"];
        assert!(migrate(&mut connection, Path::new(NOWHERE), &steps).is_err());
        assert_eq!(text(&connection, SECRETS), "kept");
        assert_eq!(version(&connection, Path::new(NOWHERE), 1).unwrap(), 1);
    }
}

//! The SQLite backend: one file, used by one process, durable before a change is acknowledged.
//!
//! [`open`] gives the same [`Embedded`](longhaul_store::Embedded) store as the memory backend, on a file:
//!
//! ```
//! use longhaul_store::{Store, SystemClock};
//! use longhaul_store_sqlite::{SqliteOptions, open};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("tasks.db");
//! let store = open(&path, &SqliteOptions::default(), SystemClock)?;
//! let secret = store.secret("sessions", [7; 32]).await?;
//! store.close().await;
//!
//! let again = open(&path, &SqliteOptions::default(), SystemClock)?;
//! assert_eq!(again.secret("sessions", [8; 32]).await?, secret);
//! # Ok(())
//! # }
//! ```
//!
//! # Layout
//!
//! - `open`: [`open`], [`open_read_only`] and their [`SqliteOptions`].
//! - `lock`, `check`, `migration`: what happens to a file before it is used. `identity`: whether it is still there.
//! - `disk`: the connection of the writer. `transaction`: its transactions. `reader`, `pool`: the connections of readers.
//!   `sqlite_connection`: what both do with a connection.
//! - `task_columns`: converting tasks to columns. `value`: the values of columns. `row`: reading rows. `checksum`: the checksums of
//!   rows. `journal`: the journal and the attempts of tasks.
//! - `backup`: [`backup`], also while a server runs. `report`: what is damaged in a store.
//!
//! # Limits
//!
//! | what | limit |
//! | --- | --- |
//! | size of the file | [`SqliteOptions::file_bytes_max`], else the disk |
//! | size of the log before it is moved into the file | 16 MiB, more while a connection reads |
//! | wait for another program that has locked the file | 5 s |
//! | wait for other readers when the store is closed | 1 s |
//! | reading connections | 16 |
//! | size up to which a file is read completely when it is opened | 64 MiB |

mod backup;
mod check;
mod checksum;
mod connection;
mod disk;
mod error;
mod file;
mod identity;
mod journal;
mod lock;
mod migration;
mod open;
mod pool;
mod reader;
mod report;
mod row;
mod sqlite_connection;
mod task_columns;
mod texts;
mod transaction;
mod value;

pub use backup::backup;
#[doc(hidden)]
pub use open::Synchronous;
pub use open::{SqliteOptions, create_directory, open, open_read_only};
pub use reader::SqliteReader;

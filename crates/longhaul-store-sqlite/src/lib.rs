//! The SQLite backend: one file, one process, durable before it is acknowledged.
//!
//! [`open`] gives the same [`Embedded`](longhaul_store::Embedded) store as the memory backend, on a file:
//!
//! ```
//! use longhaul_store::{Store, SystemClock};
//! use longhaul_store_sqlite::{Options, open};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("tasks.db");
//! let store = open(&path, &Options::default(), SystemClock)?;
//! let secret = store.secret("sessions", [7; 32]).await?;
//! store.close().await;
//!
//! let again = open(&path, &Options::default(), SystemClock)?;
//! assert_eq!(again.secret("sessions", [8; 32]).await?, secret);
//! # Ok(())
//! # }
//! ```
//!
//! # Layout
//!
//! - `open`: [`open`], [`open_read_only`] and their [`Options`].
//! - `lock`, `check`, `migration`: what a file goes through before it is used.
//! - `disk`: the writer's connection. `reader`, `pool`: everybody's. `session`: what both do with a
//!   connection. `row`: a task as a row, and back.
//! - `backup`: [`backup`], also while a server runs.
//!
//! # Limits
//!
//! | what | limit |
//! | --- | --- |
//! | size of the file | [`Options::file_bytes_max`], else the disk |
//! | size of the log before it is moved into the file | 16 MiB, longer while somebody reads |
//! | wait for another program's lock on the file | 5 s |
//! | wait for others who read, when it is closed | 1 s |
//! | connections that read | 16 |
//! | size up to which a file is read through when it is opened | 64 MiB |

mod backup;
mod check;
mod connection;
mod disk;
mod error;
mod file;
mod lock;
mod migration;
mod open;
mod pool;
mod reader;
mod row;
mod session;
mod texts;

pub use backup::backup;
#[doc(hidden)]
pub use open::Synchronous;
pub use open::{Options, create_directory, open, open_read_only};
pub use reader::SqliteReader;

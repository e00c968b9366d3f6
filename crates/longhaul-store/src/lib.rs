//! Durable or it did not happen: where tasks live.
//!
//! The engine runs on the [`Store`] trait. What a backend must do is small, because it contains no rules: events are
//! data, the pure state machine of [`longhaul_task`] decides, and the store writes what it decided.
//!
//! - [`Store`] and the types around it: the trait, [`StoreError`], [`Watch`].
//! - [`OpenError`]: why a store cannot be opened. [`ReadOnlyStore`]: looking at a store while a server uses it.
//! - [`embedded`]: a store in this process, with one group-committing writer, on any [`embedded::Disk`]. SQLite and
//!   memory are disks.
//! - [`memory`]: the disk that forgets.
//! - `contract` (feature `contract`): the suite that every backend passes, for the tests of yours.
//! - [`Clock`]: who tells the time.

mod clock;
#[cfg(feature = "contract")]
pub mod contract;
pub mod embedded;
mod error;
pub mod memory;
mod open;
mod read_only;
mod setters;
mod store;
mod watch;

pub use clock::{Clock, ManualClock, SystemClock};
pub use embedded::Embedded;
pub use error::StoreError;
pub use open::OpenError;
pub use read_only::{Backup, BackupError, ReadOnlyStore};
pub use store::{Applied, ClaimNext, Claimed, Count, Due, Listing, NewTask, Orphan, Snapshot, Store, TaskPage};
pub use watch::{Watch, Watchers};

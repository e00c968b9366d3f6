//! Durable storage for tasks.
//!
//! The engine uses stores through the [`Store`] trait. A backend contains no rules: an event is data, the state machine
//! of [`longhaul_task`] decides what it changes, and the backend writes that change.
//!
//! - [`Store`] and the types around it: the trait, [`StoreError`], [`Watch`].
//! - [`OpenError`]: why a store cannot be opened. [`ReadOnlyStore`]: reading a store while a server uses it.
//! - [`embedded`]: a store in this process, with one writer that commits in groups, on any [`embedded::Disk`]. SQLite
//!   and memory are disks.
//! - [`memory`]: the disk in memory.
//! - `contract` (feature `contract`): the test suite that every backend must pass.
//! - [`Clock`]: the source of time.

#![warn(missing_docs)]

mod clock;
#[cfg(feature = "contract")]
pub mod contract;
#[allow(missing_docs)]
mod crash_trigger;
#[allow(missing_docs)] // For the backends in this workspace.
pub mod embedded;
mod error;
mod idempotency;
#[allow(missing_docs)]
pub mod memory;
mod open;
mod read_only;
mod setters;
mod store;
mod watch;

pub use clock::{Clock, ManualClock, SystemClock};
pub use crash_trigger::CrashTrigger;
pub use embedded::Embedded;
pub use error::StoreError;
pub use idempotency::{IdempotencyKey, KeyedTask};
pub use open::OpenError;
pub use read_only::{Backup, BackupError, Damage, ReadOnlyStore, StoreReport};
pub use store::{
    ClaimRequest, ClaimedTask, CommitResult, CreateResult, DueTasks, HeldAttempt, ListQuery, NewTask, Snapshot, Store,
    TaskCount, TaskHistory, TaskPage, ToolClaim,
};
pub use watch::{Watch, Watchers};

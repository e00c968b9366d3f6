//! The durable task and its legal transitions.
//!
//! This is the centre of Longhaul: a pure state machine, `(task, event, now) -> task' + effects` or a typed refusal.
//! It reads no clock, draws no random number, does no I/O and knows no protocol. Stores call it inside their
//! transactions, the simulator calls it millions of times, and every wire generation is a view of its [`Task`].
//!
//! ```
//! use longhaul_task::transition::{self, Cancel, Create};
//! use longhaul_task::{
//!     Event, Outcome, Owner, Policy, TransitionError, Retention, Surroundings, TaskId, TaskKey, Timestamp, ToolRef,
//! };
//!
//! let now = Timestamp::from_ms(1_700_000_000_000);
//! let key = TaskKey { owner: Owner::parse("ada").unwrap(), id: TaskId::mint(now, [1; 16]) };
//! let task = transition::create(
//!     &Create {
//!         key,
//!         tool: ToolRef::new("generate_report", "1"),
//!         origin: "docs".into(),
//!         policy: Policy::default(),
//!         retention: Retention::FromCreation(3_600_000),
//!         claimed_by: None,
//!         first_fence: 0,
//!     },
//!     now,
//! );
//!
//! let cancel = Event::Cancel(Cancel::default());
//! let change = transition::apply(&task, &cancel, &Surroundings::default(), now.plus_ms(5)).unwrap();
//! assert_eq!(change.task.phase.outcome(), Some(&Outcome::Cancelled));
//!
//! // Terminal is final.
//! let again = transition::apply(&change.task, &cancel, &Surroundings::default(), now.plus_ms(6));
//! assert_eq!(again, Err(TransitionError::Settled));
//! ```
//!
//! # Layout
//!
//! - [`Task`] and its parts: [`Phase`], [`Family`], [`Policy`], [`Retention`], [`Question`]s, the [`Outcome`].
//! - [`Event`]: what can happen to a task. [`Scope`] and [`Surroundings`]: what a store loads before it applies an
//!   event. [`Change`]: what it writes afterwards.
//! - [`transition`]: one file per transition.

mod event;
mod id;
mod journal;
mod json;
mod outcome;
mod phase;
mod progress;
mod question;
mod retention;
mod task;
mod time;
mod tool;
pub mod transition;
mod transition_error;

pub use event::{Change, DescendantScope, Effect, Event, Scope, Surroundings};
pub use id::{NAME_BYTES_MAX, NameError, NodeId, Owner, TaskId, TaskKey};
pub use journal::{
    Answer, AttemptEnd, AttemptRecord, ENTRY_NAME_BYTES_MAX, EntryConflict, EntryKind, EntryState, JournalEntry,
    JournalPosition, JournalWrite, StepRetry, describe, record,
};
pub use json::Json;
pub use outcome::{Outcome, TaskError};
pub use phase::{ActiveAttempt, CHILD_RANGES_MAX, ChildRange, Phase, PhaseName, WaitingState, WakeCondition};
pub use progress::Progress;
pub use question::{
    LABEL_BYTES_MAX, QUESTIONS_OPEN_MAX, Question, QuestionDeadline, QuestionKey, QuestionKind, Questions,
};
pub use retention::{AHEAD_MS_MIN, COLLECT_MS_MIN, Retention};
pub use task::{CHILDREN_MAX, DEPTH_MAX, Family, MESSAGE_BYTES_MAX, Task};
pub use time::{Timestamp, Wait};
pub use tool::{OnCrash, Policy, ToolRef};
pub use transition_error::TransitionError;

//! What the engine promises, each claim in the file of its subject.

mod ask;
mod call;
mod cancel;
mod children;
mod clock;
mod common;
mod core;
mod crash;
mod create;
mod due;
mod idempotency;
mod limits;
mod message;
mod panic;
mod parking;
mod race;
mod replay;
mod shutdown;
mod step;
mod store_trouble;
mod subtask;
mod timer;
mod tools;

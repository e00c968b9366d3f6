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
mod panic;
mod shutdown;
mod store_trouble;

//! The receiver in this process: messages and headers are passed to it as data, without sockets.
//!
//! - `handshake`, `sessions`, `streams`, `restart`, `batches`: the stateful era.
//! - `calls`, `tasks`, `subscribe`, `logging`, `question`, `remote_task`: operations, and messages beside responses.
//! - `sep1686`, `lesson`: generations that no revision contains. `tickets`, `stopping`: clients without tasks.
//! - `prompts`, `resources`: what a server offers beside tools; `request_tasks`: as tasks. `catalogue`: what it offers changes while it runs.
//! - `anonymous`: tasks of callers without an identity. `rates`, `limits`, `fair`: how much an owner may use.
//! - `bad_input`: every error, in a table. `arguments`: those that a type refuses. `matrix`: what each generation shows of
//!   every task, and that owners see nothing of each other.

mod anonymous;
mod arguments;
mod bad_input;
mod batches;
mod calls;
mod catalogue;
mod fair;
mod handshake;
mod idempotency;
mod lesson;
mod limits;
mod logging;
mod matrix;
mod memory;
mod prompts;
mod question;
mod rates;
mod remote_task;
mod request_tasks;
mod resources;
mod restart;
mod sep1686;
mod sessions;
mod stopping;
mod streams;
mod subscribe;
mod subtasks;
mod tasks;
mod tickets;

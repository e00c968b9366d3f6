//! The receiver's behaviour, in process: messages and headers go in by its entrance, as data; no sockets.
//!
//! - `handshake`, `sessions`, `streams`, `restart`, `batches`: the stateful era.
//! - `calls`, `tasks`, `subscribe`, `logging`, `question`, `remote_task`: operations, and what is sent beside responses.
//! - `anonymous`: tasks of callers that are not known. `rates`, `limits`: how much an owner may use.
//! - `bad_input`: every error, in a table. `matrix`: every generation sees its own column of
//!   every task, and no owner anything of another.

mod anonymous;
mod bad_input;
mod batches;
mod calls;
mod handshake;
mod limits;
mod logging;
mod matrix;
mod memory;
mod question;
mod rates;
mod remote_task;
mod restart;
mod sessions;
mod streams;
mod subscribe;
mod tasks;

//! The load generator: it drives any server that speaks the tasks extension of MCP 2026-07-28 over HTTP/1.1, and
//! measures what comes back.
//!
//! It runs beside the server on the same cores, so its own cost is part of every figure. That is why it is one thread,
//! one [`connection`] type that knows just enough HTTP, and request bytes that are [prepared](request) once.
//!
//! - [`connection`]: a keep-alive connection: bytes out, one answer back.
//! - [`request`]: the bytes of `tools/call` and `tasks/get`, headers and `_meta` included.
//! - [`answer`]: what counts as an answer. Anything that is no task fails the run.
//! - [`session`]: one connection and its requests: create, get, wait until completed.
//! - [`stateful`]: the same for the era before: a session, and the list of tasks.
//! - [`window`]: the measured stretch of time: rate, latencies, processor time of both sides.
//! - [`scenario`]: one file per subcommand.

pub mod answer;
pub mod connection;
pub mod request;
pub mod scenario;
pub mod session;
pub mod stateful;
pub mod window;

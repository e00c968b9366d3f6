//! The load generator: it sends requests to any server with the tasks extension of MCP 2026-07-28 over HTTP/1.1, and
//! measures the responses.
//!
//! It runs on the same cores as the server, so its own processor time affects every measurement. Therefore it has one
//! thread, a minimal HTTP [`connection`], and requests that are mostly [rendered](request) in advance.
//!
//! - [`connection`]: a keep-alive connection.
//! - [`request`]: the bytes of `tools/call` and `tasks/get`, including headers and `_meta`.
//! - [`answer`]: checks responses. A response that is not a task fails the run.
//! - [`session`]: one connection and its requests: create, get, wait until completed.
//! - [`stateful`]: a session of 2025-11-25, for the list of tasks.
//! - [`window`]: the measured time: rate, latencies, processor time of both sides.
//! - [`scenario`]: one file per subcommand.

pub mod answer;
pub mod connection;
pub mod request;
pub mod scenario;
pub mod session;
pub mod stateful;
pub mod window;

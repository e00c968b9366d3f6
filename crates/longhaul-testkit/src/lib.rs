//! What the tests of the crates share: a server in the same process, its clients, and tools that a test controls.
//!
//! ```ignore
//! let server = TestServer::start(conformance()).await;          // no socket
//! let mut client = server.client().await;                       // 2026-07-28
//! let session = SessionClient::open(&server, forms()).await;    // 2025-11-25
//! let id = client.create("echo", json!({ "text": "hello" })).await?;
//! ```
//!
//! - [`TestEndpoint`]: the server that a client sends its requests to: a receiver in the same process, or an address.
//! - [`StatelessClient`], [`SessionClient`]: one client per era. Every message from the server is checked against the official
//!   schema of its revision.
//! - [`raw`]: requests as data, for those that no correct client sends.
//! - [`tools`]: tools whose handlers wait until a test lets them go on.

mod conformance;
mod endpoint;
mod official;
mod pipe;
pub mod raw;
mod reply;
mod row;
pub mod schema;
mod server;
mod session;
mod stateless;
pub mod tools;

use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

pub use conformance::conformance;
pub use endpoint::TestEndpoint;
pub use pipe::PipeClient;
pub use reply::{Reply, ReplyMessages, WholeReply};
pub use row::RequestCase;
pub use server::TestServer;
pub use session::{LATEST, SessionClient, initialize_params};
pub use stateless::{FailureReport, GetTaskResult, StatelessClient, VERSION, stateless_message, tasks_and_forms};

/// How long a test waits for an event that must happen before it fails. No test that passes depends on it.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Waits for an event that must happen. Panics with its description, `what`, if it does not.
pub async fn in_time<T>(what: &str, event: impl Future<Output = T>) -> T {
    let result = tokio::time::timeout(PATIENCE, event).await;
    result.unwrap_or_else(|_| panic!("this did not happen within {PATIENCE:?}: {what}"))
}

/// Evaluates a condition again and again until it is true. Panics with its description if it does not become true.
pub async fn until(what: &str, mut is_true: impl AsyncFnMut() -> bool) {
    in_time(what, async {
        while !is_true().await {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// The number in an environment variable, or `default` if it is not set.
pub fn number_from_environment<T: FromStr>(variable: &str, default: T) -> T {
    match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable} must be a number, not {text:?}")),
        Err(_) => default,
    }
}

/// The names of the files in a directory, sorted.
pub fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("a directory");
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

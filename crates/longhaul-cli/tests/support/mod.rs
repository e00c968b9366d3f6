//! What the tests of the program share: starting it, ending it, speaking to it.
//!
//! ```ignore
//! let server = Launch::conformance().store(&file).start().await;
//! let mut client = Client::connect(server.address()).await?;
//! let id = client.create("echo", json!({ "text": "hello" })).await?;
//! server.kill().await;
//! ```
#![allow(dead_code, unused_imports, reason = "each test file uses its part")]

mod client;
mod events;
mod local;
mod process;
pub(crate) mod raw;
pub(crate) mod schema;
pub(crate) mod stateful;

pub(crate) use client::{Answer, Client, TaskView, Trouble, VERSION};
pub(crate) use events::Events;
pub(crate) use local::Local;
pub(crate) use process::{Launch, Server, Starting, longhaul};

use std::path::Path;
use std::time::Duration;

/// When something that must happen is given up on, so that a test which hangs says where. Nothing is measured by it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// Waits for what must happen, and says what it was if it does not.
pub(crate) async fn in_time<T>(what: &str, event: impl Future<Output = T>) -> T {
    let came = tokio::time::timeout(PATIENCE, event).await;
    came.unwrap_or_else(|_| panic!("waited for {PATIENCE:?}, and it did not come: {what}"))
}

/// The names in a directory, in order.
pub(crate) fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("a directory");
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

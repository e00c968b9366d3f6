//! The server under test, and a client that answers every question.

mod client;
mod server;

pub use client::{Answering, connect, text};
pub use server::{Over, TRANSPORTS};

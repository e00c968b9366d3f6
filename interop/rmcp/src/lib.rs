//! The server under test, and a client of it that says yes to every question.

mod client;
mod server;

pub use client::{Answering, connect, text};
pub use server::{Over, TRANSPORTS};

//! Whose task is it: tokens that come and go while the server runs, the local user, everybody.

#[path = "../support/mod.rs"]
mod support;

mod anonymous;
mod foreign;
mod identify;
mod local;
mod token_file;

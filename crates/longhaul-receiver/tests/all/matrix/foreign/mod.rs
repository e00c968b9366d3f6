//! Anything of another owner looks like something that does not exist: the same bytes, and no later messages.

mod cursors;
mod probe;
mod sessions;
mod tasks;

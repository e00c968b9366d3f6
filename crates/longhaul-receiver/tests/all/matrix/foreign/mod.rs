//! What is somebody else's looks like what never was: the same bytes, and silence afterwards.

mod cursors;
mod probe;
mod sessions;
mod tasks;

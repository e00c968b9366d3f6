//! Every generation makes a task, every one follows it, and each sees what its column of the protocol says.
//!
//! - `generation`: one file each: how it makes, follows, asks and cancels. A new one joins the list there.
//! - `table`: what each of them sees of each way to end.
//! - `endings`, `questions`, `retention`: the claims.
//! - `foreign`: a foreign task, session or cursor looks like an unknown one.

mod endings;
mod foreign;
mod generation;
mod kit;
mod questions;
mod retention;
mod table;

//! Every generation there is makes a task, every one follows it, and each sees what its column of the protocol says.
//!
//! - `generation`: one file each: how it makes, follows, asks and cancels. A new one joins the list there.
//! - `table`: what each of them sees of each way to end.
//! - `endings`, `questions`, `retention`: the claims.
//! - `foreign`: what is somebody else's looks like what never was.

mod endings;
mod foreign;
mod generation;
mod kit;
mod questions;
mod retention;
#[path = "../support/mod.rs"]
mod support;
mod table;

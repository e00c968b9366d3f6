//! A task of every generation, followed in every generation: each client sees what its generation defines.
//!
//! - `generation`: one file for each generation. A new generation is added to the list there.
//! - `table`: what a client of each generation sees for each way to end.
//! - `endings`, `families`, `questions`, `retention`, `unmarked`: the tests.
//! - `foreign`: a foreign task, session or cursor looks like an unknown one.

mod endings;
mod families;
mod foreign;
mod generation;
mod kit;
mod questions;
mod retention;
mod table;
mod unmarked;

//! The laws of the state machine, each checked as a property of random histories. The histories contain growing
//! families, questions, crashes, late attempts, and a clock that stands still and jumps in both directions.

#[path = "../model/mod.rs"]
mod model;

mod attempts;
mod diagram;
mod families;
mod finality;
mod limits;
mod questions;
mod reach;
mod retention;
mod time;

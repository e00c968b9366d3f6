//! The laws of the machine, each a property of random histories: families that grow, questions, crashes, attempts that
//! come too late, and a clock that stands still and jumps both ways.

#[path = "../model/mod.rs"]
mod model;

mod attempts;
mod families;
mod finality;
mod limits;
mod questions;
mod reach;
mod retention;
mod time;

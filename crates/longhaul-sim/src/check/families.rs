use longhaul_task::{Task, TaskKey};

use super::Law;
use super::truth::Truth;
use crate::ledger::{Fact, short};

/// A parent settles after its children; a child is there exactly as long as its parent.
pub(super) struct Families;

impl Law for Families {
    fn says(&self) -> &'static str {
        "families live and die together"
    }

    fn look(&mut self, truth: &Truth, fact: &Fact) -> Result<(), String> {
        let Fact::Committed(_) = fact else { return Ok(()) };
        truth.all().try_for_each(|task| child(truth, task))
    }
}

fn child(truth: &Truth, task: &Task) -> Result<(), String> {
    let Some(parent) = &task.family.parent else { return Ok(()) };
    let key = TaskKey { owner: task.key.owner.clone(), id: parent.clone() };
    match truth.now(&key) {
        None => Err(format!("{} is there without its parent", short(&task.key))),
        Some(parent) if parent.is_settled() && !task.is_settled() => {
            Err(format!("{} has ended before its child {}", short(&parent.key), short(&task.key)))
        }
        Some(parent) if parent.family.root != task.family.root => {
            Err(format!("{} is of another family than its parent", short(&task.key)))
        }
        Some(_) => Ok(()),
    }
}

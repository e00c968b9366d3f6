//! Holds a ledger against the laws: one file each.

mod durable;
mod families;
mod fences;
mod finality;
mod foreign;
mod limits;
mod progress;
mod questions;
mod readers;
mod records;
mod recovery;
#[cfg(test)]
mod tests;
mod time;
mod truth;
mod watchers;

use self::truth::DurableStates;
use crate::ledger::{Entry, Fact};

/// A law that a history broke.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{law}: {what} (line {line})")]
pub struct Violation {
    pub law: &'static str,
    pub what: String,
    /// The line of the ledger that shows it.
    pub line: usize,
}

/// One law, looking at one line after the other. The truth already contains the line.
trait Law {
    /// What it says.
    fn statement(&self) -> &'static str;

    /// Looks at the next line.
    fn observe(&mut self, truth: &DurableStates, fact: &Fact) -> Result<(), String>;
}

fn laws() -> [Box<dyn Law>; 13] {
    [
        Box::new(durable::Durability),
        Box::new(finality::Finality),
        Box::new(fences::Fences),
        Box::new(questions::Questions::default()),
        Box::new(records::Records::default()),
        Box::new(families::Families),
        Box::new(foreign::ForeignTasks),
        Box::new(limits::Limits::default()),
        Box::new(time::Time),
        Box::new(readers::Readers::default()),
        Box::new(recovery::Recovery),
        Box::new(watchers::Watchers),
        Box::new(progress::Progress),
    ]
}

/// Holds a whole ledger against every law.
pub fn check(ledger: &[Entry]) -> Result<(), Violation> {
    let mut truth = DurableStates::default();
    let mut laws = laws();
    for (line, entry) in ledger.iter().enumerate() {
        let counted = truth.take(line, &entry.fact);
        counted.map_err(|what| Violation { law: "every change is counted", what, line })?;
        for law in &mut laws {
            law.observe(&truth, &entry.fact).map_err(|what| Violation { law: law.statement(), what, line })?;
        }
    }
    Ok(())
}

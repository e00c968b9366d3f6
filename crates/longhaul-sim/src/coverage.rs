//! Counts of the transitions, crashes and faults in the histories.

use std::collections::BTreeMap;
use std::fmt;

use crate::fault::{CrashPoint, Fault};

/// The names of all transitions: the creation and every event.
pub const TRANSITIONS: [&str; 19] = [
    "create", "claim", "report", "ask", "answer", "time out", "abandon", "spawn", "park", "wake", "release", "settle",
    "cancel", "lose", "overdue", "shorten", "renew", "expire", "delete",
];

/// The kinds of journal entries. They are counted like transitions.
pub const ENTRIES: [&str; 8] = ["step", "question", "timer", "subtask", "now", "random", "race", "return"];

/// Events of handlers that must happen in some history.
pub const HANDLER_EVENTS: [&str; 21] = [
    "step replayed",
    "step done again",
    "step tried again",
    "step tried again after a restart",
    "step failed for good",
    "sleep without a handler",
    "sleep across a restart",
    "no answer in time",
    "answer not given",
    "child failed",
    "child cancelled",
    "child asked",
    "children taken one by one",
    "children not waited for",
    "race lost with a question",
    "race lost with a child",
    "race replayed",
    "time limit over",
    "stubborn handler",
    "forks renamed",
    "question left open",
];

/// Counts over many histories.
#[derive(Debug, Clone, Default)]
pub struct Coverage {
    pub histories: u64,
    pub transitions: BTreeMap<&'static str, TransitionCounts>,
    pub crashes: BTreeMap<CrashPoint, u64>,
    pub faults: BTreeMap<Fault, u64>,
    /// Everything else by name: the [`HANDLER_EVENTS`], and what clients did.
    pub others: BTreeMap<&'static str, u64>,
}

/// Counts for one transition.
#[derive(Debug, Clone, Copy, Default)]
pub struct TransitionCounts {
    pub committed: u64,
    /// Crashes after the write and before it was durable.
    pub crash_before: u64,
    /// Crashes after it was durable and before the caller had the response.
    pub crash_after: u64,
}

impl Coverage {
    pub(crate) fn committed(&mut self, event: &'static str) {
        self.transitions.entry(event).or_default().committed += 1;
    }

    pub(crate) fn crash_before(&mut self, event: &'static str) {
        self.transitions.entry(event).or_default().crash_before += 1;
    }

    pub(crate) fn crash_after(&mut self, event: &'static str) {
        self.transitions.entry(event).or_default().crash_after += 1;
    }

    pub(crate) fn count_fault(&mut self, fault: Fault) {
        *self.faults.entry(fault).or_default() += 1;
    }

    pub(crate) fn count_other(&mut self, what: &'static str) {
        *self.others.entry(what).or_default() += 1;
    }

    /// Adds the counts of other histories.
    pub fn add(&mut self, other: &Self) {
        self.histories += other.histories;
        for (event, counts) in &other.transitions {
            let sum = self.transitions.entry(event).or_default();
            sum.committed += counts.committed;
            sum.crash_before += counts.crash_before;
            sum.crash_after += counts.crash_after;
        }
        for (point, count) in &other.crashes {
            *self.crashes.entry(*point).or_default() += count;
        }
        for (fault, count) in &other.faults {
            *self.faults.entry(*fault).or_default() += count;
        }
        for (what, count) in &other.others {
            *self.others.entry(what).or_default() += count;
        }
    }

    /// A sentence for each transition, crash point, fault and handler event that no history has met.
    pub fn gaps(&self) -> Vec<String> {
        let mut gaps = Vec::new();
        for event in TRANSITIONS.into_iter().chain(ENTRIES) {
            let counts = self.transitions.get(event).copied().unwrap_or_default();
            for (count, what) in [
                (counts.committed, "was never committed"),
                (counts.crash_before, "never met a crash before it"),
                (counts.crash_after, "never met a crash after it"),
            ] {
                if count == 0 {
                    gaps.push(format!("{event} {what}"));
                }
            }
        }
        for point in CrashPoint::ALL {
            if !self.crashes.contains_key(&point) {
                gaps.push(format!("no process died at {point:?}"));
            }
        }
        for fault in Fault::ALL {
            if !self.faults.contains_key(&fault) {
                gaps.push(format!("{fault:?} never happened"));
            }
        }
        for what in HANDLER_EVENTS.into_iter().filter(|what| !self.others.contains_key(what)) {
            gaps.push(format!("{what} never happened"));
        }
        gaps
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<16}{:>12}{:>14}{:>14}", "transition", "committed", "crash before", "crash after")?;
        for event in TRANSITIONS.into_iter().chain(ENTRIES) {
            let TransitionCounts { committed, crash_before, crash_after } =
                self.transitions.get(event).copied().unwrap_or_default();
            writeln!(f, "{event:<16}{committed:>12}{crash_before:>14}{crash_after:>14}")?;
        }
        writeln!(f, "\n{:<28}{:>12}", "crash point", "crashes")?;
        for point in CrashPoint::ALL {
            let name = format!("{point:?}");
            writeln!(f, "{name:<28}{:>12}", self.crashes.get(&point).copied().unwrap_or(0))?;
        }
        writeln!(f, "\n{:<28}{:>12}", "fault", "times")?;
        for fault in Fault::ALL {
            let name = format!("{fault:?}");
            writeln!(f, "{name:<28}{:>12}", self.faults.get(&fault).copied().unwrap_or(0))?;
        }
        writeln!(f, "\n{:<28}{:>12}", "also met", "times")?;
        for (what, count) in &self.others {
            writeln!(f, "{what:<28}{count:>12}")?;
        }
        Ok(())
    }
}

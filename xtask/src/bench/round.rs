//! One measurement of every server.

use std::collections::BTreeMap;

use super::contestant::Contestant;
use super::machine::{Machine, Measurement};

/// The name of a measurement and the measured server.
pub(crate) type Key = (&'static str, Contestant);

pub(crate) type Round = BTreeMap<Key, Measurement>;

/// The number of tasks in the measurement of memory.
pub(crate) const MEMORY_TASKS: usize = 10_000;

/// The number of unsettled tasks among those that are read.
const LIVE: u32 = 100;

/// The number of tasks that counts as few retained tasks.
const RETAINED_FEW: usize = 1_000;

pub(crate) fn run(machine: &Machine, seconds: u32) -> anyhow::Result<Round> {
    use Contestant::{Bare, Ours, Rmcp, Sqlite};
    let mut round = Round::new();
    let mut record = |what, who, measured: Measurement| {
        eprintln!(
            "  {what:12} {who:?}: {:.0}/s, p50 {:.0} µs, p99 {:.0} µs, others {:.2} cores",
            measured.rate_per_s, measured.p50_us, measured.p99_us, measured.other_cores
        );
        round.insert((what, who), measured);
    };
    record("fsync", Ours, machine.fsync()?);
    for who in [Ours, Sqlite, Rmcp] {
        record("create", who, who.start(machine)?.create(128, seconds)?);
    }
    for who in [Ours, Bare] {
        let server = who.start(machine)?;
        // The bare endpoint has no tasks.
        server.fill_with(RETAINED_FEW, 128, if who == Ours { LIVE } else { 0 })?;
        record("get", who, server.get(32, seconds)?);
    }
    for who in [Ours, Sqlite] {
        record("complete 1", who, who.start(machine)?.complete(1, seconds)?);
        record("complete 32", who, who.start(machine)?.complete(32, seconds)?);
    }
    for who in [Ours, Sqlite] {
        record("steps 1", who, who.start(machine)?.steps(1, seconds)?);
        record("steps 100", who, who.start(machine)?.steps(100, seconds)?);
    }
    let server = Ours.start(machine)?;
    let empty = server.resident_bytes()?;
    // Few connections, because the memory of tasks is measured, not that of connections.
    server.fill(MEMORY_TASKS, 8)?;
    let added = server.resident_bytes()? - empty;
    record("memory", Ours, Measurement { rss_bytes: added, ..Measurement::default() });
    Ok(round)
}

/// Rates with few and with many retained tasks.
#[derive(Debug)]
pub(crate) struct Retained {
    pub(crate) tasks: usize,
    /// (with few, with many)
    pub(crate) get: (Measurement, Measurement),
    pub(crate) create: (Measurement, Measurement),
    pub(crate) ceiling_create: (Measurement, Measurement),
}

pub(crate) fn retained(machine: &Machine, seconds: u32, tasks: usize) -> anyhow::Result<Retained> {
    use Contestant::{Ours, Sqlite};
    eprintln!("=== {tasks} retained tasks");
    let measure = |who: Contestant, tasks| {
        let server = who.start(machine)?;
        server.fill(tasks, 128)?;
        let get = server.get(32, seconds)?;
        let create = server.create(128, seconds)?;
        anyhow::Ok((get, create))
    };
    let (few, many) = (measure(Ours, RETAINED_FEW)?, measure(Ours, tasks)?);
    let (ceiling_few, ceiling_many) = (measure(Sqlite, RETAINED_FEW)?, measure(Sqlite, tasks)?);
    Ok(Retained {
        tasks,
        get: (few.0, many.0),
        create: (few.1, many.1),
        ceiling_create: (ceiling_few.1, ceiling_many.1),
    })
}

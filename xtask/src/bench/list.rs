//! `tasks/list` for an owner with few and for one with many tasks, for the first page and for later pages.

use super::contestant::{Contestant, RunningServer};
use super::machine::{Machine, Measurement};

/// The number of tasks of the owner with few tasks.
pub(crate) const FEW: usize = 1_000;

/// Enough connections to keep the server busy, and few enough that requests do not queue.
const CONNECTIONS: u32 = 4;

/// One measurement of both servers: (few tasks, many tasks).
#[derive(Debug)]
pub(crate) struct Turn {
    pub(crate) first: (Measurement, Measurement),
    pub(crate) deep: (Measurement, Measurement),
}

#[derive(Debug)]
pub(crate) struct Lists {
    pub(crate) tasks: usize,
    pub(crate) turns: Vec<Turn>,
}

pub(crate) fn run(machine: &Machine, rounds: usize, seconds: u32, tasks: usize) -> anyhow::Result<Lists> {
    eprintln!("=== the list of {tasks} tasks");
    let (few, many) = (start_with_tasks(machine, FEW)?, start_with_tasks(machine, tasks)?);
    let mut turns = Vec::new();
    for number in 1..=rounds {
        let turn = Turn {
            first: (few.list(CONNECTIONS, seconds, false)?, many.list(CONNECTIONS, seconds, false)?),
            deep: (few.list(CONNECTIONS, seconds, true)?, many.list(CONNECTIONS, seconds, true)?),
        };
        for (what, (few, many)) in [("first", &turn.first), ("deep", &turn.deep)] {
            eprintln!(
                "  {number}: {what:5} page: {:.1} and {:.1} µs of processor time, p50 {:.0} and {:.0} µs, others {:.2} cores",
                few.server_cpu_us_per_request,
                many.server_cpu_us_per_request,
                few.p50_us,
                many.p50_us,
                few.other_cores.max(many.other_cores),
            );
        }
        turns.push(turn);
    }
    Ok(Lists { tasks, turns })
}

fn start_with_tasks(machine: &Machine, tasks: usize) -> anyhow::Result<RunningServer<'_>> {
    let server = Contestant::Ours.start_for_one_owner(machine)?;
    server.fill(tasks, 128)?;
    server.walk(tasks)?;
    Ok(server)
}

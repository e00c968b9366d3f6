//! `tasks/list` with few tasks of one owner and with many: first and deep pages.

use super::contestant::{Contestant, Running};
use super::machine::{Machine, Measured};

/// Tasks in the small half of the comparison.
pub(crate) const FEW: usize = 1_000;

/// Enough to keep the server busy, few enough that it is not the queue that is measured.
const CONNECTIONS: u32 = 4;

/// One turn of both servers: with few tasks and with many.
#[derive(Debug)]
pub(crate) struct Turn {
    pub(crate) first: (Measured, Measured),
    pub(crate) deep: (Measured, Measured),
}

/// All turns.
#[derive(Debug)]
pub(crate) struct Lists {
    pub(crate) tasks: usize,
    pub(crate) turns: Vec<Turn>,
}

pub(crate) fn run(machine: &Machine, rounds: usize, seconds: u32, tasks: usize) -> anyhow::Result<Lists> {
    eprintln!("=== the list of {tasks} tasks");
    let (few, many) = (filled(machine, FEW)?, filled(machine, tasks)?);
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

fn filled(machine: &Machine, tasks: usize) -> anyhow::Result<Running<'_>> {
    let server = Contestant::Ours.start_for_one_owner(machine)?;
    server.fill(tasks, 128)?;
    server.walk(tasks)?;
    Ok(server)
}

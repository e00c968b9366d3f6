//! One history, from its seed to its end.

use std::time::Duration;

use tokio::runtime::Builder;

use crate::check::{Violation, check};
use crate::coverage::Coverage;
use crate::ledger::Entry;
use crate::process::{Next, SimProcess};
use crate::world::World;

/// The longest time that a process may run.
const LIFE_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// The result of a history.
#[derive(Debug)]
pub struct HistoryResult {
    pub seed: u64,
    pub coverage: Coverage,
    pub ledger: Vec<Entry>,
    pub broken: Option<Violation>,
}

/// Plays one history and checks it against the laws.
pub fn play(seed: u64) -> HistoryResult {
    let world = World::new(seed);
    while world.state().endless.is_none() && process(&world) == Next::Process {}
    let mut state = world.state();
    let calls = state.calls;
    state.coverage.others.insert("call of the store", calls);
    let (coverage, ledger) = (std::mem::take(&mut state.coverage), std::mem::take(&mut state.ledger));
    let broken = check(&ledger).err().or_else(|| {
        let what = state.endless?.to_owned();
        Some(Violation { law: "nothing is stuck and nothing leaks", what, line: ledger.len() })
    });
    HistoryResult { seed, coverage, ledger, broken }
}

/// Plays one history twice and compares the ledgers. The error names the first line that differs.
pub fn play_twice(seed: u64) -> Result<(), String> {
    let [first, second] = [play(seed), play(seed)].map(|played| played.ledger);
    let mut pairs = first.iter().zip(&second).enumerate();
    let differs = pairs.find_map(|(line, (first, second))| {
        let [first, second] = [first, second].map(|entry| format!("{entry:?}"));
        (first != second).then(|| format!("seed {seed} differs in line {line}:\n{first}\n{second}"))
    });
    match differs {
        Some(differs) => Err(differs),
        None if first.len() != second.len() => {
            Err(format!("seed {seed} has {} lines and {}", first.len(), second.len()))
        }
        None => Ok(()),
    }
}

/// Runs one process on its own runtime. At its end everything in memory is dropped.
fn process(world: &World) -> Next {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
    let Ok(runtime) = runtime else { return Next::Nothing };
    let next = runtime.block_on(async {
        world.time().resume();
        let life = async {
            match SimProcess::start(world).await {
                Some(process) => process.live().await,
                None => Next::Process,
            }
        };
        let next = tokio::select! {
            biased;
            () = world.death() => Next::Process,
            lived = tokio::time::timeout(LIFE_MAX, life) => lived.unwrap_or_else(|_| {
                world.endless("a process does not come to its end");
                Next::Nothing
            }),
        };
        world.time().suspend();
        next
    });
    drop(runtime);
    world.halt();
    // The next process may find times in the store that its clock has not reached yet.
    if !world.is_calm() && world.random(|random| random.below(2) == 0) {
        world.correct_clock();
    }
    next
}

//! Many histories, on several threads.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::coverage::Coverage;
use crate::{HistoryResult, play};

/// The result of a run.
#[derive(Debug)]
pub struct RunReport {
    pub coverage: Coverage,
    /// The first history that violates a law, if there is one.
    pub broken: Option<HistoryResult>,
    /// The number of histories up to the broken one, or of all.
    pub played: u64,
    pub took: Duration,
}

/// Plays `histories`, beginning with `seed`, and stops at the first that violates a law.
pub fn run(seed: u64, histories: u64, threads: usize) -> RunReport {
    let began = Instant::now();
    let next = AtomicU64::new(0);
    let stop = AtomicBool::new(false);
    let work = || {
        let mut coverage = Coverage::default();
        while !stop.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= histories {
                break;
            }
            let played = play(seed.wrapping_add(index));
            coverage.add(&played.coverage);
            if played.broken.is_some() {
                stop.store(true, Ordering::Relaxed);
                return (coverage, Some((index, played)));
            }
        }
        (coverage, None)
    };
    let (mut coverage, mut broken) = (Coverage::default(), None);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            let Ok((counts, found)) = worker.join() else { continue };
            coverage.add(&counts);
            if let Some((index, played)) = found
                && broken.as_ref().is_none_or(|(first, _)| index < *first)
            {
                broken = Some((index, played));
            }
        }
    });
    let played = broken.as_ref().map_or(coverage.histories, |(index, _)| index + 1);
    RunReport { coverage, broken: broken.map(|(_, played)| played), played, took: began.elapsed() }
}

//! A few hundred histories with every test run; the many are `cargo run --release -p longhaul-sim`.

use longhaul_sim::{play, run};

#[test]
fn every_law_holds_over_a_few_hundred_histories() {
    let run = run::run(1, 300, 2);
    let broken = run.broken.map(|played| (played.seed, played.broken));
    assert_eq!(broken, None);
    assert_eq!(run.played, 300);
}

#[test]
fn a_seed_is_the_whole_history() {
    let text = |seed| play(seed).ledger.iter().map(ToString::to_string).collect::<Vec<_>>();
    for seed in [3, 77, 1_234] {
        assert_eq!(text(seed), text(seed), "seed {seed}");
    }
    assert_ne!(text(1), text(2));
}

#[test]
fn histories_meet_crashes_refusals_and_evictions() {
    let coverage = run::run(1, 300, 2).coverage;
    assert!(coverage.crashes.values().sum::<u64>() > 0);
    for met in ["failed transaction", "queue full", "too many open", "read past the cache", "graceful shutdown"] {
        assert!(coverage.also.contains_key(met), "no history met: {met}");
    }
}

//! Plays a few histories in every test run. For many, use `cargo run --release -p longhaul-sim`.

use longhaul_sim::{play, play_twice, run};

#[test]
fn every_law_holds_over_a_few_hundred_histories() {
    let run = run::run(1, 300, 2);
    let broken = run.broken.map(|played| (played.seed, played.broken));
    assert_eq!(broken, None);
    assert_eq!(run.played, 300);
}

#[test]
fn the_same_seed_gives_the_same_history() {
    for seed in 1..=50 {
        play_twice(seed).unwrap();
    }
}

#[test]
fn another_seed_gives_another_history() {
    let text = |seed| format!("{:?}", play(seed).ledger);
    assert_ne!(text(1), text(2));
}

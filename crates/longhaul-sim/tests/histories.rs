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
fn the_same_seed_gives_the_same_history() {
    for seed in 1..=1_000 {
        let [first, second] = [play(seed), play(seed)].map(|played| format!("{:?}", played.ledger));
        assert!(first == second, "seed {seed}: {}", first_difference(&first, &second));
    }
}

fn first_difference(first: &str, second: &str) -> String {
    let entries = |text: &str| text.split("Entry {").map(str::to_owned).collect::<Vec<_>>();
    let pairs = entries(first).into_iter().zip(entries(second));
    pairs.enumerate().find(|(_, (first, second))| first != second).map_or_else(
        || "one goes on where the other ends".into(),
        |(line, (first, second))| format!("line {line}:\n{first}\n{second}"),
    )
}

#[test]
fn another_seed_gives_another_history() {
    let text = |seed| format!("{:?}", play(seed).ledger);
    assert_ne!(text(1), text(2));
}

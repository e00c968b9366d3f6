//! A task of many steps whose server is killed again and again.
//!
//! `LONGHAUL_STEPS` sets the number of steps (default: 60) and `LONGHAUL_STEP_KILLS` the number of kills (default: 8).
//! `LONGHAUL_SEED` repeats the random choices of a run.

use std::collections::BTreeSet;
use std::time::Duration;

use longhaul_testkit::{StatelessClient, number_from_environment, until};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::json;

use crate::kit::{Launch, place};
use crate::lines;

/// How long a step sleeps before it appends its number.
const STEP: Duration = Duration::from_millis(20);

#[tokio::test(flavor = "multi_thread")]
async fn a_recorded_step_is_not_repeated_however_often_the_server_is_killed() {
    let (steps, kills) =
        (number_from_environment("LONGHAUL_STEPS", 60_usize), number_from_environment("LONGHAUL_STEP_KILLS", 8_u32));
    let seed = number_from_environment("LONGHAUL_SEED", rand::random::<u64>());
    eprintln!("{steps} steps, {kills} kills, LONGHAUL_SEED={seed}");
    let mut rng = StdRng::seed_from_u64(seed);
    let (directory, store) = place("tasks.db");
    let file = directory.path().join("numbers");
    let launch = || Launch::conformance().store(&store);

    let (mut server, mut client) = launch().start_with_client().await;
    let arguments = json!({ "steps": steps, "millis": u64::try_from(STEP.as_millis()).unwrap(), "file": file });
    let id = client.create("count_steps", arguments).await.unwrap();

    let mut moments: Vec<usize> = (0..kills).map(|_| rng.random_range(0..steps)).collect();
    moments.sort_unstable();
    // The numbers of lines in the file at the kills.
    let mut deaths = BTreeSet::new();
    for moment in moments {
        until(&format!("{moment} lines"), async || {
            tokio::time::sleep(Duration::from_millis(1)).await;
            lines(&file).len() >= moment
        })
        .await;
        tokio::time::sleep(rng.random_range(Duration::ZERO..STEP + STEP / 2)).await;
        server.kill().await;
        deaths.insert(lines(&file).len());
        server = launch().start().await;
    }
    let mut client = StatelessClient::connect(server.address()).await.unwrap();
    let end = client.settled(&id).await;
    assert_eq!(end.result_text(), format!("counted to {steps}"), "{}", end.text);

    let numbers: Vec<usize> = lines(&file).iter().map(|line| line.parse().unwrap()).collect();
    assert_eq!((numbers.first(), numbers.last()), (Some(&1), Some(&steps)));
    let mut repeated = 0;
    for (index, pair) in numbers.windows(2).enumerate() {
        // A number may occur twice if a kill came after its line was written and before the step was recorded.
        let is_repeated = pair[0] == pair[1] && deaths.contains(&(index + 1));
        repeated += u32::from(is_repeated);
        assert!(is_repeated || pair[0] + 1 == pair[1], "{pair:?} at line {index}, kills at {deaths:?}: {numbers:?}");
    }
    assert!(repeated <= kills);
    eprintln!("{repeated} numbers were repeated");
}

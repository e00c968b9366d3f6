//! The clock is set: no wait takes longer than its own length by the clock as it is now.

use std::time::Duration;

use crate::common::{Door, HandlerLog, Lab, Machine, must_come, one_worker, text_of, waits_at};
use longhaul_engine::EngineTool;
use longhaul_task::{OnCrash, Policy};
use tokio::time::Instant;

const MINUTE_MS: u64 = 60_000;
const DAY_MS: u64 = 24 * 60 * MINUTE_MS;

/// Longer than the backoff of a second attempt and the longest pause of a service that looks at the queue.
const SOON: Duration = Duration::from_secs(10);

#[test]
fn a_crash_with_the_clock_ahead_does_not_delay_the_next_attempt() {
    for ahead_ms in [10 * MINUTE_MS, DAY_MS] {
        let mut machine = Machine::new();
        let (door, log) = (Door::shut(), HandlerLog::new());
        let policy = Policy { on_crash: OnCrash::Retry, ..Policy::default() };
        let tools = || vec![EngineTool { policy: policy.clone(), ..one_worker("work", waits_at(&door, &log)) }];
        machine.wait_ms(ahead_ms);
        let keys = machine.run_engine(tools(), async |lab| {
            // The second one has never run, so it is in the queue without a backoff.
            let keys = [lab.create_on("work", "1").await, lab.create_on("work", "2").await];
            log.hears("start 1").await;
            keys
        });
        machine.set_back_ms(ahead_ms);
        machine.run_engine(tools(), async |lab| {
            let started = Instant::now();
            door.open_wide();
            for key in &keys {
                assert_eq!(lab.end(key).await, text_of("done"));
            }
            assert!(started.elapsed() < SOON, "{ahead_ms} ms ahead: it took {:?}", started.elapsed());
        });
    }
}

#[test]
fn a_backoff_that_begins_after_the_clock_was_set_back_is_kept_over_a_restart() {
    let mut machine = Machine::new();
    let (door, log) = (Door::shut(), HandlerLog::new());
    let policy = Policy { on_crash: OnCrash::Retry, backoff_ms: MINUTE_MS, ..Policy::default() };
    let tools = || vec![EngineTool { policy: policy.clone(), ..one_worker("work", waits_at(&door, &log)) }];
    machine.wait_ms(DAY_MS);
    let key = machine.run_engine(tools(), async |lab| lab.create("work").await);
    machine.set_back_ms(DAY_MS);
    // The task changed last by a clock that was a day ahead, and its backoff begins by the right one.
    machine.run_engine(tools(), async |_lab| ());
    machine.run_engine(tools(), async |lab| {
        let started = Instant::now();
        door.open_wide();
        assert_eq!(lab.end(&key).await, text_of("done"));
        let backoff = Duration::from_millis(MINUTE_MS);
        assert!(
            ((backoff / 2).saturating_sub(SOON)..backoff + SOON).contains(&started.elapsed()),
            "it took {:?}",
            started.elapsed()
        );
    });
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_back_while_tasks_are_queued_does_not_delay_them() {
    let (lab, door, log) = Lab::with_one_worker().await;
    let (first, second) = (lab.create_on("work", "1").await, lab.create_on("work", "2").await);
    log.hears("start 1").await;
    lab.store.set_back("settle", DAY_MS);
    door.open_wide();
    let started = Instant::now();
    assert_eq!(lab.end(&first).await, text_of("done"));
    assert_eq!(must_come("the task in the queue", lab.end(&second)).await, text_of("done"));
    assert!(started.elapsed() < SOON, "it took {:?}", started.elapsed());
}

//! What the history of a task shows.

use std::time::Duration;

use longhaul_engine::{Ctx, EngineTool, HistoryItem, Retry, history_events};
use longhaul_task::{Json, Outcome, Policy};

use crate::common::{Approve, Door, HandlerLog, Lab, Machine, handler, resumes, tool};
use crate::retry::fails_twice;
use crate::step::three_steps;

#[tokio::test(start_paused = true)]
async fn the_history_has_the_failed_tries_of_a_step_and_the_last_attempt() {
    let log = HandlerLog::new();
    let retry = Retry::times(3).backoff(Duration::from_millis(5));
    let lab = Lab::start(vec![resumes("work", fails_twice(&log, retry))]).await;
    let key = lab.create("work").await;
    lab.end(&key).await;
    let history = lab.engine.history(&key).await.unwrap();
    let events = history_events(&*lab.read(&key).await, &history);
    let note = events.iter().find_map(|event| match &event.what {
        HistoryItem::Step { note, .. } => note.clone(),
        _ => None,
    });
    assert!(note.as_ref().is_some_and(|note| note.starts_with("failed 2 times before, last with: ")), "{note:?}");
    assert!(
        events.iter().any(|event| matches!(event.what, HistoryItem::AttemptBegan { attempt: 1, .. })),
        "{events:?}"
    );
}

#[test]
fn the_time_without_a_server_is_not_running_time_in_the_history() {
    let mut machine = Machine::new();
    let (door, log) = (Door::shut(), HandlerLog::new());
    let tools = || vec![resumes("work", three_steps(&log, &door))];
    let key = machine.run_engine(tools(), async |lab| {
        let key = lab.create("work").await;
        lab.has_entries(&key, 1).await;
        key
    });
    machine.wait_ms(3_600_000);
    machine.run_engine(tools(), async |lab| {
        door.open_wide();
        lab.end(&key).await;
        let history = lab.engine.history(&key).await.unwrap();
        let events = history_events(&*lab.read(&key).await, &history);
        let ran_ms = events.iter().find_map(|event| match event.what {
            HistoryItem::AttemptEnded { ran_ms, .. } => Some(ran_ms),
            _ => None,
        });
        assert!(ran_ms.is_some_and(|ran_ms| ran_ms < 3_600_000), "{ran_ms:?}");
    });
}

/// The running time of an attempt counts again from an answer. Its beginning in the history does not change.
#[tokio::test(start_paused = true)]
async fn in_the_history_an_attempt_began_before_the_questions_that_it_asked() {
    let asks_twice = handler(|mut ctx: Ctx, _input| async move {
        for _ in 0..2 {
            tokio::time::sleep(Duration::from_millis(70)).await;
            ctx.ask("approve", Approve).await?;
        }
        Ok(Outcome::Result { body: Json::from_text("1"), is_error: true })
    });
    let policy = Policy { attempts_max: 2, ..Policy::default() };
    let lab = Lab::start(vec![EngineTool { retries_failures: true, policy, ..tool("work", asks_twice) }]).await;
    let key = lab.create("work").await;
    for asked in 1..=4 {
        let question = lab.until(&key, "a question", |task| task.questions_asked == asked).await;
        let question = question.phase.questions().unwrap().iter().next().unwrap().key.clone();
        tokio::time::sleep(Duration::from_millis(70)).await;
        lab.answer(&key, &question, "\"yes\"").await;
    }
    lab.end(&key).await;
    let history = lab.engine.history(&key).await.unwrap();
    let events = history_events(&*lab.read(&key).await, &history);
    for attempt in 1..=2 {
        let mine = events.iter().filter_map(|event| match &event.what {
            HistoryItem::AttemptBegan { attempt: of, .. } if *of == attempt => Some("began"),
            HistoryItem::Asked { attempt: of, .. } if *of == attempt => Some("asked"),
            HistoryItem::AttemptEnded { attempt: of, ran_ms, .. } if *of == attempt => {
                assert!(*ran_ms >= 280, "it ran for {ran_ms} ms");
                Some("ended")
            }
            _ => None,
        });
        let expected: &[_] =
            if attempt == 1 { &["began", "asked", "asked", "ended"] } else { &["began", "asked", "asked"] };
        assert_eq!(mine.collect::<Vec<_>>(), expected, "{events:?}");
    }
}

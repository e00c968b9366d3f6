//! A handler that resumes is dropped while it waits, and nothing that happens meanwhile is missed.

use std::time::Duration;

use longhaul_engine::{Ctx, CtxError};
use longhaul_task::{PhaseName, Task};

use crate::common::{
    Approve, Door, HandlerLog, Lab, answer, asks, asks_left_and_right, handler_with, resumes, text_of, tool,
};

fn is_parked(task: &Task) -> bool {
    task.phase.wake_condition().is_some()
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_waits_for_an_answer_is_dropped_and_resumed_by_it() {
    let lab = Lab::start(vec![resumes("ask", asks())]).await;
    let (key, question) = lab.create_until_asked("ask").await;
    lab.until(&key, "it is parked", is_parked).await;
    assert_eq!(lab.read(&key).await.phase.name(), PhaseName::Waiting);
    lab.holds_nothing("ask").await;
    lab.answer(&key, &question, "\"yes\"").await;
    assert_eq!(lab.end(&key).await, text_of("yes"));
    assert_eq!(lab.read(&key).await.attempt, 2);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_does_not_resume_keeps_its_handler() {
    let lab = Lab::start(vec![tool("ask", asks())]).await;
    let (key, question) = lab.create_until_asked("ask").await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(lab.read(&key).await.phase.active_attempt().is_some());
    lab.answer(&key, &question, "\"yes\"").await;
    assert_eq!(lab.end(&key).await, text_of("yes"));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_comes_while_the_handler_is_being_dropped_is_not_missed() {
    // The answer is committed before the event that parks the task, or after it.
    for before in [true, false] {
        let lab = Lab::start(vec![resumes("ask", asks())]).await;
        let (key, question) = lab.create_until_asked("ask").await;
        let held = lab.store.hold("park");
        if before {
            // The answer's own commit is carried out first, and the handler hears of it after it tried to park.
            tokio::time::sleep(Duration::from_millis(999)).await;
        } else {
            held.carried_out().await;
        }
        lab.answer(&key, &question, "\"yes\"").await;
        held.answer_one();
        assert_eq!(lab.end(&key).await, text_of("yes"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_park_in_doubt_leaves_no_attempt_behind() {
    let lab = Lab::start(vec![resumes("ask", asks())]).await;
    lab.store.doubt("park", 1);
    let (key, question) = lab.create_until_asked("ask").await;
    lab.until(&key, "it is parked", is_parked).await;
    lab.counts("ask", (0, 0)).await;
    lab.answer(&key, &question, "\"yes\"").await;
    assert_eq!(lab.end(&key).await, text_of("yes"));
    lab.holds_nothing("ask").await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_is_dropped_only_if_every_branch_waits() {
    let (door, log) = (Door::shut(), HandlerLog::new());
    let works = handler_with((door.clone(), log.clone()), |(door, log), mut ctx: Ctx, _input| async move {
        let asks = ctx.fork("asks", |mut ctx| async move { ctx.ask("approve", Approve).await });
        let works = ctx.fork("works", |mut ctx| async move {
            door.pass().await;
            ctx.step("work", || async {
                log.say("worked");
                Ok::<_, CtxError>(())
            })
            .await
        });
        let (said, worked) = tokio::join!(asks, works);
        worked?;
        answer(&said?)
    });
    let lab = Lab::start(vec![resumes("work", works)]).await;
    let (key, question) = lab.create_until_asked("work").await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(lab.read(&key).await.phase.active_attempt().is_some(), "one branch works");
    door.open_wide();
    lab.until(&key, "it is parked", is_parked).await;
    lab.answer(&key, &question, "\"yes\"").await;
    assert_eq!(lab.end(&key).await, text_of("yes"));
    assert_eq!(log.said(), ["worked"], "the step was recorded before the handler was dropped");
}

#[tokio::test(start_paused = true)]
async fn each_answer_resumes_the_branch_that_asked() {
    let lab = Lab::start(vec![resumes("ask", asks_left_and_right())]).await;
    let key = lab.create("ask").await;
    let questions = lab.asks(&key, 2).await;
    for question in &questions {
        lab.until(&key, "it is parked", is_parked).await;
        lab.answer(&key, question, &format!("\"said {}\"", question.label())).await;
    }
    assert_eq!(lab.end(&key).await, text_of("said left and said right"));
    assert_eq!(lab.read(&key).await.questions_asked, 2);
}

#[tokio::test(start_paused = true)]
async fn a_stop_drops_handlers_that_wait_at_once_and_counts_no_failure() {
    let lab = Lab::start(vec![resumes("ask", asks())]).await;
    let (key, _question) = lab.create_until_asked("ask").await;
    assert_eq!(lab.engine.shut_down().await, 0);
    let task = lab.store.inner();
    let task = longhaul_store::Store::read(&task, &key).await.unwrap().task;
    assert!(is_parked(&task));
    assert_eq!(task.failed_attempts, 0);
}

#[tokio::test(start_paused = true)]
async fn the_journal_is_read_once_for_each_attempt() {
    let works = handler_with((), |(), mut ctx: Ctx, _input| async move {
        for n in 0..5 {
            ctx.step(&format!("step {n}"), || async { Ok::<_, CtxError>(1) }).await?;
            ctx.ask("approve", Approve).await?;
        }
        answer("done")
    });
    let lab = Lab::start(vec![resumes("work", works)]).await;
    let key = lab.create("work").await;
    for n in 1..=5 {
        lab.until(&key, "the next question", |task| task.questions_asked == n && task.phase.questions().is_some())
            .await;
        let question = lab.question(&key).await;
        if n % 2 == 0 {
            lab.until(&key, "it is parked", is_parked).await;
        }
        lab.answer(&key, &question, "1").await;
    }
    assert_eq!(lab.end(&key).await, text_of("done"));
    let attempts = usize::try_from(lab.read(&key).await.attempt).unwrap();
    assert_eq!((attempts, lab.store.calls("journal")), (3, attempts - 1));
}

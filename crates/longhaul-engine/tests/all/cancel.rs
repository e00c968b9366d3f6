//! Cancelled at once and for good; then the handler hears of it, and after its grace period it is gone.

use std::sync::Arc;

use crate::common::{
    Approve, Door, HandlerLog, Lab, ada, answer, call, echo, handler, handler_with, must_come, one_worker, phase,
    text_of, tool,
};
use longhaul_engine::{Ctx, CtxError, EngineError, NewCall};
use longhaul_store::StoreError;
use longhaul_task::{Outcome, Owner, PhaseName, TaskId, TaskKey, TransitionError};

#[tokio::test(start_paused = true)]
async fn a_task_is_cancelled_at_once_whatever_its_handler_does() {
    let (lab, _door, log) = Lab::with_one_worker().await;
    let key = lab.create("work").await;
    log.hears("start {}").await;
    let task = lab.engine.cancel(&key, Some("changed my mind".into())).await.unwrap();
    assert_eq!(task.phase.outcome(), Some(&Outcome::Cancelled));
    assert_eq!(task.message.as_deref(), Some("changed my mind"));
    assert_eq!(lab.load("work"), (1, 0), "the handler still has its worker");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_has_ended_or_has_another_owner_cannot_be_cancelled() {
    let lab = Lab::start(vec![tool("echo", echo())]).await;
    let key = lab.create("echo").await;
    let end = lab.end(&key).await;
    let settled = EngineError::Store(StoreError::Refused(TransitionError::Settled));
    assert_eq!(lab.engine.cancel(&key, None).await.unwrap_err(), settled);
    assert_eq!(lab.end(&key).await, end);
    let foreign = TaskKey { owner: Owner::parse("bob").unwrap(), id: key.id };
    assert_eq!(lab.engine.cancel(&foreign, None).await.unwrap_err(), EngineError::Store(StoreError::NotFound));
}

#[tokio::test(start_paused = true)]
async fn a_handler_hears_of_it_at_its_next_context_call() {
    let (door, log) = (Door::shut(), HandlerLog::new());
    let asks_anyway = handler_with((door.clone(), log.clone()), |(door, log), mut ctx, _input| async move {
        ctx.progress(1.0, None, "").await?;
        log.say("works");
        door.pass().await;
        assert_eq!(ctx.report("still here").await, Err(CtxError::Cancelled));
        assert_eq!(ctx.progress(2.0, None, "").await, Err(CtxError::Cancelled));
        assert_eq!(ctx.ask("approve", Approve).await, Err(CtxError::Cancelled));
        let side = ctx.fork("side", |mut ctx| async move { ctx.report("and here").await });
        assert_eq!(side.await, Err(CtxError::Cancelled));
        log.say("heard it");
        Err(CtxError::Cancelled)
    });
    let lab = Lab::start(vec![tool("work", asks_anyway)]).await;
    let key = lab.create("work").await;
    log.hears("works").await;
    lab.cancel(&key).await;
    let cancelled = lab.read(&key).await;
    door.open();
    log.hears("heard it").await;
    lab.counts("work", (0, 0)).await;
    assert_eq!(lab.read(&key).await, cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_waits_outside_of_its_context_can_wait_for_the_cancellation() {
    let log = HandlerLog::new();
    let lab = Lab::start(vec![tool("work", until_cancelled(&log))]).await;
    let key = lab.create("work").await;
    log.hears("works").await;
    lab.cancel(&key).await;
    log.hears("heard it").await;
    lab.counts("work", (0, 0)).await;
}

fn until_cancelled(log: &HandlerLog) -> Arc<dyn longhaul_engine::Handler> {
    handler_with(log.clone(), |log, ctx: Ctx, _input| async move {
        log.say("works");
        ctx.cancelled().await;
        log.say("heard it");
        Err(CtxError::Cancelled)
    })
}

/// A handler that does not listen, until its door opens.
fn deaf(door: &Door, log: &HandlerLog) -> Arc<dyn longhaul_engine::Handler> {
    handler_with((door.clone(), log.clone()), |(door, log), _ctx, input| async move {
        let _dropped = log.on_drop("dropped");
        log.say(format!("start {}", input.as_str()));
        door.pass().await;
        answer("too late")
    })
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_does_not_listen_is_dropped_after_its_grace_period_and_its_worker_is_free() {
    let (door, log) = (Door::shut(), HandlerLog::new());
    let tool = one_worker("work", deaf(&door, &log));
    let grace_ms = tool.limits.grace_ms;
    let lab = Lab::start(vec![tool]).await;
    let first = lab.create_on("work", "1").await;
    log.hears("start 1").await;
    lab.cancel(&first).await;
    let second = lab.create_on("work", "2").await;
    assert_eq!(phase(&*lab.read(&second).await), PhaseName::Queued, "the first still has the worker");

    log.hears("dropped").await;
    let dropped_at = lab.engine.now().await.unwrap();
    let cancelled_at = lab.read(&first).await.updated_at;
    assert!(dropped_at >= cancelled_at.plus_ms(grace_ms), "it was dropped within its grace period");
    log.hears("start 2").await;
    door.open();
    lab.end(&second).await;
    lab.counts("work", (0, 0)).await;
}

#[tokio::test(start_paused = true)]
async fn a_late_result_changes_nothing() {
    let (door, log) = (Door::shut(), HandlerLog::new());
    let lab = Lab::start(vec![tool("work", deaf(&door, &log))]).await;
    let key = lab.create_on("work", "1").await;
    log.hears("start 1").await;
    lab.cancel(&key).await;
    let cancelled = lab.read(&key).await;
    door.open();
    log.hears("dropped").await;
    lab.counts("work", (0, 0)).await;
    assert_eq!(lab.read(&key).await, cancelled);
    assert_eq!(lab.store.calls("settle"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_queued_task_that_is_cancelled_never_runs() {
    let (lab, door, log) = Lab::with_one_worker().await;
    let (first, second) = (lab.create_on("work", "1").await, lab.create_on("work", "2").await);
    lab.cancel(&second).await;
    assert_eq!(lab.load("work"), (1, 0));
    let third = lab.create_on("work", "3").await;
    door.open_wide();
    lab.end(&first).await;
    lab.end(&third).await;
    lab.counts("work", (0, 0)).await;
    assert!(!log.said().contains(&"start 2".to_owned()));
    assert_eq!(lab.end(&second).await, Outcome::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_task_is_cancelled_and_its_handler_wakes() {
    let log = HandlerLog::new();
    let asks = handler_with(log.clone(), |log, mut ctx, _input| async move {
        let answer = ctx.ask("approve", Approve).await;
        log.say(format!("{answer:?}"));
        Err(answer.unwrap_err())
    });
    let lab = Lab::start(vec![one_worker("work", asks)]).await;
    let (key, question) = lab.create_until_asked("work").await;
    lab.counts("work", (0, 0)).await;
    lab.cancel(&key).await;
    log.hears("Err(Cancelled)").await;
    let refused =
        lab.engine.answer(&key, question, longhaul_task::Answer::Given(longhaul_task::Json::from_text("1"))).await;
    assert_eq!(refused.unwrap_err(), EngineError::Store(StoreError::Refused(TransitionError::Settled)));
    lab.counts("work", (0, 0)).await;
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_cancelled_while_it_is_being_claimed_does_not_run_on_unaware() {
    let log = HandlerLog::new();
    let lab = Lab::start(vec![one_worker("work", until_cancelled(&log))]).await;
    let first = lab.create("work").await;
    log.hears("works").await;
    let second = lab.create("work").await;
    let claim = lab.store.hold("claim");
    lab.cancel(&first).await;
    claim.carried_out().await;
    // The claim is committed, and the engine has not heard of it.
    lab.cancel(&second).await;
    claim.answer_one();
    lab.counts("work", (0, 0)).await;
    assert_eq!(lab.end(&second).await, Outcome::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_cancelled_while_it_is_being_created_does_not_run_on_unaware() {
    let log = HandlerLog::new();
    let lab = Lab::start(vec![one_worker("work", until_cancelled(&log))]).await;
    let id = TaskId::parse("mine").unwrap();
    let creation = lab.store.hold("create");
    let engine = lab.engine.clone();
    let create = NewCall { id: Some(id.clone()), ..call("work") };
    let created = tokio::spawn(async move { engine.create(create).await });
    creation.carried_out().await;
    let key = TaskKey { owner: ada(), id };
    lab.cancel(&key).await;
    creation.answer_one();
    must_come("the creation's answer", created).await.unwrap().unwrap();
    lab.counts("work", (0, 0)).await;
    assert_eq!(lab.end(&key).await, Outcome::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_attempt_that_waited_for_a_worker_does_not_take_one_any_more() {
    let (door, log) = (Door::shut(), HandlerLog::new());
    let asks_or_works = handler_with((door.clone(), log.clone()), |(door, log), mut ctx: Ctx, input| async move {
        if input.as_str() == "\"asks\"" {
            let _dropped = log.on_drop("dropped");
            assert_eq!(ctx.ask("approve", Approve).await, Err(CtxError::Cancelled));
            log.say("heard it");
            std::future::pending::<()>().await;
        }
        log.say(format!("start {}", input.as_str()));
        door.pass().await;
        log.say(format!("done {}", input.as_str()));
        answer("done")
    });
    let lab = Lab::start(vec![one_worker("work", asks_or_works)]).await;
    let (asks, question) = lab.create_on_until_asked("work", "\"asks\"").await;
    lab.counts("work", (0, 0)).await;
    let works = lab.create_on("work", "1").await;
    log.hears("start 1").await;
    lab.answer(&asks, &question, "1").await;
    lab.until(&asks, "the answer to be taken", |task| phase(task) == PhaseName::Running).await;
    tokio::task::yield_now().await;
    lab.cancel(&asks).await;
    log.hears("heard it").await;

    door.open_wide();
    lab.end(&works).await;
    let next = lab.create_on("work", "2").await;
    lab.end(&next).await;
    assert!(!log.said().contains(&"dropped".to_owned()), "the next had to wait for the grace period: {:?}", log.said());
    log.hears("dropped").await;
    lab.counts("work", (0, 0)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn when_a_cancellation_races_with_the_end_exactly_one_wins() {
    // Now one is quicker, now the other.
    let slower_and_slower = handler(|_ctx, input| async move {
        for _ in 0..input.as_str().parse().unwrap() {
            tokio::task::yield_now().await;
        }
        answer("done")
    });
    let lab = Lab::start(vec![one_worker("work", slower_and_slower)]).await;
    for n in 0..500 {
        let key = lab.create_on("work", &(n % 50).to_string()).await;
        let seen_by_a_reader = {
            let (engine, key) = (lab.engine.clone(), key.clone());
            tokio::spawn(async move {
                let mut watch = engine.watch(&key);
                loop {
                    if let Some(outcome) = engine.read(&key).await.unwrap().task.phase.outcome() {
                        return outcome.clone();
                    }
                    watch.changed().await;
                }
            })
        };
        let won = match lab.engine.cancel(&key, None).await {
            Ok(task) => task.phase.outcome().unwrap().clone(),
            Err(EngineError::Store(StoreError::Refused(TransitionError::Settled))) => text_of("done"),
            Err(error) => panic!("{error}"),
        };
        assert_eq!(must_come("the end", seen_by_a_reader).await.unwrap(), won);
        lab.counts("work", (0, 0)).await;
        assert_eq!(lab.end(&key).await, won);
    }
}

//! The store fails for a while: nothing leaks, outcomes are written later, and callers get the error.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{
    Approve, Door, HandlerLog, Lab, Machine, START, TestStore, answer, asks, call, code, echo, handler, hangs,
    must_come, on_crash, one_worker, phase, text_of, tool, waits_at,
};
use longhaul_engine::{Ctx, CtxError, Engine, EngineError, EngineLimits, EngineTool, NewCall, SystemRandom};
use longhaul_store::{Store, StoreError};
use longhaul_task::transition::{Cancel, Delete};
use longhaul_task::{Event, OnCrash, Outcome, PhaseName, Policy, Retention, TaskId};

fn unavailable() -> StoreError {
    StoreError::Unavailable("the disk is away".into())
}

fn full() -> StoreError {
    StoreError::Full("no room".into())
}

#[tokio::test(start_paused = true)]
async fn a_creation_that_fails_leaves_nothing_behind() {
    let door = Door::shut();
    let limits = EngineLimits::default().open_per_owner_max(2);
    let lab = Lab::with(vec![one_worker("work", waits_at(&door, &HandlerLog::new()))], limits).await;
    for running in [0, 1] {
        for error in [unavailable(), full()] {
            for of in ["create", "now"] {
                lab.store.fail(of, 1, error.clone());
                assert_eq!(lab.try_create("work", "{}").await.unwrap_err(), EngineError::Store(error.clone()));
                assert_eq!(lab.load("work"), (running, 0));
            }
        }
        lab.create("work").await;
    }
    assert_eq!(lab.load("work"), (1, 1));
    assert_eq!(lab.try_create("work", "{}").await.unwrap_err(), EngineError::TooManyOpen { open_max: 2 });
}

#[tokio::test(start_paused = true)]
async fn an_end_that_cannot_be_written_is_written_later() {
    for error in [unavailable(), full()] {
        let lab = Lab::start(vec![one_worker("echo", echo())]).await;
        lab.store.fail("settle", 5, error);
        let key = lab.create_on("echo", "1").await;
        assert_eq!(lab.end(&key).await, Outcome::Result { body: longhaul_task::Json::from_text("1"), is_error: false });
        assert_eq!(lab.store.calls("settle"), 6);
        lab.counts("echo", (0, 0)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_can_be_cancelled_while_its_end_cannot_be_written() {
    let lab = Lab::start(vec![one_worker("echo", echo())]).await;
    lab.store.fail("settle", 1_000_000, unavailable());
    let key = lab.create("echo").await;
    lab.cancel(&key).await;
    lab.store.fail("settle", 0, unavailable());
    lab.counts("echo", (0, 0)).await;
    assert_eq!(lab.end(&key).await, Outcome::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_has_stopped_is_not_asked_again_and_again() {
    let lab = Lab::start(vec![one_worker("echo", echo())]).await;
    lab.store.fail("settle", 1_000_000, StoreError::Stopped("a failed fsync".into()));
    let key = lab.create("echo").await;
    lab.counts("echo", (0, 0)).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(lab.store.calls("settle"), 1);
    assert_eq!(phase(&*lab.read(&key).await), PhaseName::Running, "a restart deals with it");
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_fails_is_made_again() {
    let (lab, door, log) = Lab::with_one_worker().await;
    let (first, second) = (lab.create_on("work", "1").await, lab.create_on("work", "2").await);
    lab.store.fail("claim", 10, unavailable());
    door.open_wide();
    lab.end(&first).await;
    assert_eq!(lab.end(&second).await, text_of("done"));
    assert_eq!(lab.store.calls("claim"), 11);
    lab.counts("work", (0, 0)).await;
    assert_eq!(log.said(), ["start 1", "done 1", "start 2", "done 2"]);
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_cannot_be_looked_at_is_looked_at_later() {
    let (lab, door, _log) = Lab::with_one_worker().await;
    let (first, second) = (lab.create_on("work", "1").await, lab.create_on("work", "2").await);
    lab.store.fail("claim", 1, unavailable());
    lab.store.fail("next_queued", 10, unavailable());
    door.open_wide();
    lab.end(&first).await;
    assert_eq!(lab.end(&second).await, text_of("done"));
}

#[tokio::test(start_paused = true)]
async fn an_operation_waits_for_a_store_that_does_not_work_for_a_while() {
    for of in ["ask", "question", "record"] {
        for error in [unavailable(), full(), StoreError::InDoubt("cut off".into())] {
            let works = handler(|mut ctx: Ctx, _input| async move {
                let one: u32 = ctx.step("one", || async { Ok::<_, CtxError>(1) }).await?;
                let said = ctx.ask("approve", Approve).await?;
                answer(&format!("{one} {said}"))
            });
            let lab = Lab::start(vec![on_crash(OnCrash::Resume, one_worker("ask", works))]).await;
            lab.store.fail(of, 3, error);
            let (key, question) = lab.create_until_asked("ask").await;
            lab.answer(&key, &question, "\"yes\"").await;
            assert_eq!(lab.end(&key).await, text_of("1 yes"), "{of}");
            assert!(lab.store.calls(of) >= 4, "{of}");
            lab.counts("ask", (0, 0)).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_report_that_cannot_be_written_is_told_to_the_handler_who_may_go_on() {
    let reports = handler(|mut ctx: Ctx, _input| async move {
        assert_eq!(ctx.report("one").await, Err(CtxError::Store(unavailable())));
        assert_eq!(ctx.progress(1.0, None, "").await, Err(CtxError::Store(unavailable())));
        ctx.report("two").await?;
        answer("done")
    });
    let lab = Lab::start(vec![tool("work", reports)]).await;
    lab.store.fail("report", 1, unavailable());
    lab.store.fail("progress", 1, unavailable());
    let key = lab.create("work").await;
    assert_eq!(lab.end(&key).await, text_of("done"));
    assert_eq!(lab.read(&key).await.message.as_deref(), Some("two"));
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_that_cannot_be_written_is_not_one() {
    let (lab, door, _log) = Lab::with_one_worker().await;
    let key = lab.create("work").await;
    lab.store.fail("cancel", 1, unavailable());
    assert_eq!(lab.engine.cancel(&key, None).await.unwrap_err(), EngineError::Store(unavailable()));
    door.open();
    assert_eq!(lab.end(&key).await, text_of("done"));
}

#[tokio::test(start_paused = true)]
async fn what_is_due_is_dealt_with_when_the_store_is_back() {
    let tools = vec![longhaul_engine::EngineTool { retention: Retention::FromEnd(1_000), ..tool("echo", echo()) }];
    let lab = Lab::start(tools).await;
    let key = lab.create("echo").await;
    lab.end(&key).await;
    lab.store.fail("due", 5, unavailable());
    lab.store.fail("expire", 5, unavailable());
    let mut watch = lab.engine.watch(&key);
    while lab.engine.read(&key).await.is_ok() {
        must_come("the deletion", watch.changed()).await;
    }
    assert_eq!(lab.store.calls("expire"), 6);
}

#[test]
fn a_task_without_a_tool_fails_even_if_the_store_falters_then() {
    let mut machine = Machine::new();
    let limits = EngineLimits::default().tool_gone_ms(10_000);
    let [key] = machine.queue_tasks(limits.clone());
    machine.run_engine_with(Vec::new(), limits, async |lab| {
        lab.store.fail("unserved", 3, unavailable());
        lab.store.fail("claim", 3, unavailable());
        lab.store.fail("settle", 3, unavailable());
        assert_eq!(code(&lab.end(&key).await), "TOOL_GONE");
    });
}

#[test]
fn the_end_of_a_task_whose_tool_is_gone_is_written_again_until_it_is_written() {
    let mut machine = Machine::new();
    let limits = EngineLimits::default().tool_gone_ms(10_000);
    let keys: [_; 2] = machine.queue_tasks(limits.clone());
    machine.run_engine_with(Vec::new(), limits, async |lab| {
        lab.store.fail("settle", 5, unavailable());
        for key in &keys {
            assert_eq!(code(&lab.end(key).await), "TOOL_GONE");
        }
        assert_eq!(lab.store.calls("claim"), 1, "what was taken is remembered");
        assert_eq!(lab.store.calls("settle"), 7);
    });
}

#[tokio::test(start_paused = true)]
async fn an_end_in_doubt_that_was_written_counts() {
    let limits = EngineLimits::default().open_per_owner_max(1);
    let lab = Lab::with(vec![one_worker("echo", echo())], limits).await;
    for n in 1..=3 {
        lab.store.doubt("settle", 1);
        let key = lab.create_on("echo", "1").await;
        assert_eq!(lab.end(&key).await, Outcome::Result { body: longhaul_task::Json::from_text("1"), is_error: false });
        lab.counts("echo", (0, 0)).await;
        assert_eq!(lab.store.calls("settle"), 2 * n, "it is asked once more, and told that the task has ended");
    }
}

#[tokio::test(start_paused = true)]
async fn a_creation_in_doubt_is_looked_for_and_found() {
    let lab = Lab::start(vec![one_worker("echo", echo())]).await;
    lab.store.doubt("create", 1);
    let key = lab.create_on("echo", "1").await;
    assert_eq!(lab.end(&key).await, Outcome::Result { body: longhaul_task::Json::from_text("1"), is_error: false });
    lab.counts("echo", (0, 0)).await;
}

#[tokio::test(start_paused = true)]
async fn a_creation_in_doubt_that_did_not_happen_is_refused_and_leaves_nothing_behind() {
    let lab = Lab::start(vec![one_worker("echo", echo())]).await;
    lab.store.fail("create", 1, StoreError::InDoubt("the line was cut".into()));
    let refused = lab.try_create("echo", "1").await.unwrap_err();
    assert_eq!(refused, EngineError::Store(StoreError::Unavailable("the line was cut".into())));
    assert_eq!(lab.load("echo"), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_task_whose_claim_is_in_doubt_does_not_stay_with_a_node_that_never_heard_of_it() {
    let (door, log) = (Door::shut(), HandlerLog::new());
    let work = one_worker("work", waits_at(&door, &log));
    let retry = Policy { on_crash: OnCrash::Retry, ..work.policy.clone() };
    let lab = Lab::start(vec![EngineTool { policy: retry, ..work }]).await;
    let (first, second) = (lab.create_on("work", "1").await, lab.create_on("work", "2").await);
    lab.store.doubt("claim", 1);
    door.open_wide();
    lab.end(&first).await;
    assert_eq!(lab.end(&second).await, text_of("done"));
    assert_eq!(lab.read(&second).await.attempt, 2, "the first was given up");
    assert_eq!(log.said(), ["start 1", "done 1", "start 2", "done 2"]);
}

#[tokio::test(start_paused = true)]
async fn a_question_in_doubt_is_asked_once() {
    let lab = Lab::start(vec![one_worker("ask", asks())]).await;
    lab.store.doubt("ask", 1);
    let (key, question) = lab.create_until_asked("ask").await;
    lab.answer(&key, &question, "\"yes\"").await;
    assert_eq!(lab.end(&key).await, text_of("yes"));
    assert_eq!(lab.read(&key).await.questions_asked, 1);
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_in_doubt_stops_its_handler_and_frees_its_place() {
    let log = HandlerLog::new();
    let limits = EngineLimits::default().open_per_owner_max(1);
    let lab = Lab::with(vec![one_worker("hang", hangs(&log))], limits).await;
    let key = lab.create("hang").await;
    log.hears("start").await;
    lab.store.doubt("cancel", 1);
    let told = lab.engine.cancel(&key, None).await.unwrap_err();
    assert_eq!(told.code(), "STORE_IN_DOUBT");
    log.hears("dropped").await;
    lab.counts("hang", (0, 0)).await;
    lab.create("hang").await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_whose_task_was_made_anew_under_its_id_is_dropped() {
    let log = HandlerLog::new();
    let lab = Lab::start(vec![tool("hang", hangs(&log))]).await;
    let id = TaskId::parse("own").unwrap();
    let key = lab.engine.create(NewCall { id: Some(id.clone()), ..call("hang") }).await.unwrap().task.key.clone();
    log.hears("start").await;
    // Another node cancels and deletes it, of which this one does not hear.
    lab.store.inner().apply(&key, Event::Cancel(Cancel::default())).await.unwrap();
    lab.store.inner().apply(&key, Event::Delete(Delete)).await.unwrap();
    lab.engine.create(NewCall { id: Some(id), ..call("hang") }).await.unwrap();
    log.hears_times("start", 2).await;
    log.hears("dropped").await;
    assert_eq!(lab.load("hang"), (1, 0));
}

#[test]
fn an_engine_does_not_start_before_it_could_deal_with_what_is_left() {
    let mut machine = Machine::new();
    let door = Door::shut();
    let tools = || vec![tool("work", waits_at(&door, &HandlerLog::new()))];
    let key = machine.run_engine(tools(), async |lab| lab.create("work").await);
    machine.run(async |store| {
        for of in ["orphans", "lose", "count_open_tasks"] {
            store.fail(of, 1, unavailable());
            let shared: Arc<dyn Store> = Arc::<TestStore>::clone(&store);
            let started = Engine::start(shared, tools(), EngineLimits::default(), Arc::new(SystemRandom)).await;
            assert_eq!(started.unwrap_err(), EngineError::Store(unavailable()), "{of}");
        }
        let lab = Lab::on(&store, tools(), EngineLimits::default()).await;
        assert_eq!(code(lab.read(&key).await.phase.outcome().unwrap()), "CRASH_RECOVERY");
        assert!(lab.engine.now().await.unwrap() >= START);
    });
}

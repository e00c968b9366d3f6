//! The end of a process, when there is time for one: take nothing new, let handlers end, hand back the rest.

use std::time::Duration;

use crate::common::{
    Door, HandlerLog, Lab, Machine, answer, asks, call, call_options, code, echo, handler_with, must_come, one_worker,
    phase, resumes, text_of, tool, waits_at,
};
use longhaul_engine::{Ctx, CtxError, EngineError, EngineTool};
use longhaul_store::{Store, StoreError};
use longhaul_task::{Json, OnCrash, Outcome, PhaseName, Policy};

fn retries(tool: EngineTool) -> EngineTool {
    EngineTool { policy: Policy { on_crash: OnCrash::Retry, ..tool.policy.clone() }, ..tool }
}

fn shutting_down(lab: &Lab) -> tokio::task::JoinHandle<usize> {
    let engine = lab.engine.clone();
    tokio::spawn(async move { engine.shut_down().await })
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_waits_for_handlers_that_end_by_themselves() {
    let (lab, door, log) = Lab::with_one_worker().await;
    let key = lab.create_on("work", "1").await;
    log.hears("start 1").await;
    let down = shutting_down(&lab);
    tokio::task::yield_now().await;
    assert!(!down.is_finished());
    door.open();
    must_come("the end of the shutdown", down).await.unwrap();
    assert_eq!(lab.read(&key).await.phase.outcome(), Some(&text_of("done")));
}

#[tokio::test(start_paused = true)]
async fn an_idle_engine_is_down_at_once_and_twice_is_as_good_as_once() {
    let lab = Lab::start(vec![tool("echo", echo())]).await;
    let key = lab.create("echo").await;
    lab.end(&key).await;
    lab.counts("echo", (0, 0)).await;
    let before = lab.engine.now().await.unwrap();
    lab.engine.shut_down().await;
    lab.engine.shut_down().await;
    assert_eq!(lab.engine.now().await.unwrap(), before);
}

#[tokio::test(start_paused = true)]
async fn nothing_new_is_taken_while_it_goes_down_or_afterwards() {
    let (door, log) = (Door::shut(), HandlerLog::new());
    let prelude = Some(echo());
    let lab = Lab::start(vec![EngineTool { prelude, ..tool("work", waits_at(&door, &log)) }]).await;
    lab.create("work").await;
    let down = shutting_down(&lab);
    tokio::task::yield_now().await;
    for _ in 0..2 {
        assert_eq!(lab.try_create("work", "{}").await.unwrap_err(), EngineError::Draining);
        let input = Json::from_text("{}");
        let called = must_come("an answer", lab.engine.call(&"work".into(), input.clone(), call_options(&[]))).await;
        assert_eq!(called.unwrap_err(), EngineError::Draining);
        let asked = lab.engine.before_task(&"work".into(), input, call_options(&[])).await;
        assert_eq!(asked.unwrap_err(), EngineError::Draining);
        door.open();
        lab.counts("work", (0, 0)).await;
    }
    must_come("the end of the shutdown", down).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_call_that_runs_goes_on_when_nothing_new_is_taken() {
    let (door, log) = (Door::shut(), HandlerLog::new());
    let lab = Lab::start(vec![tool("work", waits_at(&door, &log))]).await;
    let engine = lab.engine.clone();
    let runs = tokio::spawn(async move { engine.call(&"work".into(), Json::from_text("0"), call_options(&[])).await });
    log.hears("start 0").await;
    lab.engine.shut_down().await;
    door.open();
    assert!(must_come("the end of the call", runs).await.unwrap().is_ok());
}

#[test]
fn what_does_not_end_in_time_is_handed_back_or_fails_and_its_handler_is_dropped() {
    let mut machine = Machine::new();
    let log = HandlerLog::new();
    let forever = |log: &HandlerLog| {
        handler_with(log.clone(), |log, ctx: Ctx, _input| async move {
            if ctx.attempt() > 1 {
                return answer("at last");
            }
            let _dropped = log.on_drop("dropped");
            log.say("start");
            std::future::pending().await
        })
    };
    let tools = || vec![tool("fail", forever(&log)), retries(tool("retry", forever(&log)))];
    let (fails, retries) = machine.run_engine(tools(), async |lab| {
        let (fails, retries) = (lab.create("fail").await, lab.create("retry").await);
        log.hears_times("start", 2).await;
        must_come("the end of the shutdown", lab.engine.shut_down()).await;
        assert_eq!(code(lab.read(&fails).await.phase.outcome().unwrap()), "CRASH_RECOVERY");
        assert_eq!(phase(&*lab.read(&retries).await), PhaseName::Queued);
        log.hears_times("dropped", 2).await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(phase(&*lab.read(&retries).await), PhaseName::Queued, "it is left for the next process");
        (fails, retries)
    });
    machine.run_engine(tools(), async |lab| {
        assert_eq!(lab.end(&retries).await, text_of("at last"));
        assert_eq!(lab.read(&retries).await.attempt, 2);
        assert!(lab.read(&fails).await.is_settled());
    });
    assert_eq!(log.said().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_given_up_while_it_waits_for_an_answer_says_so() {
    let lab = Lab::start(vec![tool("ask", asks())]).await;
    let key = lab.create("ask").await;
    lab.asks(&key, 1).await;
    must_come("the end of the shutdown", lab.engine.shut_down()).await;
    let task = lab.read(&key).await;
    assert_eq!(code(task.phase.outcome().unwrap()), "CRASH_RECOVERY");
    let message = task.message.as_deref().unwrap();
    assert!(message.contains("waiting for an answer"), "it was not running: {message}");
}

#[tokio::test(start_paused = true)]
async fn without_clients_a_shutdown_waits_for_work_and_not_for_answers() {
    let (door, log) = (Door::shut(), HandlerLog::new());
    let tools = vec![tool("ask", asks()), retries(tool("again", asks())), tool("work", waits_at(&door, &log))];
    let lab = Lab::start(tools).await;
    let (fails, again) = (lab.create("ask").await, lab.create("again").await);
    let works = lab.create_on("work", "1").await;
    log.hears("start 1").await;
    lab.counts("ask", (0, 0)).await;
    lab.counts("again", (0, 0)).await;
    let before = lab.engine.now().await.unwrap();
    lab.engine.give_up_waiting_tasks().await;
    assert_eq!(code(lab.read(&fails).await.phase.outcome().unwrap()), "CRASH_RECOVERY");
    assert_eq!(phase(&*lab.read(&again).await), PhaseName::Queued);
    let down = shutting_down(&lab);
    door.open();
    must_come("the end of the shutdown", down).await.unwrap();
    assert_eq!(lab.read(&works).await.phase.outcome(), Some(&text_of("done")));
    assert_eq!(lab.engine.now().await.unwrap(), before, "it waited for answers");
}

#[test]
fn what_is_queued_is_left_for_the_next_process() {
    let mut machine = Machine::new();
    let (door, log) = (Door::shut(), HandlerLog::new());
    let tools = || vec![one_worker("work", waits_at(&door, &log))];
    let second = machine.run_engine(tools(), async |lab| {
        let first = lab.create_on("work", "1").await;
        let second = lab.create_on("work", "2").await;
        log.hears("start 1").await;
        let down = shutting_down(&lab);
        tokio::task::yield_now().await;
        door.open_wide();
        must_come("the end of the shutdown", down).await.unwrap();
        assert!(lab.read(&first).await.is_settled());
        assert_eq!(phase(&*lab.read(&second).await), PhaseName::Queued);
        second
    });
    assert_eq!(log.said(), ["start 1", "done 1"]);
    machine.run_engine(tools(), async |lab| {
        assert_eq!(lab.end(&second).await, text_of("done"));
        assert_eq!(lab.read(&second).await.attempt, 1);
    });
}

#[tokio::test(start_paused = true)]
async fn a_creation_that_is_under_way_is_part_of_what_is_waited_for() {
    let lab = Lab::start(vec![tool("echo", echo())]).await;
    let creation = lab.store.hold("create");
    let engine = lab.engine.clone();
    let created = tokio::spawn(async move { engine.create(call("echo")).await });
    creation.carried_out().await;
    let down = shutting_down(&lab);
    tokio::task::yield_now().await;
    tokio::task::yield_now().await;
    creation.answer_one();
    must_come("the end of the shutdown", down).await.unwrap();
    let key = must_come("the creation's answer", created).await.unwrap().unwrap().task.key.clone();
    assert!(lab.read(&key).await.is_settled(), "its handler was not waited for");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_comes_while_it_goes_down_still_lets_its_task_end() {
    let lab = Lab::start(vec![one_worker("ask", asks())]).await;
    let (key, question) = lab.create_until_asked("ask").await;
    let down = shutting_down(&lab);
    tokio::task::yield_now().await;
    lab.answer(&key, &question, "\"yes\"").await;
    must_come("the end of the shutdown", down).await.unwrap();
    assert_eq!(lab.read(&key).await.phase.outcome(), Some(&text_of("yes")));
}

/// One end that the store refuses this often, at a shutdown. Returns how many ends were lost, and how the task ended.
async fn shut_down_while_the_store_is_full(refusals: usize) -> (usize, Option<Outcome>) {
    let lab = Lab::start(vec![tool("echo", echo())]).await;
    lab.store.fail("settle", refusals, StoreError::Full("no room".into()));
    lab.store.fail("lose", refusals, StoreError::Full("no room".into()));
    let key = lab.create_on("echo", "1").await;
    let lost = must_come("the end of the shutdown", lab.engine.shut_down()).await;
    (lost, lab.read(&key).await.phase.outcome().cloned())
}

#[tokio::test(start_paused = true)]
async fn an_end_that_could_not_be_stored_before_the_end_is_reported() {
    assert_eq!(shut_down_while_the_store_is_full(usize::MAX).await, (1, None));
}

#[tokio::test(start_paused = true)]
async fn an_end_is_tried_once_more_before_it_is_lost() {
    // The tries of the ten seconds, which come at growing distances.
    let (lost, outcome) = shut_down_while_the_store_is_full(8).await;
    assert_eq!((lost, outcome), (0, Some(Outcome::Result { body: Json::from_text("1"), is_error: false })));
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_does_not_wait_for_handlers_whose_store_has_stopped() {
    let (lab, _door, log) = Lab::with_one_worker().await;
    lab.create_on("work", "1").await;
    log.hears("start 1").await;
    lab.store.inner().close().await;
    let before = lab.engine.now().await.unwrap();
    must_come("the end of the shutdown", lab.engine.shut_down()).await;
    assert_eq!(lab.engine.now().await.unwrap(), before);
}

#[tokio::test(start_paused = true)]
async fn a_step_that_could_not_be_stored_before_the_end_is_reported() {
    let (door, log) = (Door::shut(), HandlerLog::new());
    let works = handler_with((door, log.clone()), |(door, log), mut ctx: Ctx, _input| async move {
        ctx.step("pay", || async { Ok::<_, CtxError>(1) }).await?;
        log.say("paid");
        door.pass().await;
        answer("done")
    });
    let lab = Lab::start(vec![resumes("work", works)]).await;
    lab.store.fail("record", usize::MAX, StoreError::Full("no room".into()));
    lab.store.fail("lose", usize::MAX, StoreError::Full("no room".into()));
    lab.create("work").await;
    log.hears("paid").await;
    assert_eq!(must_come("the end of the shutdown", lab.engine.shut_down()).await, 1);
}

//! The due service ends tasks that take too long, deletes tasks whose retention is over, and sleeps in between.

use std::time::Duration;

use crate::common::{
    Approve, Door, HandlerLog, Lab, START, answer, asks, code, echo, handler, handler_with, hangs, must_come,
    one_worker, text_of, tool, waits_at,
};
use longhaul_engine::{Ctx, EngineError, EngineTool};
use longhaul_store::{Store, StoreError};
use longhaul_task::transition::Report;
use longhaul_task::{Event, Policy, Retention, TaskKey};

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

fn limited(tool: EngineTool, running_ms_max: u64, life_ms_max: u64) -> EngineTool {
    EngineTool { policy: Policy { running_ms_max, life_ms_max, ..tool.policy.clone() }, ..tool }
}

async fn pass_ms(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

async fn age_ms(lab: &Lab, key: &TaskKey) -> u64 {
    let task = lab.read(key).await;
    task.updated_at.ms_since(task.created_at)
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_runs_too_long_fails_its_task_and_loses_its_worker() {
    let log = HandlerLog::new();
    let lab = Lab::start(vec![limited(one_worker("work", hangs(&log)), 5_000, DAY_MS)]).await;
    let key = lab.create("work").await;
    assert_eq!(code(&lab.end(&key).await), "RUNNING_TIME");
    let age = age_ms(&lab, &key).await;
    assert!((5_000..6_000).contains(&age), "it ended after {age} ms");
    log.hears("dropped").await;
    lab.counts("work", (0, 0)).await;
}

#[tokio::test(start_paused = true)]
async fn waiting_for_an_answer_is_not_running() {
    let lab = Lab::start(vec![limited(tool("ask", asks()), 5_000, DAY_MS)]).await;
    let (key, question) = lab.create_until_asked("ask").await;
    pass_ms(3_600_000).await;
    lab.answer(&key, &question, "\"yes\"").await;
    assert_eq!(lab.end(&key).await, text_of("yes"));
}

#[tokio::test(start_paused = true)]
async fn a_handler_has_its_running_time_again_after_an_answer() {
    let door = Door::shut();
    let asks_and_works = handler_with(door.clone(), |door, mut ctx: Ctx, _input| async move {
        tokio::time::sleep(Duration::from_secs(4)).await;
        ctx.ask("approve", Approve).await?;
        tokio::time::sleep(Duration::from_secs(4)).await;
        ctx.report("so far so good").await?;
        door.pass().await;
        answer("never")
    });
    let lab = Lab::start(vec![limited(tool("ask", asks_and_works), 5_000, DAY_MS)]).await;
    let (key, question) = lab.create_until_asked("ask").await;
    lab.answer(&key, &question, "\"yes\"").await;
    lab.until(&key, "the report", |task| task.message.as_deref() == Some("so far so good")).await;
    assert_eq!(code(&lab.end(&key).await), "RUNNING_TIME");
}

#[tokio::test(start_paused = true)]
async fn a_task_has_one_life_whether_it_runs_or_waits_or_is_queued() {
    let door = Door::shut();
    let (asks, waits) = (asks(), waits_at(&door, &HandlerLog::new()));
    let either =
        handler(move |ctx, input| if input.as_str() == "1" { asks.run(ctx, input) } else { waits.run(ctx, input) });
    let lab = Lab::start(vec![limited(one_worker("work", either), DAY_MS, 5_000)]).await;
    let waiting = lab.create_on("work", "1").await;
    lab.asks(&waiting, 1).await;
    lab.counts("work", (0, 0)).await;
    let running = lab.create_on("work", "2").await;
    let queued = lab.create_on("work", "3").await;
    assert_eq!(lab.load("work"), (1, 1));
    for key in [&waiting, &running, &queued] {
        assert_eq!(code(&lab.end(key).await), "LIFE_TIME");
        let age = age_ms(&lab, key).await;
        assert!((5_000..6_000).contains(&age), "it ended after {age} ms");
    }
    lab.counts("work", (0, 0)).await;
    door.open_wide();
    let next = lab.create_on("work", "4").await;
    assert_eq!(lab.end(&next).await, text_of("done"));
}

async fn deleted(lab: &Lab, key: &TaskKey) {
    must_come("the deletion", async {
        let mut watch = lab.engine.watch(key);
        while lab.engine.read(key).await.is_ok() {
            watch.changed().await;
        }
    })
    .await;
    assert_eq!(lab.engine.read(key).await.unwrap_err(), EngineError::Store(StoreError::NotFound));
}

#[tokio::test(start_paused = true)]
async fn an_ended_task_is_kept_for_its_retention_and_then_deleted() {
    let kept = |name: &str, retention| EngineTool { retention, ..tool(name, echo()) };
    let lab = Lab::start(vec![
        kept("from_end", Retention::FromEnd(30_000)),
        kept("from_creation", Retention::FromCreation(90_000)),
        kept("unlimited", Retention::Unlimited),
    ])
    .await;
    let from_end = lab.create("from_end").await;
    let from_creation = lab.create("from_creation").await;
    let unlimited = lab.create("unlimited").await;
    for key in [&from_end, &from_creation, &unlimited] {
        lab.end(key).await;
    }
    pass_ms(29_000).await;
    lab.read(&from_end).await;
    deleted(&lab, &from_end).await;
    lab.read(&from_creation).await;
    deleted(&lab, &from_creation).await;
    let age = lab.engine.now().await.unwrap().ms_since(START);
    assert!((90_000..91_000).contains(&age), "it was deleted after {age} ms");
    pass_ms(DAY_MS / 4).await;
    lab.read(&unlimited).await;
}

#[tokio::test(start_paused = true)]
async fn a_task_that_has_not_ended_does_not_expire() {
    let door = Door::shut();
    let tools = vec![EngineTool {
        retention: Retention::FromCreation(1_000),
        ..tool("work", waits_at(&door, &HandlerLog::new()))
    }];
    let lab = Lab::start(tools).await;
    let key = lab.create("work").await;
    pass_ms(600_000).await;
    door.open();
    assert_eq!(lab.end(&key).await, text_of("done"), "it can still be collected");
    deleted(&lab, &key).await;
}

#[tokio::test(start_paused = true)]
async fn the_watch_of_the_clock_sleeps_while_nothing_is_due() {
    let door = Door::shut();
    let lab = Lab::start(vec![tool("work", waits_at(&door, &HandlerLog::new())), tool("echo", echo())]).await;
    for _ in 0..20 {
        lab.create("work").await;
        let key = lab.create("echo").await;
        lab.end(&key).await;
    }
    pass_ms(1).await;
    let (due, queue) = (lab.store.calls("due"), lab.store.calls("next_queued"));
    pass_ms(3_600_000).await;
    let (due, queue) = (lab.store.calls("due") - due, lab.store.calls("next_queued") - queue);
    assert!(due <= 61, "it looked {due} times in an hour");
    assert!(queue <= 721, "it looked at the queue {queue} times in an hour");
}

#[tokio::test(start_paused = true)]
async fn an_expiry_does_not_keep_the_watch_of_the_clock_busy() {
    let lab = Lab::start(vec![EngineTool { retention: Retention::FromEnd(1_000), ..tool("echo", echo()) }]).await;
    for _ in 0..50 {
        let key = lab.create("echo").await;
        lab.end(&key).await;
        deleted(&lab, &key).await;
    }
    let due = lab.store.calls("due");
    assert!(due <= 50 * 5, "it looked {due} times for 50 expiries");
}

#[tokio::test(start_paused = true)]
async fn the_watch_of_the_clock_wakes_for_an_earlier_deadline() {
    let door = Door::shut();
    let (long, short) = (waits_at(&door, &HandlerLog::new()), waits_at(&door, &HandlerLog::new()));
    let lab = Lab::start(vec![tool("long", long), limited(tool("short", short), 1_000, DAY_MS)]).await;
    lab.create("long").await;
    pass_ms(10).await;
    let key = lab.create("short").await;
    assert_eq!(code(&lab.end(&key).await), "RUNNING_TIME");
    let age = age_ms(&lab, &key).await;
    assert!((1_000..2_000).contains(&age), "it ended after {age} ms");
}

#[tokio::test(start_paused = true)]
async fn many_tasks_that_are_due_at_once_are_all_dealt_with() {
    let lab = Lab::start(vec![EngineTool { retention: Retention::FromEnd(1_000), ..tool("echo", echo()) }]).await;
    let keys = futures_util::future::join_all((0..600).map(|_| lab.create("echo"))).await;
    for key in &keys {
        lab.end(key).await;
    }
    for key in &keys {
        deleted(&lab, key).await;
    }
    let took_ms = lab.engine.now().await.unwrap().ms_since(START);
    assert!(took_ms < 10_000, "it took {took_ms} ms");
}

#[tokio::test(start_paused = true)]
async fn a_due_task_is_still_dealt_with_after_the_clock_went_back() {
    let door = Door::shut();
    let lab = Lab::start(vec![limited(one_worker("work", waits_at(&door, &HandlerLog::new())), DAY_MS, 5_000)]).await;
    let key = lab.create("work").await;
    // Between the look that found it due and the event that ends it.
    lab.store.set_back("overdue", 7_000);
    assert_eq!(code(&lab.end(&key).await), "LIFE_TIME");
    assert_eq!(lab.store.calls("overdue"), 2, "the first was too early");
    assert!(age_ms(&lab, &key).await >= 5_000);
    lab.counts("work", (0, 0)).await;
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_goes_back_while_the_service_sleeps_ends_nothing_early() {
    let door = Door::shut();
    let lab = Lab::start(vec![limited(one_worker("work", waits_at(&door, &HandlerLog::new())), DAY_MS, 5_000)]).await;
    let key = lab.create("work").await;
    pass_ms(3_000).await;
    lab.store.set_back("report", 2_000);
    let report = Event::Report(Report { fence: 1, message: "on".into() });
    lab.store.apply(&key, report).await.unwrap();
    assert_eq!(code(&lab.end(&key).await), "LIFE_TIME");
    assert!(age_ms(&lab, &key).await >= 5_000);
    assert_eq!(lab.store.calls("overdue"), 1, "no attempt before its time");
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_forward_does_not_end_a_handler() {
    let (door, log) = (Door::shut(), HandlerLog::new());
    let lab = Lab::start(vec![limited(tool("work", waits_at(&door, &log)), 300_000, 30 * DAY_MS)]).await;
    let key = lab.create_on("work", "1").await;
    log.hears("start 1").await;
    lab.store.set_clock_by_ms(i64::try_from(DAY_MS).unwrap());
    let task = lab.until(&key, "the clock was noticed", |task| task.revision > 1).await;
    assert_eq!(task.phase.outcome(), None);
    assert_eq!(code(&lab.end(&key).await), "RUNNING_TIME", "the limit holds by the time that has passed");
    assert!(log.said().contains(&"start 1".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn the_ttl_of_a_task_that_works_is_ahead_of_it_and_seldom_renewed() {
    let door = Door::shut();
    let tools = vec![EngineTool {
        retention: Retention::FromCreation(60_000),
        ..tool("work", waits_at(&door, &HandlerLog::new()))
    }];
    let lab = Lab::start(tools).await;
    let key = lab.create("work").await;
    let mut longest_ms = 0;
    for _ in 0..60 {
        pass_ms(60_000).await;
        let (ttl_ms, age_ms) = (lab.read(&key).await.ttl_ms().unwrap(), age_ms(&lab, &key).await);
        assert!(ttl_ms > age_ms, "it is {age_ms} ms old and says that it is kept for {ttl_ms}");
        assert!(ttl_ms >= longest_ms);
        longest_ms = ttl_ms;
    }
    let renewals = lab.store.calls("renew");
    assert!(renewals < 25, "{renewals} in an hour");
    door.open();
    lab.end(&key).await;
    assert!(lab.read(&key).await.ttl_ms().unwrap() >= longest_ms);
}

//! Sleeps, the time and randomness are recorded, and survive crashes.

use std::sync::Arc;
use std::time::Duration;

use longhaul_engine::{Ctx, Handler};
use longhaul_task::PhaseName;

use crate::common::{Approve, HandlerLog, Lab, Machine, answer, handler, handler_with, resumes, text_of, tool};

const FIVE_MINUTES: Duration = Duration::from_secs(300);

fn sleeps(log: &HandlerLog, duration: Duration) -> Arc<dyn Handler> {
    handler_with(log.clone(), move |log, mut ctx: Ctx, _input| async move {
        let _dropped = log.on_drop("dropped");
        log.say(format!("attempt {}", ctx.attempt()));
        ctx.sleep("nap", duration).await?;
        answer("awake")
    })
}

#[test]
fn a_sleep_ends_at_its_time_whatever_crashes_and_holds_nothing_meanwhile() {
    let mut machine = Machine::new();
    let log = HandlerLog::new();
    let tools = || vec![resumes("sleep", sleeps(&log, FIVE_MINUTES))];
    let (key, began) = machine.run_engine(tools(), async |lab| {
        let began = lab.engine.now().await.unwrap();
        let key = lab.create("sleep").await;
        log.hears("dropped").await;
        lab.until(&key, "it is parked", |task| task.phase.name() == PhaseName::Parked).await;
        lab.holds_nothing("sleep").await;
        (key, began)
    });
    for _crash in 0..2 {
        machine.wait_ms(100_000);
        machine.run_engine(tools(), async |lab| {
            assert_eq!(lab.read(&key).await.phase.name(), PhaseName::Parked);
        });
    }
    machine.run_engine(tools(), async |lab| {
        assert_eq!(lab.end(&key).await, text_of("awake"));
        let slept_ms = lab.read(&key).await.updated_at.ms_since(began);
        assert!((300_000..302_000).contains(&slept_ms), "{slept_ms}");
        assert_eq!(lab.read(&key).await.failed_attempts, 0);
    });
}

#[tokio::test(start_paused = true)]
async fn a_short_sleep_stays_in_memory() {
    let log = HandlerLog::new();
    let lab = Lab::start(vec![resumes("sleep", sleeps(&log, Duration::from_millis(900)))]).await;
    let key = lab.create("sleep").await;
    assert_eq!(lab.end(&key).await, text_of("awake"));
    assert_eq!((lab.store.calls("park"), lab.read(&key).await.attempt), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_does_not_resume_sleeps_in_memory_and_gives_its_worker_back() {
    let log = HandlerLog::new();
    let lab = Lab::start(vec![tool("sleep", sleeps(&log, FIVE_MINUTES))]).await;
    let key = lab.create("sleep").await;
    lab.counts("sleep", (0, 0)).await;
    assert_eq!(lab.end(&key).await, text_of("awake"));
    assert_eq!((lab.store.calls("park"), lab.store.calls("record")), (0, 0));
}

#[test]
fn a_sleep_takes_no_longer_than_its_length_after_the_clock_was_set_back() {
    let mut machine = Machine::new();
    let log = HandlerLog::new();
    let tools = || vec![resumes("sleep", sleeps(&log, FIVE_MINUTES))];
    let key = machine.run_engine(tools(), async |lab| {
        let key = lab.create("sleep").await;
        lab.until(&key, "it is parked", |task| task.phase.name() == PhaseName::Parked).await;
        key
    });
    machine.set_back_ms(24 * 3_600_000);
    machine.run_engine(tools(), async |lab| {
        let began = lab.engine.now().await.unwrap();
        assert_eq!(lab.end(&key).await, text_of("awake"));
        assert!(lab.engine.now().await.unwrap().ms_since(began) <= 302_000);
    });
}

#[test]
fn a_deadline_takes_no_longer_than_its_length_after_the_clock_was_set_back() {
    let mut machine = Machine::new();
    let asks = || {
        handler(|mut ctx: Ctx, _input| async move {
            let said = ctx.ask_within("approve", Approve, FIVE_MINUTES).await?;
            answer(if said.is_some() { "answered" } else { "too late" })
        })
    };
    let tools = || vec![resumes("ask", asks())];
    // The crash comes before the handler is dropped, so that recovery puts the task into the queue.
    let (key, _) = machine.run_engine(tools(), async |lab| lab.create_until_asked("ask").await);
    machine.set_back_ms(24 * 3_600_000);
    machine.run_engine(tools(), async |lab| {
        let began = lab.engine.now().await.unwrap();
        assert_eq!(lab.end(&key).await, text_of("too late"));
        assert!(lab.engine.now().await.unwrap().ms_since(began) <= 302_000);
    });
}

#[test]
fn the_time_and_random_bits_are_the_same_in_every_attempt() {
    let mut machine = Machine::new();
    let log = HandlerLog::new();
    let works = || {
        handler_with(log.clone(), |log, mut ctx: Ctx, _input| async move {
            let (now, bits) = (ctx.now().await?, ctx.random().await?);
            assert_ne!(bits, ctx.random().await?);
            log.say(format!("{now:?} {bits:?}"));
            ctx.ask("approve", Approve).await?;
            answer("done")
        })
    };
    let (key, question) =
        machine.run_engine(vec![resumes("work", works())], async |lab| lab.create_until_asked("work").await);
    machine.wait_ms(5_000);
    machine.run_engine(vec![resumes("work", works())], async |lab| {
        lab.answer(&key, &question, "1").await;
        assert_eq!(lab.end(&key).await, text_of("done"));
    });
    let said = log.said();
    assert!(said.len() >= 2 && said.iter().all(|values| *values == said[0]), "{said:?}");
}

#[tokio::test(start_paused = true)]
async fn a_question_with_a_deadline_says_that_there_is_no_answer() {
    let asks = || {
        handler(|mut ctx: Ctx, _input| async move {
            let said = ctx.ask_within("approve", Approve, FIVE_MINUTES).await?;
            answer(&said.unwrap_or_else(|| "nothing heard".into()))
        })
    };
    let lab = Lab::start(vec![resumes("resumes", asks()), tool("in memory", asks())]).await;
    for tool in ["resumes", "in memory"] {
        let began = lab.engine.now().await.unwrap();
        let key = lab.create(tool).await;
        assert_eq!(lab.end(&key).await, text_of("nothing heard"), "{tool}");
        let took_ms = lab.engine.now().await.unwrap().ms_since(began);
        assert!((300_000..302_000).contains(&took_ms), "{tool}: {took_ms}");
        // In time, the answer counts.
        let (key, question) = lab.create_until_asked(tool).await;
        lab.answer(&key, &question, "\"yes\"").await;
        assert_eq!(lab.end(&key).await, text_of("yes"), "{tool}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_sleeper_is_told_at_once() {
    let log = HandlerLog::new();
    let lab =
        Lab::start(vec![tool("sleep", sleeps(&log, FIVE_MINUTES)), resumes("parked", sleeps(&log, FIVE_MINUTES))])
            .await;
    for name in ["sleep", "parked"] {
        let key = lab.create(name).await;
        if name == "parked" {
            lab.until(&key, "it is parked", |task| task.phase.name() == PhaseName::Parked).await;
        }
        lab.cancel(&key).await;
        assert_eq!(lab.end(&key).await, longhaul_task::Outcome::Cancelled);
        lab.counts(name, (0, 0)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_sleep_takes_its_own_length_when_the_clock_is_set_back_meanwhile() {
    let log = HandlerLog::new();
    for tools in [vec![tool("sleep", sleeps(&log, FIVE_MINUTES))], vec![resumes("sleep", sleeps(&log, FIVE_MINUTES))]] {
        let lab = Lab::start(tools).await;
        let began = tokio::time::Instant::now();
        let key = lab.create("sleep").await;
        tokio::time::sleep(FIVE_MINUTES / 5 * 4).await;
        lab.store.set_clock_by_ms(-3_600_000);
        assert_eq!(lab.end(&key).await, text_of("awake"));
        let slept = began.elapsed();
        // The engine looks at the clock every five seconds.
        assert!((FIVE_MINUTES..FIVE_MINUTES + Duration::from_secs(6)).contains(&slept), "{slept:?}");
    }
}

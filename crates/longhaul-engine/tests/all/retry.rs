//! A step that fails is tried again.

use std::sync::Arc;
use std::time::Duration;

use longhaul_engine::{CallEnd, Ctx, Failure, Handler, Retry};
use longhaul_task::Json;

use crate::common::{HandlerLog, Lab, Machine, answer, call_options, handler_with, resumes, text_of};

/// Fails twice, then succeeds.
pub(crate) fn fails_twice(log: &HandlerLog, retry: Retry) -> Arc<dyn Handler> {
    handler_with(log.clone(), move |log, mut ctx: Ctx, _input| async move {
        let log = &log;
        let tried = ctx
            .step("flaky", || async move {
                log.say("try");
                let tries = log.said().len();
                if tries < 3 { Err(Failure::tool("busy")) } else { Ok(tries) }
            })
            .retry(retry)
            .await?;
        answer(&format!("{tried} tries"))
    })
}

#[tokio::test(start_paused = true)]
async fn a_failed_step_is_tried_again_after_its_backoff() {
    let log = HandlerLog::new();
    let retry = Retry::times(5).backoff(Duration::from_secs(10)).jitter(0.0);
    let lab = Lab::start(vec![resumes("work", fails_twice(&log, retry))]).await;
    let began = lab.engine.now().await.unwrap();
    let key = lab.create("work").await;
    assert_eq!(lab.end(&key).await, text_of("3 tries"));
    let took_ms = lab.engine.now().await.unwrap().ms_since(began);
    assert!((30_000..31_000).contains(&took_ms), "10 s and 20 s, not {took_ms} ms");
}

#[test]
fn the_schedule_of_retries_survives_a_crash() {
    let mut machine = Machine::new();
    let log = HandlerLog::new();
    let fails = |until: u32| {
        handler_with(log.clone(), move |log, mut ctx: Ctx, _input| async move {
            let attempt = ctx.attempt();
            let log = &log;
            ctx.step("flaky", || async move {
                log.say(format!("attempt {attempt}"));
                if attempt < until { Err(Failure::tool("busy")) } else { Ok(()) }
            })
            .retry(Retry::times(3).backoff(Duration::from_secs(300)).jitter(0.0))
            .await?;
            answer("done")
        })
    };
    let (key, began) = machine.run_engine(vec![resumes("work", fails(2))], async |lab| {
        let began = lab.engine.now().await.unwrap();
        let key = lab.create("work").await;
        lab.until(&key, "it lets go of the handler", |task| task.phase.wake_condition().is_some()).await;
        (key, began)
    });
    machine.wait_ms(100_000);
    machine.run_engine(vec![resumes("work", fails(2))], async |lab| {
        assert_eq!(lab.end(&key).await, text_of("done"));
        let took_ms = lab.engine.now().await.unwrap().ms_since(began);
        assert!((300_000..302_000).contains(&took_ms), "five minutes from the first try, not {took_ms} ms");
    });
    assert_eq!(log.said(), ["attempt 1", "attempt 2"]);
}

#[tokio::test(start_paused = true)]
async fn a_step_gives_up_when_its_tries_are_used_up_or_of_no_use() {
    let log = HandlerLog::new();
    let works = handler_with(log.clone(), |log, mut ctx: Ctx, input| async move {
        let kind = input.as_str().trim_matches('"').to_owned();
        let (kind, log) = (&kind, &log);
        let step = ctx.step("flaky", || async move {
            log.say("try");
            Err::<(), _>(if kind == "permanent" { Failure::permanent("no") } else { Failure::tool("no") })
        });
        let retry = Retry::times(3).backoff(Duration::from_millis(1));
        let failed = match kind.as_str() {
            "picky" => step.retry(retry).give_up_if(|failure: &Failure| failure.message() == "no").await,
            "once" => step.await,
            _ => step.retry(retry).await,
        };
        answer(&format!("{}", failed.unwrap_err()))
    });
    let lab = Lab::start(vec![resumes("work", works)]).await;
    for (kind, tries) in [("often", 3), ("permanent", 1), ("picky", 1), ("once", 1)] {
        let before = log.said().len();
        let key = lab.create_on("work", &format!("{kind:?}")).await;
        assert_eq!(lab.end(&key).await, text_of(r#"the step "flaky" failed: no"#));
        assert_eq!(log.said().len() - before, tries, "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn steps_run_in_an_ordinary_call_without_a_record() {
    let log = HandlerLog::new();
    let retry = Retry::times(3).backoff(Duration::from_millis(5));
    let lab = Lab::start(vec![resumes("work", fails_twice(&log, retry))]).await;
    let options = call_options(&[]);
    let end = lab.engine.call(&"work".into(), Json::from_text("{}"), options).await.unwrap();
    assert!(matches!(end, CallEnd::Done(outcome) if outcome == text_of("3 tries")));
    assert_eq!(lab.store.calls("record"), 0);
}

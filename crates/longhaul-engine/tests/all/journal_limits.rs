//! Limits on what a handler records.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use longhaul_engine::{Ctx, CtxError, EngineError, EngineTool, ToolLimits};
use longhaul_task::{Answer, Json, Outcome};

use crate::common::{Approve, HandlerLog, Lab, Machine, answer, code, handler, handler_with, resumes, text_of};

/// The task has completed, or has failed with the expected code.
fn assert_end(end: &Outcome, expected: Option<&str>, case: &str) {
    match expected {
        None => assert_eq!(*end, text_of("done"), "{case}"),
        Some(expected) => assert_eq!(code(end), expected, "{case}"),
    }
}

#[tokio::test(start_paused = true)]
async fn the_journal_has_limits_on_its_number_and_its_size() {
    let works = handler(|mut ctx: Ctx, input| async move {
        let sizes: Vec<usize> = serde_json::from_str(input.as_str()).unwrap();
        for size in sizes {
            // Two quotation marks and a name of one byte are recorded with the text.
            ctx.step("s", || async move { Ok::<_, CtxError>("x".repeat(size - 3)) }).await?;
        }
        answer("done")
    });
    let limits = ToolLimits::default().journal_entries_max(3).journal_bytes_max(100).step_bytes_max(50);
    let lab = Lab::start(vec![EngineTool { limits, ..resumes("work", works) }]).await;
    for (sizes, expected) in [
        ("[10,10,10]", None),
        ("[10,10,10,10]", Some("JOURNAL_FULL")),
        ("[50,50]", None),
        ("[50,50,4]", Some("JOURNAL_FULL")),
        ("[51]", Some("STEP_TOO_LARGE")),
    ] {
        let key = lab.create_on("work", sizes).await;
        let end = lab.end(&key).await;
        assert_end(&end, expected, sizes);
    }
}

#[tokio::test(start_paused = true)]
async fn names_of_operations_have_a_limit() {
    let works = handler(|mut ctx: Ctx, input| async move {
        let name = "n".repeat(input.as_str().parse().unwrap());
        ctx.step(&name, || async { Ok::<_, CtxError>(1) }).await?;
        answer("done")
    });
    let lab = Lab::start(vec![resumes("work", works)]).await;
    for (bytes, expected) in [(0, Some("BAD_NAME")), (1, None), (256, None), (257, Some("BAD_NAME"))] {
        let key = lab.create_on("work", &bytes.to_string()).await;
        let end = lab.end(&key).await;
        assert_end(&end, expected, &format!("{bytes} bytes"));
    }
}

#[test]
fn an_output_that_is_too_large_is_recorded_as_such() {
    let mut machine = Machine::new();
    let log = HandlerLog::new();
    let tools = || {
        let works = handler_with(log.clone(), |log, mut ctx: Ctx, _input| async move {
            let large = ctx
                .step("large", || async {
                    log.say("worked");
                    Ok::<_, CtxError>("x".repeat(100))
                })
                .await;
            let Err(error @ CtxError::StepTooLarge { .. }) = large else { return answer("it was recorded") };
            ctx.ask("approve", Approve).await?;
            answer(&error.to_string())
        });
        let limits = ToolLimits::default().step_bytes_max(50);
        vec![EngineTool { limits, ..resumes("work", works) }]
    };
    let (key, question) = machine.run_engine(tools(), async |lab| lab.create_until_asked("work").await);
    machine.run_engine(tools(), async |lab| {
        lab.answer(&key, &question, "\"yes\"").await;
        let Outcome::Result { body, .. } = lab.end(&key).await else { panic!("it failed") };
        assert!(body.as_str().contains("has 107 bytes to record"), "{body:?}");
    });
    assert_eq!(log.said(), ["worked"]);
}

#[tokio::test(start_paused = true)]
async fn a_step_that_the_journal_has_no_room_for_is_not_done() {
    let log = HandlerLog::new();
    let works = handler_with(log.clone(), |log, mut ctx: Ctx, _input| async move {
        for n in 0..3 {
            let log = log.clone();
            let work = || async move {
                log.say(format!("step {n}"));
                Ok::<_, CtxError>(())
            };
            ctx.step("s", work).await?;
        }
        answer("done")
    });
    let limits = ToolLimits::default().journal_entries_max(2);
    let lab = Lab::start(vec![EngineTool { limits, ..resumes("work", works) }]).await;
    let key = lab.create("work").await;
    assert_eq!(code(&lab.end(&key).await), "JOURNAL_FULL");
    assert_eq!(log.said(), ["step 0", "step 1"]);
}

#[tokio::test(start_paused = true)]
async fn answers_count_towards_the_limits_of_the_journal() {
    let works = handler(|mut ctx: Ctx, _input| async move {
        for _ in 0..3 {
            ctx.ask("approve", Approve).await?;
        }
        answer("done")
    });
    let limits = ToolLimits::default().journal_bytes_max(100).step_bytes_max(50);
    let lab = Lab::start(vec![EngineTool { limits, ..resumes("work", works) }]).await;
    let key = lab.create("work").await;
    let large = Json::from_text(format!("\"{}\"", "x".repeat(50)));
    let question = lab.question(&key).await;
    let refused = lab.engine.answer(&key, question.clone(), Answer::Given(large)).await;
    assert!(matches!(refused, Err(EngineError::BadAnswer { .. })), "{refused:?}");
    for _ in 0..2 {
        let question = lab.question(&key).await;
        lab.answer(&key, &question, &format!("\"{}\"", "x".repeat(43))).await;
        lab.until(&key, "it has the answer", |task| {
            task.is_settled() || task.phase.questions().is_some_and(|open| open.find(&question).is_none())
        })
        .await;
    }
    assert_eq!(code(&lab.end(&key).await), "JOURNAL_FULL");
}

/// As many steps as the default limit allows, a crash, and one step more.
#[test]
fn a_journal_of_the_default_length_is_resumed_and_takes_no_further_entry() {
    let steps = ToolLimits::default().journal_entries_max;
    for (more, expected) in [(0, None), (1, Some("JOURNAL_FULL"))] {
        let done = Arc::new(AtomicUsize::new(0));
        let works = handler_with(Arc::clone(&done), move |done, mut ctx: Ctx, _input| async move {
            for _ in 0..steps {
                ctx.step("step", || async { Ok::<_, CtxError>(done.fetch_add(1, Ordering::Relaxed)) }).await?;
            }
            if ctx.attempt() == 1 {
                ctx.report("all steps are done").await?;
                std::future::pending::<()>().await;
            }
            for _ in 0..more {
                ctx.step("more", || async { Ok::<_, CtxError>(1) }).await?;
            }
            answer("done")
        });
        let mut machine = Machine::new();
        let tools = || vec![resumes("work", Arc::clone(&works))];
        let key = machine.run_engine(tools(), async |lab| {
            let key = lab.create("work").await;
            lab.until(&key, "the last step", |task| task.message.is_some()).await;
            // The last entry is written in the background.
            lab.has_entries(&key, steps).await;
            key
        });
        machine.run_engine(tools(), async |lab| {
            let end = lab.end(&key).await;
            assert_end(&end, expected, &format!("{more} more steps"));
            assert_eq!(lab.engine.history(&key).await.unwrap().entries.len(), steps);
        });
        assert_eq!(done.load(Ordering::Relaxed), steps, "no step was done again");
    }
}

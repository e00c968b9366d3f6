//! A recorded step is done: later attempts get its output.

use std::sync::Arc;
use std::time::Duration;

use longhaul_engine::{CallOptions, Ctx, CtxError, EngineTool, Failure, Handler, HistoryItem, Retry, ToolLimits};
use longhaul_task::{EntryState, Json, Outcome, Policy, TaskKey};

use crate::common::{
    Approve, Door, HandlerLog, Lab, Machine, answer, code, handler, handler_with, one_worker, resumes, text_of, tool,
};

/// Three steps, each of which says its name; the second waits for its door before it ends.
fn three_steps(log: &HandlerLog, door: &Door) -> Arc<dyn Handler> {
    handler_with((log.clone(), door.clone()), |(log, door), mut ctx: Ctx, _input| async move {
        let mut sum = 0;
        for name in ["one", "two", "three"] {
            let (log, door) = (&log, &door);
            sum += ctx
                .step(name, || async move {
                    log.say(name);
                    if name == "two" {
                        door.pass().await;
                    }
                    Ok::<usize, CtxError>(name.len())
                })
                .await?;
        }
        answer(&format!("{sum}"))
    })
}

#[test]
fn a_step_that_was_recorded_is_not_done_again_after_a_crash() {
    let mut machine = Machine::new();
    let (log, door) = (HandlerLog::new(), Door::shut());
    let tools = || vec![resumes("work", three_steps(&log, &door))];
    let key = machine.run_engine(tools(), async |lab| {
        let key = lab.create("work").await;
        log.hears("two").await;
        key
    });
    door.open_wide();
    machine.run_engine(tools(), async |lab| {
        assert_eq!(lab.end(&key).await, text_of("11"));
        assert_eq!(lab.read(&key).await.attempt, 2);
    });
    assert_eq!(log.said(), ["one", "two", "two", "three"], "the second was under way at the crash");
}

#[tokio::test(start_paused = true)]
async fn the_last_step_and_the_end_share_a_commit() {
    let log = HandlerLog::new();
    let door = Door::shut();
    door.open_wide();
    let lab = Lab::start(vec![resumes("work", three_steps(&log, &door))]).await;
    let key = lab.create("work").await;
    assert_eq!(lab.end(&key).await, text_of("11"));
    assert_eq!((lab.store.calls("record"), lab.store.calls("settle")), (2, 1));
    let entries = lab.engine.history(&key).await.unwrap().entries;
    let outputs: Vec<_> = entries.into_iter().map(|entry| (entry.name.to_string(), entry.state)).collect();
    let done = |text| EntryState::Done(longhaul_task::Json::from_text(text));
    assert_eq!(outputs, [("one".into(), done("3")), ("two".into(), done("3")), ("three".into(), done("5"))]);
}

#[tokio::test(start_paused = true)]
async fn a_step_is_written_while_the_handler_waits_for_something_else() {
    let (door, log) = (Door::shut(), HandlerLog::new());
    let works = handler_with(door.clone(), |door, mut ctx: Ctx, _input| async move {
        ctx.step("one", || async { Ok::<_, CtxError>(1) }).await?;
        door.pass().await;
        answer("done")
    });
    let lab = Lab::start(vec![resumes("work", works)]).await;
    let key = lab.create("work").await;
    lab.has_entries(&key, 1).await;
    log.say("written");
    door.open();
    assert_eq!(lab.end(&key).await, text_of("done"));
    assert_eq!(lab.store.calls("record"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_does_not_resume_writes_no_steps() {
    let (log, door) = (HandlerLog::new(), Door::shut());
    door.open_wide();
    let lab = Lab::start(vec![tool("work", three_steps(&log, &door))]).await;
    let key = lab.create("work").await;
    assert_eq!(lab.end(&key).await, text_of("11"));
    assert_eq!(lab.store.calls("record"), 0);
}

/// Fails twice, then succeeds.
fn fails_twice(log: &HandlerLog, retry: Retry) -> Arc<dyn Handler> {
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

#[test]
fn a_failure_of_a_step_is_recorded_like_an_output() {
    let mut machine = Machine::new();
    let log = HandlerLog::new();
    let works = || {
        handler_with(log.clone(), |log, mut ctx: Ctx, _input| async move {
            let log = &log;
            let failed = ctx
                .step("fragile", || async move {
                    log.say("tried");
                    Err::<(), _>(Failure::tool("broken"))
                })
                .await;
            ctx.ask("approve", Approve).await?;
            answer(&failed.unwrap_err().to_string())
        })
    };
    let (key, question) =
        machine.run_engine(vec![resumes("work", works())], async |lab| lab.create_until_asked("work").await);
    machine.run_engine(vec![resumes("work", works())], async |lab| {
        lab.answer(&key, &question, "\"yes\"").await;
        assert_eq!(lab.end(&key).await, text_of(r#"the step "fragile" failed: broken"#));
    });
    assert_eq!(log.said(), ["tried"]);
}

/// Runs a first version of a handler until it asks, and a second one after a crash.
fn changed(first: Arc<dyn Handler>, second: Arc<dyn Handler>) -> (Outcome, String) {
    let mut machine = Machine::new();
    let (key, question) =
        machine.run_engine(vec![resumes("work", first)], async |lab| lab.create_until_asked("work").await);
    machine.run_engine(vec![resumes("work", second)], async |lab| {
        lab.answer(&key, &question, "\"yes\"").await;
        let end = lab.end(&key).await;
        let message = lab.read(&key).await.message.as_deref().unwrap_or_default().to_owned();
        (end, message)
    })
}

fn step_then_ask(step: &'static str, label: &'static str) -> Arc<dyn Handler> {
    handler(move |mut ctx: Ctx, _input| async move {
        if !step.is_empty() {
            ctx.step(step, || async { Ok::<_, CtxError>(1) }).await?;
        }
        if !label.is_empty() {
            ctx.ask(label, Approve).await?;
        }
        answer("done")
    })
}

#[test]
fn a_handler_that_changed_is_refused_and_the_error_names_the_entry() {
    for (second, words) in [
        (step_then_ask("tow", "approve"), [r#"step "one""#, r#"step "tow""#]),
        (step_then_ask("one", "approval"), [r#"question "approve""#, r#"question "approval""#]),
        (step_then_ask("", "approve"), [r#"step "one""#, r#"question "approve""#]),
        (step_then_ask("one", ""), [r#"question "approve""#, "no operation"]),
    ] {
        let (end, message) = changed(step_then_ask("one", "approve"), second);
        assert_eq!(code(&end), "HANDLER_CHANGED");
        for word in words {
            assert!(message.contains(word), "{message} does not name {word}");
        }
    }
}

/// A question whose text is different in each process.
struct Changing(&'static str);

impl longhaul_engine::Ask for Changing {
    type Answer = String;

    fn kind(&self) -> longhaul_task::QuestionKind {
        longhaul_task::QuestionKind::Elicitation
    }

    fn params(&self) -> longhaul_task::Json {
        longhaul_task::Json::from_text(format!("{{\"message\":\"{}\"}}", self.0))
    }

    fn read(&self, answer: &longhaul_task::Json) -> Result<String, CtxError> {
        Ok(answer.as_str().to_owned())
    }
}

#[test]
fn a_question_with_another_text_is_noted_in_the_history_and_not_refused() {
    let mut machine = Machine::new();
    let asks = |text: &'static str| {
        handler(move |mut ctx: Ctx, _input| async move {
            ctx.ask("approve", Changing(text)).await?;
            answer("done")
        })
    };
    let (key, question) =
        machine.run_engine(vec![resumes("ask", asks("2 files"))], async |lab| lab.create_until_asked("ask").await);
    machine.run_engine(vec![resumes("ask", asks("3 files"))], async |lab| {
        lab.answer(&key, &question, "1").await;
        assert_eq!(lab.end(&key).await, text_of("done"));
        let entries = lab.engine.history(&key).await.unwrap().entries;
        assert_eq!(entries[0].note.as_deref(), Some("attempt 2 asked this with another text"));
    });
}

#[tokio::test(start_paused = true)]
async fn two_forks_with_one_key_and_unusable_keys_are_refused() {
    let works = handler(|mut ctx: Ctx, _input| async move {
        let mut refused = Vec::new();
        for key in ["twin", "twin", "", "a/b", "a:b"] {
            let step = ctx.fork(key, |mut ctx| async move { ctx.step("one", || async { Ok::<_, CtxError>(1) }).await });
            refused.push(step.await.err().map(|error| error.code()));
        }
        assert_eq!(refused, [None, Some("BAD_FORK"), Some("BAD_FORK"), Some("BAD_FORK"), Some("BAD_FORK")]);
        answer("done")
    });
    let lab = Lab::start(vec![resumes("work", works)]).await;
    let key = lab.create("work").await;
    assert_eq!(lab.end(&key).await, text_of("done"));
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
        match expected {
            None => assert_eq!(end, text_of("done"), "{sizes}"),
            Some(expected) => assert_eq!(code(&end), expected, "{sizes}"),
        }
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
        assert_eq!(expected.map(|_| code(&end)), expected, "{bytes}");
    }
}

#[test]
fn a_task_that_kills_its_process_is_given_up_unless_it_gets_further() {
    let dies = |gets_further: bool| {
        handler(move |mut ctx: Ctx, _input| async move {
            for step in 0..if gets_further { ctx.attempt() } else { 1 } {
                ctx.step(&format!("step {step}"), || async { Ok::<_, CtxError>(1) }).await?;
            }
            ctx.report(&format!("attempt {}", ctx.attempt())).await?;
            std::future::pending().await
        })
    };
    for gets_further in [false, true] {
        let mut machine = Machine::new();
        let policy = Policy { attempts_max: 3, ..resumes("work", dies(true)).policy };
        let tools = || vec![EngineTool { policy: policy.clone(), ..one_worker("work", dies(gets_further)) }];
        let key: TaskKey = machine.run_engine(tools(), async |lab| {
            let key = lab.create("work").await;
            lab.until(&key, "the first step", |task| task.message.is_some()).await;
            lab.has_entries(&key, 1).await;
            key
        });
        for crash in 1..=6 {
            machine.run_engine(tools(), async |lab| {
                let before = lab.read(&key).await.message.clone();
                lab.until(&key, "another attempt", |task| task.is_settled() || task.message != before).await;
                lab.has_entries(&key, if gets_further { 1 + crash } else { 1 }).await;
            });
        }
        machine.run_engine(tools(), async |lab| {
            let task = lab.read(&key).await;
            // Its first attempt recorded a step, so three more may fail.
            assert_eq!((task.is_settled(), task.attempt), (!gets_further, if gets_further { 7 } else { 3 }));
        });
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_names_one_operation_in_all_its_attempts() {
    let works = handler(|mut ctx: Ctx, _input| async move {
        let first = ctx.token();
        let origin = first.strip_suffix("/0").unwrap().to_owned();
        let mut tokens = vec![first];
        tokens.push(ctx.token());
        ctx.step("one", || async { Ok::<_, CtxError>(1) }).await?;
        tokens.push(ctx.token());
        tokens.push(ctx.fork("a", |ctx| async move { ctx.token() }).await);
        assert_eq!(tokens, ["0", "0", "1", "a/0"].map(|place| format!("{origin}/{place}")));
        if let Some(id) = ctx.task_id() {
            assert!(!origin.contains(id.as_str()), "the ID may be the only key to the task");
        }
        answer(&origin)
    });
    let lab = Lab::start(vec![resumes("work", works)]).await;
    let (one, other) = (lab.create("work").await, lab.create("work").await);
    let mut origins = vec![lab.end(&one).await, lab.end(&other).await];
    for id in ["a call", "another call", "another call"] {
        let options = CallOptions { id: id.into(), ..crate::common::call_options(&[]) };
        let end = lab.engine.call(&"work".into(), longhaul_task::Json::from_text("{}"), options).await.unwrap();
        let longhaul_engine::CallEnd::Done(outcome) = end else { panic!("it did not end: {end:?}") };
        origins.push(outcome);
    }
    assert_eq!(origins[3], origins[4], "the rounds of a call have the same tokens");
    origins.pop();
    for (index, origin) in origins.iter().enumerate() {
        assert!(!origins[..index].contains(origin), "tasks and calls have different tokens");
    }
}

#[test]
fn a_changed_handler_fails_even_if_it_catches_the_error() {
    let mut machine = Machine::new();
    let door = Door::shut();
    let works = |name: &'static str| {
        handler_with(door.clone(), move |door, mut ctx: Ctx, _input| async move {
            let done = ctx.step(name, || async { Ok::<_, CtxError>(1) }).await;
            let _ = ctx.step("next", || async { Ok::<_, CtxError>(1) }).await;
            if done.is_ok() {
                door.pass().await;
            }
            answer("done")
        })
    };
    let key = machine.run_engine(vec![resumes("work", works("old"))], async |lab| {
        let key = lab.create("work").await;
        lab.has_entries(&key, 2).await;
        key
    });
    machine.run_engine(vec![resumes("work", works("new"))], async |lab| {
        assert_eq!(code(&lab.end(&key).await), "HANDLER_CHANGED");
    });
}

#[tokio::test(start_paused = true)]
async fn steps_run_in_an_ordinary_call_without_a_record() {
    let log = HandlerLog::new();
    let retry = Retry::times(3).backoff(Duration::from_millis(5));
    let lab = Lab::start(vec![resumes("work", fails_twice(&log, retry))]).await;
    let options = crate::common::call_options(&[]);
    let end = lab.engine.call(&"work".into(), longhaul_task::Json::from_text("{}"), options).await.unwrap();
    assert!(matches!(end, longhaul_engine::CallEnd::Done(outcome) if outcome == text_of("3 tries")));
    assert_eq!(lab.store.calls("record"), 0);
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
    let large = longhaul_task::Json::from_text(format!("\"{}\"", "x".repeat(50)));
    let question = lab.question(&key).await;
    let refused = lab.engine.answer(&key, question.clone(), longhaul_task::Answer::Given(large)).await;
    assert!(matches!(refused, Err(longhaul_engine::EngineError::BadAnswer { .. })), "{refused:?}");
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

#[tokio::test(start_paused = true)]
async fn the_history_has_the_failed_tries_of_a_step_and_the_last_attempt() {
    let log = HandlerLog::new();
    let retry = Retry::times(3).backoff(Duration::from_millis(5));
    let lab = Lab::start(vec![resumes("work", fails_twice(&log, retry))]).await;
    let key = lab.create("work").await;
    lab.end(&key).await;
    let history = lab.engine.history(&key).await.unwrap();
    let events = longhaul_engine::history_events(&*lab.read(&key).await, &history);
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
        let events = longhaul_engine::history_events(&*lab.read(&key).await, &history);
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
    let events = longhaul_engine::history_events(&*lab.read(&key).await, &history);
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

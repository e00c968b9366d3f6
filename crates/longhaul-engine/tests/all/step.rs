//! A recorded step is done: later attempts get its output.

use std::sync::Arc;

use longhaul_engine::{CallEnd, CallOptions, Ctx, CtxError, EngineTool, Failure, Handler};
use longhaul_task::{EntryState, Json, Policy, TaskKey};

use crate::common::{
    Approve, Door, HandlerLog, Lab, Machine, answer, call_options, handler, handler_with, one_worker, resumes, text_of,
    tool,
};

/// Three steps, each of which says its name; the second waits for its door before it ends.
pub(crate) fn three_steps(log: &HandlerLog, door: &Door) -> Arc<dyn Handler> {
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
    let done = |text| EntryState::Done(Json::from_text(text));
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
        let options = CallOptions { id: id.into(), ..call_options(&[]) };
        let end = lab.engine.call(&"work".into(), Json::from_text("{}"), options).await.unwrap();
        let CallEnd::Done(outcome) = end else { panic!("it did not end: {end:?}") };
        origins.push(outcome);
    }
    assert_eq!(origins[3], origins[4], "the rounds of a call have the same tokens");
    origins.pop();
    for (index, origin) in origins.iter().enumerate() {
        assert!(!origins[..index].contains(origin), "tasks and calls have different tokens");
    }
}

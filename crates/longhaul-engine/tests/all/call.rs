//! Ordinary calls: a handler that runs while its client waits, in rounds if it has questions.

use std::sync::Arc;

use crate::common::{
    Approve, Client, Door, HandlerLog, Lab, ada, answer, asks_left_and_right, bob, call_options, call_options_of, code,
    echo, handler, handler_with, hangs, must_come, one_worker, text_of, tool, waits_at,
};
use longhaul_engine::{CallEnd, CallOptions, Ctx, CtxError, Engine, EngineError, EngineTool, Handler, ToolLimits};
use longhaul_task::{Json, Outcome, Owner, QuestionKind, TaskError};

async fn run(engine: &Engine, tool: &str, input: &str, call: CallOptions) -> CallEnd {
    must_come("the end of the call", engine.call(&tool.into(), Json::from_text(input), call)).await.unwrap()
}

#[track_caller]
fn done(end: CallEnd) -> Outcome {
    match end {
        CallEnd::Done(outcome) => outcome,
        other => panic!("not done: {other:?}"),
    }
}

/// The keys of the open questions, and what was answered already.
#[track_caller]
fn asked(end: CallEnd) -> (Vec<String>, Vec<(String, Json)>) {
    match end {
        CallEnd::Asks { questions, answered } => {
            (questions.into_iter().map(|question| question.key).collect(), answered)
        }
        other => panic!("it asks nothing: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_runs_its_handler_and_stores_nothing() {
    let lab = Lab::start(vec![tool("echo", echo())]).await;
    assert_eq!(done(run(&lab.engine, "echo", "\"hello\"", call_options(&[])).await), text_of("hello"));
    assert_eq!(lab.store.calls("create"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_tool_error_and_a_refusal_come_back_as_they_are() {
    let refusal = Outcome::Error(TaskError { code: Some(-32602), message: "no".into(), data: None });
    let error = Outcome::Result { body: Json::from_text("{}"), is_error: true };
    for outcome in [refusal, error] {
        let returns = handler_with(outcome.clone(), |outcome, _ctx, _input| async { Ok(outcome) });
        let lab = Lab::start(vec![tool("work", returns)]).await;
        assert_eq!(done(run(&lab.engine, "work", "{}", call_options(&[])).await), outcome);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_has_the_limits_of_its_tool() {
    let limits = ToolLimits::default().input_bytes_max(4).result_bytes_max(3);
    let prelude = Some(echo());
    let lab = Lab::start(vec![EngineTool { limits, prelude, ..tool("echo", echo()) }]).await;
    assert_eq!(
        done(run(&lab.engine, "echo", "123", call_options(&[])).await),
        Outcome::Result { body: Json::from_text("123"), is_error: false }
    );
    assert_eq!(code(&done(run(&lab.engine, "echo", "1234", call_options(&[])).await)), "RESULT_TOO_LARGE");
    let too_large = EngineError::InputTooLarge { bytes: 5, bytes_max: 4 };
    let input = Json::from_text("12345");
    let refused = lab.engine.call(&"echo".into(), input.clone(), call_options(&[])).await;
    assert_eq!(refused.unwrap_err(), too_large);
    let refused = lab.engine.before_task(&"echo".into(), input.clone(), call_options(&[])).await;
    assert_eq!(refused.unwrap_err(), too_large);
    let unknown = lab.engine.call(&"ohce".into(), input, call_options(&[])).await;
    assert_eq!(unknown.unwrap_err(), EngineError::NoSuchTool("ohce".into()));
}

fn asks_in_a_row() -> Arc<dyn Handler> {
    handler(|mut ctx: Ctx, _input| async move {
        let name = ctx.ask("name", Approve).await?;
        let colour = ctx.ask("colour", Approve).await?;
        let other = ctx.ask("colour", Approve).await?;
        answer(&format!("{name} {colour} {other}"))
    })
}

#[tokio::test(start_paused = true)]
async fn each_round_gets_further_with_the_answers_of_the_rounds_before() {
    let lab = Lab::start(vec![tool("ask", asks_in_a_row())]).await;
    let mut answers = Vec::new();
    for (key, text) in [("name", "\"ada\""), ("colour", "\"red\""), ("colour-2", "\"blue\"")] {
        let (questions, answered) = asked(run(&lab.engine, "ask", "{}", call_options(&answers)).await);
        assert_eq!(questions, [key]);
        let expected: Vec<(String, Json)> =
            answers.iter().map(|(key, text): &(&str, &str)| ((*key).into(), Json::from_text(*text))).collect();
        assert_eq!(answered, expected, "what was answered has to come along again");
        answers.push((key, text));
    }
    assert_eq!(done(run(&lab.engine, "ask", "{}", call_options(&answers)).await), text_of("ada red blue"));
}

#[tokio::test(start_paused = true)]
async fn branches_ask_together_and_an_answer_to_one_leaves_the_other_open() {
    let lab = Lab::start(vec![tool("ask", asks_left_and_right())]).await;
    assert_eq!(asked(run(&lab.engine, "ask", "{}", call_options(&[])).await).0, ["left", "right"]);
    let (questions, answered) = asked(run(&lab.engine, "ask", "{}", call_options(&[("right", "\"r\"")])).await);
    assert_eq!(questions, ["left"]);
    assert_eq!(answered, [("right".to_owned(), Json::from_text("\"r\""))]);
    let both = call_options(&[("right", "\"r\""), ("left", "\"l\"")]);
    assert_eq!(done(run(&lab.engine, "ask", "{}", both).await), text_of("l and r"));
}

#[tokio::test(start_paused = true)]
async fn a_branch_that_works_is_waited_for_before_the_client_is_asked() {
    let door = Door::shut();
    let half = handler_with(door.clone(), |door, mut ctx: Ctx, _input| async move {
        let ask = ctx.fork("asks", |mut ctx| async move { ctx.ask("now", Approve).await });
        let work = ctx.fork("works", |mut ctx| async move {
            door.pass().await;
            ctx.ask("later", Approve).await
        });
        let (said, _) = tokio::join!(ask, work);
        answer(&said?)
    });
    let lab = Lab::start(vec![tool("ask", half)]).await;
    let (end, ()) = tokio::join!(run(&lab.engine, "ask", "{}", call_options(&[])), async {
        tokio::task::yield_now().await;
        door.open();
    });
    assert_eq!(asked(end).0, ["now", "later"]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_fit_stops_the_call() {
    let lab = Lab::start(vec![tool("ask", asks_in_a_row())]).await;
    let end = run(&lab.engine, "ask", "{}", call_options(&[("name", "7")])).await;
    assert!(matches!(&end, CallEnd::Stopped(CtxError::BadAnswer(why)) if why == "a number"), "{end:?}");
}

#[tokio::test(start_paused = true)]
async fn a_client_is_not_asked_what_it_cannot_answer() {
    let careful = handler(|mut ctx: Ctx, _input| async move {
        if ctx.can_ask(&Approve) {
            ctx.ask("approve", Approve).await?;
        }
        answer("without asking")
    });
    let lab = Lab::start(vec![tool("ask", asks_in_a_row()), tool("careful", careful)]).await;
    let mute = || CallOptions { requestor: Arc::new(Client { elicitation: false }), ..call_options(&[]) };
    let end = run(&lab.engine, "ask", "{}", mute()).await;
    let CallEnd::Stopped(CtxError::CannotAsk { kind: QuestionKind::Elicitation, label, .. }) = end else {
        panic!("{end:?}");
    };
    assert_eq!(&*label, "name");
    assert_eq!(done(run(&lab.engine, "careful", "{}", mute()).await), text_of("without asking"));
    assert_eq!(asked(run(&lab.engine, "careful", "{}", call_options(&[])).await).0, ["approve"]);
}

#[tokio::test(start_paused = true)]
async fn calls_of_one_owner_leave_room_for_those_of_others() {
    let (door, log) = (Door::shut(), HandlerLog::new());
    let limits = ToolLimits::default().calls_max(8);
    let lab = Lab::start(vec![EngineTool { limits, ..tool("work", waits_at(&door, &log)) }]).await;
    let call = |owner: Owner| {
        let engine = lab.engine.clone();
        tokio::spawn(async move {
            engine.call(&"work".into(), Json::from_text(format!("\"{owner}\"")), call_options_of(owner, &[])).await
        })
    };
    let ada_calls: Vec<_> = (0..6).map(|_| call(ada())).collect();
    log.hears_times("start \"ada\"", 6).await;
    let refused = must_come("the refusal", call(ada())).await.unwrap().unwrap_err();
    assert_eq!((refused.code(), refused), ("TOO_MANY_CALLS", EngineError::TooManyCalls { calls_max: 8 }));
    let bob_call = call(bob());
    log.hears("start \"bob\"").await;
    let usage = lab.budget("calls");
    assert_eq!((usage.capacity, usage.used, usage.owners, usage.refused), (8, 7, 2, 1));

    door.open_wide();
    for call in ada_calls.into_iter().chain([bob_call]) {
        assert_eq!(done(must_come("the end of the call", call).await.unwrap().unwrap()), text_of("done"));
    }
    assert!(must_come("the end of a later call", call(ada())).await.unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_client_goes_away_drops_its_handler_and_gives_up_its_turn() {
    let log = HandlerLog::new();
    let limits = ToolLimits::default().calls_max(1);
    let lab = Lab::start(vec![EngineTool { limits, ..tool("work", hangs(&log)) }]).await;
    for times in 1..=2 {
        tokio::select! {
            end = run(&lab.engine, "work", "{}", call_options(&[])) => panic!("it ended: {end:?}"),
            () = log.hears_times("start", times) => {}
        }
        assert_eq!(log.said().iter().filter(|word| *word == "dropped").count(), times);
    }
}

#[tokio::test(start_paused = true)]
async fn progress_reaches_the_client_that_waits() {
    let reports = handler(|mut ctx: Ctx, _input| async move {
        ctx.progress(1.0, Some(2.0), "half").await?;
        ctx.report("this is not stored").await?;
        answer("done")
    });
    let lab = Lab::start(vec![tool("work", reports)]).await;
    let (sender, mut progress) = tokio::sync::watch::channel(None);
    done(run(&lab.engine, "work", "{}", CallOptions { progress: Some(sender), ..call_options(&[]) }).await);
    let word = progress.borrow_and_update().clone().unwrap();
    assert_eq!((word.done, word.total, word.message.as_deref()), (1.0, Some(2.0), Some("half")));
    assert!(progress.changed().await.is_err());
}

/// Asks for a name first; the task itself gets the name as its arguments.
fn with_prelude() -> EngineTool {
    let prelude = handler(|mut ctx: Ctx, input: Json| async move {
        if input.as_str() == "\"refuse\"" {
            return Ok(Outcome::Result { body: Json::from_text("\"no\""), is_error: true });
        }
        let name = ctx.ask("name", Approve).await?;
        answer(&name)
    });
    EngineTool { prelude: Some(prelude), ..one_worker("greet", echo()) }
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_before_a_task_becomes_its_arguments() {
    let lab = Lab::start(vec![with_prelude()]).await;
    let greet: Arc<str> = "greet".into();
    let input = Json::from_text("{}");
    let end = lab.engine.before_task(&greet, input.clone(), call_options(&[])).await.unwrap().unwrap_err();
    assert_eq!(asked(end).0, ["name"]);
    let ready = lab.engine.before_task(&greet, input, call_options(&[("name", "\"ada\"")])).await.unwrap().unwrap();
    let key = lab.create_on("greet", ready.as_str()).await;
    assert_eq!(lab.end(&key).await, text_of("ada"));
}

#[tokio::test(start_paused = true)]
async fn an_ordinary_call_goes_through_the_prelude_too() {
    let lab = Lab::start(vec![with_prelude()]).await;
    assert_eq!(asked(run(&lab.engine, "greet", "{}", call_options(&[])).await).0, ["name"]);
    assert_eq!(done(run(&lab.engine, "greet", "{}", call_options(&[("name", "\"ada\"")])).await), text_of("ada"));
    let refused = done(run(&lab.engine, "greet", "\"refuse\"", call_options(&[])).await);
    assert_eq!(refused, Outcome::Result { body: Json::from_text("\"no\""), is_error: true });
}

#[tokio::test(start_paused = true)]
async fn a_tool_without_a_prelude_takes_its_arguments_as_they_are() {
    let lab = Lab::start(vec![tool("echo", echo())]).await;
    let ready = lab.engine.before_task(&"echo".into(), Json::from_text("1"), call_options(&[])).await.unwrap().unwrap();
    assert_eq!(ready.as_str(), "1");
}

/// It has no moment to tidy up in after its client has gone, except in a `Drop`.
#[tokio::test(start_paused = true)]
async fn a_call_whose_client_goes_away_is_dropped_and_not_told_of_a_cancellation() {
    let log = HandlerLog::new();
    let waits = handler_with(log.clone(), |log, ctx: Ctx, _input| async move {
        log.say("start");
        ctx.cancelled().await;
        log.say("cancelled");
        answer("done")
    });
    let lab = Lab::start(vec![tool("work", waits)]).await;
    tokio::select! {
        end = run(&lab.engine, "work", "{}", call_options(&[])) => panic!("it ended: {end:?}"),
        () = log.hears("start") => {}
    }
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    assert_eq!(log.said(), ["start"]);
}

#[tokio::test(start_paused = true)]
async fn calls_are_counted_while_they_run() {
    let (door, log) = (Door::shut(), HandlerLog::new());
    let lab = Lab::start(vec![tool("work", waits_at(&door, &log)), tool("idle", echo())]).await;
    let counts = || {
        let calls = lab.engine.running_calls().into_iter();
        calls.map(|(tool, calls)| (tool.to_string(), calls)).collect::<Vec<_>>()
    };
    let is = |work| vec![("idle".to_owned(), 0), ("work".to_owned(), work)];
    let begin = |n: u8| {
        let engine = lab.engine.clone();
        tokio::spawn(async move { run(&engine, "work", &n.to_string(), call_options(&[])).await })
    };
    let (ends, goes_away) = (begin(0), begin(1));
    log.hears("start 0").await;
    log.hears("start 1").await;
    assert_eq!(counts(), is(2));
    goes_away.abort();
    assert!(goes_away.await.unwrap_err().is_cancelled());
    assert_eq!(counts(), is(1));
    door.open_wide();
    done(ends.await.unwrap());
    assert_eq!(counts(), is(0));
}

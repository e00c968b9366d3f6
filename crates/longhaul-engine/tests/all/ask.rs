//! A question is asked once and answered once; while everything waits, the worker serves others.

use std::sync::Arc;

use crate::common::{
    Approve, Door, HandlerLog, Lab, answer, asks, asks_left_and_right, bob, echo, handler, handler_with, is_waiting,
    must_come, one_worker, phase, text_of, tool, waits_at,
};
use longhaul_engine::{Ctx, CtxError, EngineError, EngineTool, Handler, ToolLimits};
use longhaul_store::StoreError;
use longhaul_task::{Json, Outcome, PhaseName, QuestionKey, TaskKey, TransitionError};

/// Asks once and returns the answer; says `goes on` when it has it.
fn asks_and_goes_on(log: &HandlerLog) -> Arc<dyn Handler> {
    handler_with(log.clone(), |log, mut ctx: Ctx, _input| async move {
        let said = ctx.ask("approve", Approve).await?;
        log.say("goes on");
        answer(&said)
    })
}

#[tokio::test(start_paused = true)]
async fn a_handler_gets_the_answer_to_its_question() {
    let lab = Lab::start(vec![tool("ask", asks())]).await;
    let (key, question) = lab.create_until_asked("ask").await;
    assert_eq!(question.as_str(), "approve-1");
    lab.answer(&key, &question, "\"yes\"").await;
    assert_eq!(lab.end(&key).await, text_of("yes"));
    lab.counts("ask", (0, 0)).await;
}

/// The two questions by their labels. Their order is not defined.
async fn left_and_right(lab: &Lab, key: &TaskKey) -> Vec<QuestionKey> {
    let mut questions = lab.asks(key, 2).await;
    questions.sort();
    questions
}

#[tokio::test(start_paused = true)]
async fn two_branches_ask_at_once_and_are_answered_in_either_order() {
    let lab = Lab::start(vec![one_worker("ask", asks_left_and_right())]).await;
    for (first, second) in [(0, 1), (1, 0)] {
        let key = lab.create("ask").await;
        let questions = left_and_right(&lab, &key).await;
        let answers = ["\"l\"", "\"r\""];
        lab.answer(&key, &questions[first], answers[first]).await;
        assert_eq!(lab.asks(&key, 1).await, [questions[second].clone()]);
        lab.answer(&key, &questions[second], answers[second]).await;
        assert_eq!(lab.end(&key).await, text_of("l and r"));
        lab.counts("ask", (0, 0)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn two_answers_that_come_at_once_reach_their_own_branches() {
    let lab = Lab::start(vec![one_worker("ask", asks_left_and_right())]).await;
    let key = lab.create("ask").await;
    let questions = left_and_right(&lab, &key).await;
    tokio::join!(lab.answer(&key, &questions[1], "\"r\""), lab.answer(&key, &questions[0], "\"l\""));
    assert_eq!(lab.end(&key).await, text_of("l and r"));
}

/// A tool that asks, or waits at a door, as its arguments say.
fn asks_or_works(door: &Door, log: &HandlerLog) -> Arc<dyn Handler> {
    let (asks, works) = (asks_and_goes_on(log), waits_at(door, log));
    handler(move |ctx, input| if input.as_str() == "\"ask\"" { asks.run(ctx, input) } else { works.run(ctx, input) })
}

#[tokio::test(start_paused = true)]
async fn the_only_worker_serves_another_task_while_one_waits_and_is_taken_again_before_it_goes_on() {
    let (door, log) = (Door::shut(), HandlerLog::new());
    let lab = Lab::start(vec![one_worker("work", asks_or_works(&door, &log))]).await;
    let (waits, question) = lab.create_on_until_asked("work", "\"ask\"").await;
    let other = lab.create_on("work", "1").await;
    log.hears("start 1").await;

    lab.answer(&waits, &question, "\"yes\"").await;
    let third = lab.create_on("work", "2").await;
    // Time jumps over everything that could happen by itself.
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    assert_eq!(log.said(), ["start 1"], "there is one worker, and the other task has it");

    door.open();
    assert_eq!(lab.end(&waits).await, text_of("yes"));
    assert_eq!(lab.end(&other).await, text_of("done"));
    log.hears("start 2").await;
    assert_eq!(log.said(), ["start 1", "done 1", "goes on", "start 2"], "who has an answer goes before the queue");
    door.open();
    lab.end(&third).await;
    lab.counts("work", (0, 0)).await;
}

#[tokio::test(start_paused = true)]
async fn a_branch_that_still_works_keeps_the_worker() {
    let door = Door::shut();
    let half = handler_with(door.clone(), |door, mut ctx: Ctx, _input| async move {
        let ask = ctx.fork("asks", |mut ctx| async move { ctx.ask("approve", Approve).await });
        let work = ctx.fork("works", |ctx| async move {
            door.pass().await;
            drop(ctx);
        });
        let (said, ()) = tokio::join!(ask, work);
        answer(&said?)
    });
    let lab = Lab::start(vec![one_worker("half", half)]).await;
    let (key, question) = lab.create_until_asked("half").await;
    assert_eq!(lab.load("half"), (1, 0));
    door.open();
    lab.counts("half", (0, 0)).await;
    lab.answer(&key, &question, "\"yes\"").await;
    assert_eq!(lab.end(&key).await, text_of("yes"));
    lab.counts("half", (0, 0)).await;
}

#[tokio::test(start_paused = true)]
async fn a_fork_that_still_works_keeps_the_worker_while_its_parent_asks() {
    let door = Door::shut();
    let half = handler_with(door.clone(), |door, mut ctx: Ctx, _input| async move {
        let work = ctx.fork("works", |ctx| async move {
            door.pass().await;
            drop(ctx);
        });
        let (said, ()) = tokio::join!(ctx.ask("approve", Approve), work);
        answer(&said?)
    });
    let lab = Lab::start(vec![one_worker("half", half)]).await;
    let (key, question) = lab.create_until_asked("half").await;
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    assert_eq!(lab.load("half"), (1, 0));
    door.open();
    lab.counts("half", (0, 0)).await;
    lab.answer(&key, &question, "\"yes\"").await;
    assert_eq!(lab.end(&key).await, text_of("yes"));
    lab.counts("half", (0, 0)).await;
}

#[tokio::test(start_paused = true)]
async fn the_worker_is_given_back_again_when_one_branch_has_ended_and_the_other_still_waits() {
    let lab = Lab::start(vec![one_worker("ask", asks_left_and_right())]).await;
    let key = lab.create("ask").await;
    let questions = left_and_right(&lab, &key).await;
    lab.counts("ask", (0, 0)).await;
    lab.answer(&key, &questions[0], "\"l\"").await;
    lab.asks(&key, 1).await;
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    assert_eq!(lab.load("ask"), (0, 0), "nothing of the handler works, and yet it has the worker");
    lab.answer(&key, &questions[1], "\"r\"").await;
    assert_eq!(lab.end(&key).await, text_of("l and r"));
    lab.counts("ask", (0, 0)).await;
}

#[tokio::test(start_paused = true)]
async fn open_questions_of_one_owner_leave_workers_to_others() {
    let (door, log) = (Door::shut(), HandlerLog::new());
    let limits = ToolLimits::default().running_max(2).idle_max(2);
    let lab = Lab::start(vec![EngineTool { limits, ..tool("work", asks_or_works(&door, &log)) }]).await;
    let mut open = Vec::new();
    for _ in 0..6 {
        open.push(lab.create_on("work", "\"ask\"").await);
        // Tasks of one millisecond have no order.
        tokio::time::advance(std::time::Duration::from_millis(1)).await;
    }
    for key in &open[..3] {
        lab.question(key).await;
    }
    lab.counts("work", (0, 3)).await;
    assert_eq!((lab.budget("attempts").used, lab.budget("queue").used), (3, 3));
    for n in 1..=2 {
        let other = lab.create_for(bob(), "work", &n.to_string()).await;
        log.hears(&format!("start {n}")).await;
        door.open();
        assert_eq!(lab.end(&other).await, text_of("done"));
    }
    // Each end makes a place for the owner's next task.
    for key in &open {
        let question = lab.question(key).await;
        lab.answer(key, &question, "\"yes\"").await;
        assert_eq!(lab.end(key).await, text_of("yes"));
    }
    lab.counts("work", (0, 0)).await;
    assert_eq!((lab.budget("attempts").used, lab.budget("queue").used), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_task_without_a_place_is_claimed_only_when_there_is_one() {
    let (door, log) = (Door::shut(), HandlerLog::new());
    let limits = ToolLimits::default().running_max(1).idle_max(0);
    let lab = Lab::start(vec![EngineTool { limits, ..tool("work", asks_or_works(&door, &log)) }]).await;
    let (waits, question) = lab.create_on_until_asked("work", "\"ask\"").await;
    lab.counts("work", (0, 0)).await;
    let next = lab.create_on("work", "1").await;
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    assert_eq!(lab.load("work"), (0, 1));
    assert_eq!(lab.store.calls("claim"), 0, "there is no place for what could be claimed");
    lab.answer(&waits, &question, "\"yes\"").await;
    log.hears("start 1").await;
    door.open();
    assert_eq!(lab.end(&next).await, text_of("done"));
    lab.counts("work", (0, 0)).await;
}

#[tokio::test(start_paused = true)]
async fn a_question_is_answered_once_and_an_unknown_one_never() {
    let again = handler(|mut ctx: Ctx, _input| async move {
        let first = ctx.ask("approve", Approve).await?;
        let second = ctx.ask("approve", Approve).await?;
        answer(&format!("{first} then {second}"))
    });
    let lab = Lab::start(vec![tool("ask", again)]).await;
    let key = lab.create("ask").await;
    let no_such = EngineError::Store(StoreError::Refused(TransitionError::NoSuchQuestion));
    let try_answer = async |question: &QuestionKey| {
        lab.engine
            .answer(&key, question.clone(), longhaul_task::Answer::Given(Json::from_text("\"stale\"")))
            .await
            .unwrap_err()
    };
    let first = lab.question(&key).await;
    assert_eq!(try_answer(&QuestionKey::from_text("approve-2")).await, no_such);
    lab.answer(&key, &first, "\"a\"").await;
    let second = lab.until(&key, "the second question", |task| {
        task.phase.questions().is_some_and(|open| open.find(&first).is_none())
    });
    let second = second.await.phase.questions().unwrap().iter().next().unwrap().key.clone();
    assert_ne!(first, second, "keys are never used again");
    assert_eq!(try_answer(&first).await, no_such);
    lab.answer(&key, &second, "\"b\"").await;
    assert_eq!(lab.end(&key).await, text_of("a then b"));
    assert_eq!(try_answer(&second).await, EngineError::Store(StoreError::Refused(TransitionError::Settled)));
}

#[tokio::test(start_paused = true)]
async fn a_label_that_cannot_be_one_is_refused_and_the_handler_can_go_on() {
    let bad_label = handler(|mut ctx: Ctx, _input| async move {
        for label in ["", "no spaces", "ä", &"x".repeat(65)] {
            assert_eq!(ctx.ask(label, Approve).await, Err(CtxError::Refused(TransitionError::BadLabel)), "{label:?}");
        }
        let said = ctx.ask(&"x".repeat(64), Approve).await?;
        answer(&said)
    });
    let lab = Lab::start(vec![one_worker("ask", bad_label)]).await;
    let (key, question) = lab.create_until_asked("ask").await;
    lab.answer(&key, &question, "\"yes\"").await;
    assert_eq!(lab.end(&key).await, text_of("yes"));
}

#[tokio::test(start_paused = true)]
async fn a_refused_question_ends_the_task_with_its_reason_if_the_handler_passes_it_on() {
    let bad_label = handler(|mut ctx: Ctx, _input| async move {
        ctx.ask("no spaces", Approve).await?;
        answer("never")
    });
    let lab = Lab::start(vec![tool("ask", bad_label)]).await;
    let key = lab.create("ask").await;
    let Outcome::Error(fault) = lab.end(&key).await else { panic!("it did not fail") };
    assert_eq!(&*fault.message, TransitionError::BadLabel.to_string());
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_cannot_be_read_reaches_the_handler_as_such() {
    let lab = Lab::start(vec![tool("ask", asks())]).await;
    let (key, question) = lab.create_until_asked("ask").await;
    lab.answer(&key, &question, "null").await;
    let Outcome::Error(fault) = lab.end(&key).await else { panic!("it did not fail") };
    assert_eq!(&*fault.message, "the answer does not fit the question: nothing was answered");
}

#[tokio::test(start_paused = true)]
async fn a_task_may_ask_as_many_questions_at_once_as_the_limit_says() {
    let log = HandlerLog::new();
    let many = handler_with(log.clone(), |log, mut ctx: Ctx, _input| async move {
        let asked = (0..=longhaul_task::QUESTIONS_OPEN_MAX).map(|n| {
            let log = log.clone();
            ctx.fork(&n.to_string(), |mut ctx| async move {
                let said = ctx.ask("approve", Approve).await;
                if said == Err(CtxError::Refused(TransitionError::TooManyQuestions)) {
                    log.say("too many");
                }
                said
            })
        });
        futures_util::future::join_all(asked).await;
        answer("done")
    });
    let lab = Lab::start(vec![tool("ask", many)]).await;
    let key = lab.create("ask").await;
    let questions = lab.asks(&key, longhaul_task::QUESTIONS_OPEN_MAX).await;
    log.hears("too many").await;
    for question in &questions {
        lab.answer(&key, question, "\"yes\"").await;
    }
    assert_eq!(lab.end(&key).await, text_of("done"));
    assert_eq!(log.said().len(), 1);
    lab.counts("ask", (0, 0)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn workers_are_neither_lost_nor_doubled_when_branches_on_many_threads_ask_and_go_on() {
    let spawned = handler(|mut ctx: Ctx, _input| async move {
        let branches: Vec<_> = (0..3)
            .map(|n| {
                tokio::spawn(ctx.fork(&n.to_string(), |mut ctx| async move {
                    for _ in 0..3 {
                        ctx.ask("approve", Approve).await?;
                    }
                    Ok::<(), CtxError>(())
                }))
            })
            .collect();
        for branch in branches {
            branch.await.unwrap()?;
        }
        answer("done")
    });
    let limits = ToolLimits::default().running_max(2);
    let lab = Arc::new(Lab::start(vec![EngineTool { limits, ..tool("ask", spawned) }, tool("echo", echo())]).await);
    let tasks: Vec<_> = (0..12)
        .map(|_| {
            let lab = Arc::clone(&lab);
            tokio::spawn(async move {
                let key = lab.create("ask").await;
                loop {
                    let settled_or_asks = |task: &longhaul_task::Task| task.is_settled() || is_waiting(task);
                    let task = lab.until(&key, "a question or the end", settled_or_asks).await;
                    if task.is_settled() {
                        return lab.end(&key).await;
                    }
                    for question in task.phase.questions().into_iter().flatten() {
                        lab.answer(&key, &question.key, "\"yes\"").await;
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        assert_eq!(must_come("the end", task).await.unwrap(), text_of("done"));
    }
    lab.counts("ask", (0, 0)).await;
    let after = lab.try_create("ask", "{}").await.unwrap();
    assert_eq!(phase(&after), PhaseName::Running);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_fit_is_refused_and_the_question_stays_open() {
    let picky = |_: longhaul_task::QuestionKind, _: &Json, answer: &Json| {
        if answer.as_str() == "1" { Err("a number".to_owned()) } else { Ok(()) }
    };
    let lab = Lab::start(vec![longhaul_engine::EngineTool { check_answer: picky, ..tool("ask", asks()) }]).await;
    let (key, question) = lab.create_until_asked("ask").await;
    let given = longhaul_task::Answer::Given(Json::from_text("1"));
    let refused = lab.engine.answer(&key, question.clone(), given).await.unwrap_err();
    assert_eq!(refused.code(), "BAD_ANSWER");
    assert_eq!(lab.question(&key).await, question);
    // A client that does not answer at all closes the question.
    let not_given = longhaul_task::Answer::NotGiven("busy".into());
    lab.engine.answer(&key, question, not_given).await.unwrap();
    assert_eq!(crate::common::code(&lab.end(&key).await), "NOT_ANSWERED");
}

//! The winner of a race is recorded, and the loser leaves nothing behind.

use std::sync::Arc;
use std::time::Duration;

use longhaul_engine::{Ctx, CtxError, Handler, Race};
use longhaul_task::Task;

use crate::common::{Approve, HandlerLog, Lab, Machine, answer, handler, handler_with, resumes, text_of, tool};

/// Waits for an answer for ten seconds, then asks for a reason.
fn asks_or_goes_on() -> Arc<dyn Handler> {
    handler(|mut ctx: Ctx, _input| async move {
        let said =
            ctx.time_limit("ten seconds", Duration::from_secs(10), |mut ctx| async move {
                ctx.ask("approve", Approve).await
            })
            .await?;
        if let Some(said) = said {
            return answer(&format!("answered {}", said?));
        }
        let why = ctx.ask("why", Approve).await?;
        answer(&format!("too late because {why}"))
    })
}

#[tokio::test(start_paused = true)]
async fn the_question_of_the_branch_that_lost_is_closed() {
    for tool in [resumes("ask", asks_or_goes_on()), tool("ask", asks_or_goes_on())] {
        let lab = Lab::start(vec![tool]).await;
        let (key, first) = lab.create_until_asked("ask").await;
        let label =
            |task: &Task| task.phase.questions().is_some_and(|open| open.iter().all(|it| it.key.label() == "why"));
        lab.until(&key, "the second question", label).await;
        let late =
            lab.engine.answer(&key, first, longhaul_task::Answer::Given(longhaul_task::Json::from_text("1"))).await;
        assert!(late.is_err(), "nobody waits for it any more");
        let second = lab.question(&key).await;
        lab.answer(&key, &second, "\"lunch\"").await;
        assert_eq!(lab.end(&key).await, text_of("too late because lunch"));
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_in_time_wins_over_the_time_limit() {
    let lab = Lab::start(vec![resumes("ask", asks_or_goes_on())]).await;
    let (key, question) = lab.create_until_asked("ask").await;
    lab.answer(&key, &question, "\"yes\"").await;
    assert_eq!(lab.end(&key).await, text_of("answered yes"));
}

#[test]
fn a_resumed_handler_goes_on_with_the_recorded_winner() {
    let mut machine = Machine::new();
    let tools = || vec![resumes("ask", asks_or_goes_on())];
    let key = machine.run_engine(tools(), async |lab| {
        let (key, _first) = lab.create_until_asked("ask").await;
        lab.until(&key, "the second question", |task| task.questions_asked == 2).await;
        key
    });
    machine.run_engine(tools(), async |lab| {
        let question = lab.question(&key).await;
        assert_eq!(question.label(), "why");
        lab.answer(&key, &question, "\"lunch\"").await;
        assert_eq!(lab.end(&key).await, text_of("too late because lunch"));
        assert_eq!(lab.read(&key).await.questions_asked, 2);
    });
}

#[tokio::test(start_paused = true)]
async fn the_branch_that_lost_is_dropped_and_its_steps_are_not_repeated() {
    let log = HandlerLog::new();
    let works = handler_with(log.clone(), |log, mut ctx: Ctx, _input| async move {
        let other = log.clone();
        let race = ctx
            .race(
                "both",
                |mut ctx| async move {
                    let _dropped = log.on_drop("first dropped");
                    ctx.step("a", || async { Ok::<_, CtxError>(1) }).await?;
                    std::future::pending::<Result<u32, CtxError>>().await
                },
                |mut ctx| async move {
                    ctx.sleep("short", Duration::from_millis(10)).await?;
                    other.say("second done");
                    Ok::<_, CtxError>(2)
                },
            )
            .await?;
        let Race::Second(two) = race else { panic!("the first cannot win") };
        answer(&format!("{}", two?))
    });
    let lab = Lab::start(vec![resumes("work", works)]).await;
    let key = lab.create("work").await;
    assert_eq!(lab.end(&key).await, text_of("2"));
    assert_eq!(log.said(), ["second done", "first dropped"]);
}

#[tokio::test(start_paused = true)]
async fn the_children_of_the_branch_that_lost_are_cancelled() {
    let log = HandlerLog::new();
    let parent = handler(|mut ctx: Ctx, _input| async move {
        let end = ctx
            .time_limit("a second", Duration::from_secs(1), |mut ctx| async move {
                ctx.subtask("slow", crate::subtask::Child::new("hang", "{}")).await
            })
            .await?;
        answer(if end.is_none() { "gave up" } else { "waited" })
    });
    let lab = Lab::start(vec![resumes("work", parent), tool("hang", crate::common::hangs(&log))]).await;
    let key = lab.create("work").await;
    assert_eq!(lab.end(&key).await, text_of("gave up"));
    log.hears("dropped").await;
    let children = lab.engine.store().children(&key).await.unwrap();
    let child = longhaul_task::TaskKey { owner: key.owner.clone(), id: children[0].clone() };
    assert_eq!(lab.end(&child).await, longhaul_task::Outcome::Cancelled);
}

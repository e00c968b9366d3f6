//! `longhaul::testing` runs, crashes and compares tools.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use longhaul::testing::{self, AttemptEnd, HistoryItem};
use longhaul::{
    Ctx, Failure, Form, FormAnswer, JsonSchema, NoArgs, OnCrash, Race, Retry, Sampling, Structured, Subtask, Tool,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

const HOUR: Duration = Duration::from_secs(3_600);

#[derive(Deserialize, JsonSchema)]
struct Query {
    topic: String,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Source {
    title: String,
}

#[derive(Deserialize, JsonSchema)]
struct Approval {
    go_on: bool,
}

#[derive(Serialize, JsonSchema)]
struct Report {
    parts: Vec<String>,
}

#[allow(clippy::unused_async, reason = "a real one asks a server")]
async fn find(topic: &str) -> Result<Vec<Source>, std::io::Error> {
    Ok(["habits", "food"].map(|of| Source { title: format!("{of} of {topic}") }).into())
}

fn research() -> Tool {
    Tool::new("research", |mut ctx: Ctx, query: Query| async move {
        let sources = ctx.step("find sources", || find(&query.topic)).await?;
        ctx.ask("approve", Form::<Approval>::new("Use these sources?")).await?;
        ctx.sleep("cool down", HOUR).await?;
        let parts = ctx.subtasks("summarise", sources.iter().map(|source| Subtask::new("summarise", source))).await?;
        let parts = parts.iter().map(longhaul::TaskResult::text).collect::<Result<_, _>>()?;
        Ok(Structured(Report { parts }))
    })
    .on_crash(OnCrash::Resume)
}

fn summarise() -> Tool {
    Tool::new("summarise", |mut ctx: Ctx, source: Source| async move {
        ctx.sleep("read", HOUR).await?;
        Ok(format!("{}, in short", source.title))
    })
    .on_crash(OnCrash::Resume)
}

#[tokio::test]
async fn research_survives_a_crash_anywhere() {
    let mut run = testing::run(research(), json!({"topic": "otters"})).tool(summarise()).await;
    run.answer("approve", json!({"go_on": true})).await;
    run.assert_resumable().await;
    let report: serde_json::Value = run.result().await.value().unwrap();
    assert_eq!(report, json!({ "parts": ["habits of otters, in short", "food of otters, in short"] }));
    assert_eq!(
        run.entries()[..3],
        [r#"step "find sources""#, r#"question "approve", asked"#, r#"question "approve", answered"#]
    );
}

/// A tool that counts how often it does its work, which needs three tries.
fn counts(counter: &Arc<AtomicU32>) -> Tool {
    let counter = Arc::clone(counter);
    Tool::new("count", move |mut ctx: Ctx, _: NoArgs| {
        let counter = Arc::clone(&counter);
        async move {
            let work = || async {
                let tries = counter.fetch_add(1, Ordering::SeqCst) + 1;
                if tries.is_multiple_of(3) { Ok("done") } else { Err(Failure::tool("not yet")) }
            };
            let said: String = ctx
                .step("count", || async { work().await.map(str::to_owned) })
                .retry(Retry::times(3).backoff(HOUR))
                .await?;
            ctx.sleep("rest", HOUR).await?;
            Ok(said)
        }
    })
    .on_crash(OnCrash::Resume)
}

#[tokio::test]
async fn a_recorded_failure_is_not_tried_again() {
    for on_crash in [OnCrash::Resume, OnCrash::Retry] {
        let pay = Tool::new("pay", |mut ctx: Ctx, _: NoArgs| async move {
            let attempt = ctx.attempt();
            ctx.step("pay", || async { Err::<(), _>(Failure::tool("no money")) }).await?;
            Ok(format!("attempt {attempt}"))
        });
        let pay = pay.on_crash(on_crash).attempts(3, HOUR).retry_failures();
        let mut run = testing::run(pay, json!({})).await;
        assert_eq!(run.result().await.error().as_deref(), Some("no money"));
        let attempts =
            run.history().iter().filter(|event| matches!(event.what, HistoryItem::AttemptEnded { .. })).count();
        // A tool that resumes would only find the failure in its journal again.
        let expected = if on_crash == OnCrash::Resume { 0 } else { 2 };
        assert_eq!(attempts, expected, "attempts before the last one, with {on_crash:?}");
    }
}

#[tokio::test]
async fn a_crash_loses_no_try_of_a_step() {
    for after in 1..=4 {
        let counter = Arc::new(AtomicU32::new(0));
        let mut run = testing::run(counts(&counter), json!({})).await;
        run.crash_after(after);
        assert_eq!(run.result().await.text().unwrap(), "done");
        assert_eq!(counter.load(Ordering::SeqCst), 3, "with a crash after entry {after}");
        let history = run.history().into_iter();
        let lost =
            history.filter(|event| matches!(event.what, HistoryItem::AttemptEnded { end: AttemptEnd::Lost, .. }));
        assert_eq!(lost.count(), 1);
    }
}

#[tokio::test]
async fn what_is_not_recorded_is_found() {
    let counter = Arc::new(AtomicU32::new(0));
    let tool = Tool::new("unstable", move |mut ctx: Ctx, _: NoArgs| {
        let started = counter.fetch_add(1, Ordering::SeqCst);
        async move {
            ctx.step("first", || async { Ok::<_, Failure>(()) }).await?;
            ctx.step("second", || async { Ok::<_, Failure>(()) }).await?;
            Ok(started.to_string())
        }
    });
    let mut run = testing::run(tool.on_crash(OnCrash::Resume), json!({})).await;
    let panic = AssertUnwindSafe(run.assert_resumable()).catch_unwind().await.unwrap_err();
    let message = panic.downcast_ref::<String>().unwrap();
    assert!(message.contains(r#"a crash after entry 1 of 2 (step "first") changes the result"#), "{message}");
    assert!(message.contains(r#""text":"0""#) && message.contains(r#""text":"2""#), "{message}");
}

#[tokio::test]
async fn a_handler_that_does_something_else_is_found() {
    let counter = Arc::new(AtomicU32::new(0));
    let tool = Tool::new("unstable", move |mut ctx: Ctx, _: NoArgs| {
        let name = format!("step of attempt {}", counter.fetch_add(1, Ordering::SeqCst));
        async move {
            ctx.step(&name, || async { Ok::<_, Failure>(()) }).await?;
            ctx.sleep("rest", HOUR).await?;
            Ok("done")
        }
    });
    let mut run = testing::run(tool.on_crash(OnCrash::Resume), json!({})).await;
    let panic = AssertUnwindSafe(run.assert_resumable()).catch_unwind().await.unwrap_err();
    let message = panic.downcast_ref::<String>().unwrap();
    assert!(message.contains("HANDLER_CHANGED") && message.contains("step of attempt 1"), "{message}");
}

#[tokio::test]
async fn a_missing_answer_is_named() {
    let mut run = testing::run(research(), json!({"topic": "otters"})).tool(summarise()).await;
    let panic = AssertUnwindSafe(run.result()).catch_unwind().await.unwrap_err();
    let message = panic.downcast_ref::<String>().unwrap();
    assert_eq!(message, r#"the run does not reach its end: it waits for the answer to "approve""#);
}

#[tokio::test]
#[should_panic(expected = "do not fit the tool `research`")]
async fn arguments_that_do_not_fit_are_refused() {
    testing::run(research(), json!({"topic": 7})).await;
}

#[tokio::test]
#[should_panic(expected = "add .on_crash(OnCrash::Resume)")]
async fn only_a_tool_that_resumes_is_resumable() {
    let tool = Tool::new("fails", |_: Ctx, _: NoArgs| async { Ok("done") });
    testing::run(tool, json!({})).await.assert_resumable().await;
}

#[tokio::test]
#[should_panic(expected = "does not fit")]
async fn an_answer_that_does_not_fit_is_refused() {
    let mut run = testing::run(research(), json!({"topic": "otters"})).await;
    run.answer("approve", json!({"go_on": "perhaps"})).await;
}

#[tokio::test]
async fn a_tool_that_does_not_resume_sleeps_without_waiting_too() {
    let tool = Tool::new("sleeps", |mut ctx: Ctx, _: NoArgs| async move {
        let since = ctx.now().await?;
        ctx.sleep("a day", 24 * HOUR).await?;
        Ok(ctx.now().await?.ms_since(since).to_string())
    });
    let mut run = testing::run(tool, json!({})).await;
    assert_eq!(run.result().await.text().unwrap(), "86400000");
}

#[tokio::test]
async fn a_tool_that_does_not_resume_fails_in_a_crash() {
    let mut run = testing::run(
        Tool::new(
            "asks",
            |mut ctx: Ctx, _: NoArgs| async move { Ok(ctx.ask("say", Sampling::new("Hi")).await?.text()) },
        ),
        json!({}),
    )
    .await;
    assert_eq!(run.question("say").await["messages"][0]["content"]["text"], "Hi");
    run.crash().await;
    let result = run.result().await;
    assert!(!result.is_success() && result.error().unwrap().contains("The server stopped"), "{result}");
}

#[tokio::test]
async fn an_answer_comes_after_a_crash() {
    let tool =
        Tool::new(
            "asks",
            |mut ctx: Ctx, _: NoArgs| async move { Ok(ctx.ask("say", Sampling::new("Hi")).await?.text()) },
        );
    let mut run = testing::run(tool.on_crash(OnCrash::Resume), json!({})).await;
    run.question("say").await;
    run.crash().await;
    run.answer("say", "Hello!").await;
    assert_eq!(run.result().await.text().unwrap(), "Hello!");
    assert_eq!(run.entries(), [r#"question "say", asked"#, r#"question "say", answered"#]);
}

#[tokio::test]
async fn a_cancelled_run_is_cancelled() {
    let mut run = testing::run(research(), json!({"topic": "otters"})).tool(summarise()).await;
    run.question("approve").await;
    run.cancel().await;
    assert!(run.result().await.is_cancelled());
}

/// Asks, for an hour at most.
fn impatient() -> Tool {
    Tool::new("impatient", |mut ctx: Ctx, _: NoArgs| async move {
        let winner = ctx.race(
            "answer or an hour",
            |mut ctx| async move { ctx.ask("approve", Form::<Approval>::new("Go on?")).await },
            |mut ctx| async move { ctx.sleep("an hour", HOUR).await },
        );
        Ok(match winner.await? {
            Race::First(answer) => match answer? {
                FormAnswer::Accepted(Approval { go_on }) => format!("accepted: {go_on}"),
                FormAnswer::Declined => "declined".into(),
                FormAnswer::Dismissed => "dismissed".into(),
            },
            Race::Second(slept) => slept.map(|()| "too late".into())?,
        })
    })
    .on_crash(OnCrash::Resume)
}

#[tokio::test]
async fn time_passes_only_while_nothing_is_answered() {
    let mut run = testing::run(impatient(), json!({})).await;
    run.answer("approve", json!({"go_on": true})).await;
    assert_eq!(run.result().await.text().unwrap(), "accepted: true");
    run.assert_resumable().await;

    let mut run = testing::run(impatient(), json!({})).await;
    assert_eq!(run.result().await.text().unwrap(), "too late");
    run.assert_resumable().await;

    let mut run = testing::run(impatient(), json!({})).await;
    run.decline("approve").await;
    assert_eq!(run.result().await.text().unwrap(), "declined");
    let mut run = testing::run(impatient(), json!({})).await;
    run.dismiss("approve").await;
    assert_eq!(run.result().await.text().unwrap(), "dismissed");
}

#[tokio::test]
async fn subtasks_are_answered_in_their_order() {
    let asks = Tool::new("ask", |mut ctx: Ctx, query: Query| async move {
        match ctx.ask("approve", Form::<Approval>::new(query.topic)).await? {
            FormAnswer::Accepted(Approval { go_on: true }) => Ok("yes"),
            _ => Ok("no"),
        }
    })
    .on_crash(OnCrash::Resume);
    let parent = Tool::new("parent", |mut ctx: Ctx, _: NoArgs| async move {
        let topics = ["otters", "beavers"].map(|topic| Subtask::new("ask", json!({ "topic": topic })));
        let said = ctx.subtasks("ask", topics).await?;
        Ok(format!("{} and {}", said[0].text()?, said[1].text()?))
    })
    .on_crash(OnCrash::Resume);
    let mut run = testing::run(parent, json!({})).tool(asks).await;
    run.answer("approve", json!({"go_on": true})).await;
    run.decline("approve").await;
    assert_eq!(run.result().await.text().unwrap(), "yes and no");
    run.assert_resumable().await;
}

#[tokio::test]
async fn a_parent_ends_after_children_that_it_does_not_wait_for() {
    let parent = Tool::new("parent", |mut ctx: Ctx, source: Source| async move {
        ctx.start_subtasks("summarise", [Subtask::new("summarise", source)]).await?;
        Ok("started")
    });
    let parent = parent.on_crash(OnCrash::Resume);
    let mut run = testing::run(parent, json!({ "title": "otters" })).tool(summarise()).await;
    assert_eq!(run.result().await.text().unwrap(), "started");
    // The parent returns while its child runs, so either of them can come first.
    let mut entries = run.entries();
    entries.sort();
    assert_eq!(entries, ["return", r#"subtask "summarise""#, r#"timer "read""#]);
    run.assert_resumable().await;
}

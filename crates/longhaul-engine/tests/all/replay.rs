//! What a resumed handler may do differently, and what it must not.

use std::sync::Arc;
use std::time::Duration;

use longhaul_engine::{Ctx, CtxError, Failure, Handler, Race};
use longhaul_task::Outcome;

use crate::common::{Approve, Door, HandlerLog, Lab, Machine, answer, code, handler, handler_with, resumes, text_of};
use crate::subtask::Child;

fn done<T>(value: T) -> std::future::Ready<Result<T, CtxError>> {
    std::future::ready(Ok(value))
}

/// Runs a first version of a handler until it asks, and a second one after a crash.
pub(crate) fn after_crash(first: Arc<dyn Handler>, second: Arc<dyn Handler>) -> (Outcome, String) {
    let mut machine = Machine::new();
    let (key, question) =
        machine.run_engine(vec![resumes("work", first)], async |lab| lab.create_until_asked("work").await);
    machine.run_engine(vec![resumes("work", second)], async |lab| {
        lab.answer(&key, &question, "\"yes\"").await;
        let end = lab.end(&key).await;
        (end, lab.read(&key).await.message.as_deref().unwrap_or_default().to_owned())
    })
}

/// A handler with a fork of this path, which does a step, and a question after it.
fn forks(path: &'static [&'static str]) -> Arc<dyn Handler> {
    fn nested(
        mut ctx: Ctx,
        path: &'static [&'static str],
    ) -> futures_util::future::BoxFuture<'static, Result<(), CtxError>> {
        Box::pin(async move {
            match path.split_first() {
                Some((key, rest)) => ctx.fork(key, |ctx| nested(ctx, rest)).await,
                None => ctx.step("pay", || done(())).await,
            }
        })
    }
    handler(move |mut ctx: Ctx, _input| async move {
        if let Some((key, rest)) = path.split_first() {
            ctx.fork(key, |ctx| nested(ctx, rest)).await?;
        }
        ctx.ask("approve", Approve).await?;
        answer("done")
    })
}

#[test]
fn a_fork_that_was_renamed_or_removed_is_a_changed_handler() {
    for (first, second) in [
        (&["left"][..], &["right"][..]),
        (&["left"], &[]),
        (&["left", "inner"], &["left", "outer"]),
        (&["left", "inner"], &["left"]),
    ] {
        let (end, message) = after_crash(forks(first), forks(second));
        assert_eq!(code(&end), "HANDLER_CHANGED", "{first:?} became {second:?}");
        let fork = format!("step \"pay\" in the fork {:?}", first.join("/"));
        assert!(message.contains(&fork), "{message} does not name {fork}");
    }
    assert_eq!(after_crash(forks(&["left", "inner"]), forks(&["left", "inner"])).0, text_of("done"));
}

#[test]
fn a_fork_that_leaves_out_its_last_step_is_a_changed_handler() {
    let works = |steps: u32| {
        handler(move |mut ctx: Ctx, _input| async move {
            ctx.fork("left", |mut ctx| async move {
                for _ in 0..steps {
                    ctx.step("pay", || done(())).await?;
                }
                Ok::<_, CtxError>(())
            })
            .await?;
            ctx.ask("approve", Approve).await?;
            answer("done")
        })
    };
    let (end, message) = after_crash(works(2), works(1));
    assert_eq!(code(&end), "HANDLER_CHANGED");
    assert!(message.contains("no operation"), "{message}");
}

/// The loser has recorded steps and made a fork. A resumed handler does not run it again.
#[test]
fn a_fork_of_the_branch_that_lost_a_race_is_not_missed() {
    let works = || {
        handler(|mut ctx: Ctx, _input| async move {
            let loses = |mut ctx: Ctx| async move {
                ctx.step("begin", || done(())).await?;
                ctx.fork("inner", |mut ctx| async move { ctx.step("pay", || done(())).await }).await?;
                std::future::pending::<Result<(), CtxError>>().await
            };
            let wins = |mut ctx: Ctx| async move { ctx.sleep("wait", Duration::from_millis(300)).await };
            match ctx.race("race", loses, wins).await? {
                Race::First(ended) => ended?,
                Race::Second(slept) => slept?,
            }
            ctx.ask("approve", Approve).await?;
            answer("done")
        })
    };
    assert_eq!(after_crash(works(), works()).0, text_of("done"));
}

/// The fork is dropped before it reaches what it recorded, because another one fails.
#[test]
fn a_fork_that_is_given_up_is_not_missed() {
    let works = |fails: bool| {
        handler(move |mut ctx: Ctx, _input| async move {
            let left = ctx.fork("left", |mut ctx| async move {
                ctx.sleep("wait", Duration::from_millis(u64::from(fails))).await?;
                tokio::time::sleep(Duration::from_millis(if fails { 60_000 } else { 0 })).await;
                ctx.fork("inner", |mut ctx| async move { ctx.step("pay", || done(())).await }).await
            });
            let right = ctx.fork("right", |mut ctx| async move {
                ctx.ask("approve", Approve).await?;
                if fails { Err(CtxError::BadAnswer("no".into())) } else { Ok(()) }
            });
            match tokio::try_join!(left, right) {
                Ok(_) => answer("both"),
                Err(_) => answer("one"),
            }
        })
    };
    assert_eq!(after_crash(works(false), works(true)).0, text_of("one"));
}

#[test]
fn the_order_in_which_forks_go_on_does_not_matter() {
    let works = |first: &'static str| {
        handler(move |mut ctx: Ctx, _input| async move {
            let branch = |name: &'static str| {
                move |mut ctx: Ctx| async move {
                    tokio::time::sleep(Duration::from_millis(if name == first { 1 } else { 20 })).await;
                    ctx.step(name, || done(name.to_owned())).await
                }
            };
            let (left, right) = (ctx.fork("l", branch("left")), ctx.fork("r", branch("right")));
            let (left, right) = tokio::try_join!(left, right)?;
            ctx.ask("approve", Approve).await?;
            answer(&format!("{left} {right}"))
        })
    };
    assert_eq!(after_crash(works("left"), works("right")).0, text_of("left right"));
}

#[test]
fn waits_of_no_length_and_errors_that_are_caught_are_replayed() {
    let log = HandlerLog::new();
    let works = || {
        handler_with(log.clone(), |log, mut ctx: Ctx, _input| async move {
            ctx.sleep("no time", Duration::ZERO).await?;
            let failed = ctx
                .step("fragile", || async {
                    log.say("tried");
                    Err::<(), _>(Failure::tool("broken"))
                })
                .await;
            let never = ctx.time_limit("no time", Duration::ZERO, |_| std::future::pending::<()>()).await?;
            let late = ctx.ask_within("late", Approve, Duration::ZERO).await?;
            ctx.ask("approve", Approve).await?;
            answer(&format!("{} {never:?} {late:?}", failed.is_err()))
        })
    };
    let mut machine = Machine::new();
    let asked = |task: &longhaul_task::Task| {
        task.phase.questions().into_iter().flatten().any(|question| question.key.label() == "approve")
    };
    let key = machine.run_engine(vec![resumes("work", works())], async |lab| {
        let key = lab.create("work").await;
        lab.until(&key, "its last question", asked).await;
        key
    });
    machine.run_engine(vec![resumes("work", works())], async |lab| {
        let question = lab.question(&key).await;
        lab.answer(&key, &question, "\"yes\"").await;
        assert_eq!(lab.end(&key).await, text_of("true None None"));
    });
    assert_eq!(log.said(), ["tried"]);
}

#[tokio::test(start_paused = true)]
async fn a_step_that_panics_ends_its_task_and_its_worker_is_free() {
    let works = handler(|mut ctx: Ctx, _input| async move {
        ctx.step("one", || done(1)).await?;
        ctx.fork("left", |mut ctx| async move {
            ctx.step("bad", || async { if true { panic!("oh") } else { Ok::<_, CtxError>(()) } }).await
        })
        .await?;
        answer("done")
    });
    let lab = Lab::start(vec![resumes("work", works)]).await;
    let key = lab.create("work").await;
    assert_eq!(code(&lab.end(&key).await), "HANDLER_PANIC");
    lab.counts("work", (0, 0)).await;
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_inside_of_a_race_reaches_both_branches_and_the_child() {
    let (door, log) = (Door::shut(), HandlerLog::new());
    let works = handler(|mut ctx: Ctx, _input| async move {
        let child = |mut ctx: Ctx| async move { ctx.subtask("part", Child::new("child", "1")).await };
        let question = |mut ctx: Ctx| async move { ctx.ask("approve", Approve).await };
        ctx.race("race", child, question).await?;
        answer("done")
    });
    let child = resumes("child", crate::common::waits_at(&door, &log));
    let lab = Lab::start(vec![resumes("work", works), child]).await;
    let (key, _) = lab.create_until_asked("work").await;
    log.hears("start 1").await;
    lab.cancel(&key).await;
    let child = lab.engine.store().children(&key).await.unwrap().remove(0);
    let child = longhaul_task::TaskKey { owner: key.owner.clone(), id: child };
    assert_eq!((lab.end(&key).await, lab.end(&child).await), (Outcome::Cancelled, Outcome::Cancelled));
    lab.counts("work", (0, 0)).await;
    lab.counts("child", (0, 0)).await;
}

//! A handler that panics ends its task, and nothing else.

use std::sync::Arc;

use crate::common::{Approve, Lab, answer, call_options, code, handler, one_worker, text_of};
use longhaul_engine::{CallEnd, Ctx, CtxError, Handler};
use longhaul_task::{Json, Outcome};

/// A handler that panics as its arguments say.
fn panics() -> Arc<dyn Handler> {
    let later = handler(|mut ctx: Ctx, input: Json| async move {
        match input.as_str().trim_matches('"') {
            "after an await" => {
                ctx.report("about to").await?;
                panic!("after an await");
            }
            "in a fork" => {
                let asks = ctx.fork("left", |mut ctx| async move { ctx.ask("approve", Approve).await });
                let panics = ctx.fork("right", |mut ctx| async move {
                    ctx.report("about to").await?;
                    assert_eq!(ctx.attempt(), 0, "in a fork");
                    Ok::<(), CtxError>(())
                });
                let (_, panicked) = tokio::join!(asks, panics);
                panicked?;
            }
            "with another payload" => std::panic::panic_any(42),
            _ => {}
        }
        answer("fine")
    });
    Arc::new(move |ctx, input: Json| {
        assert!(input.as_str() != "\"before its first await\"", "before its first await");
        later.run(ctx, input)
    })
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_fails_its_task_and_the_engine_goes_on() {
    let lab = Lab::start(vec![one_worker("work", panics())]).await;
    for (how, said) in [
        ("before its first await", "before its first await"),
        ("after an await", "after an await"),
        ("in a fork", "in a fork"),
        ("with another payload", "it gave no reason"),
    ] {
        let key = lab.create_on("work", &format!("{how:?}")).await;
        let end = lab.end(&key).await;
        assert_eq!(code(&end), "HANDLER_PANIC", "{how}");
        let Outcome::Error(fault) = &end else { unreachable!() };
        assert!(fault.message.contains(said), "{how}: {}", fault.message);
        assert_eq!(lab.read(&key).await.message.as_deref(), Some(&*fault.message));
        lab.counts("work", (0, 0)).await;
    }
    let key = lab.create_on("work", "\"not at all\"").await;
    assert_eq!(lab.end(&key).await, text_of("fine"));
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_in_an_ordinary_call_fails_that_call_alone() {
    let lab = Lab::start(vec![one_worker("work", panics())]).await;
    for how in ["before its first await", "after an await", "in a fork", "with another payload"] {
        let input = Json::from_text(format!("{how:?}"));
        let end = lab.engine.call(&"work".into(), input, call_options(&[])).await.unwrap();
        let CallEnd::Done(outcome) = end else { panic!("{how}: {end:?}") };
        assert_eq!(code(&outcome), "HANDLER_PANIC", "{how}");
    }
    let key = lab.create_on("work", "\"not at all\"").await;
    assert_eq!(lab.end(&key).await, text_of("fine"));
}

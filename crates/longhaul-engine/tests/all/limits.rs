//! Limits on forks and subtasks, each at its edge, and keys that forks cannot have.

use std::sync::Arc;

use futures_util::future::try_join_all;
use longhaul_engine::{Ctx, CtxError};
use longhaul_task::CHILD_RANGES_MAX;

use crate::common::{Lab, answer, asks, code, echo, handler, resumes, text_of, tool};
use crate::subtask::Child;

#[tokio::test(start_paused = true)]
async fn the_keys_of_nested_forks_have_a_limit() {
    let works = handler(|mut ctx: Ctx, input| async move {
        let key = "k".repeat(input.as_str().parse().unwrap());
        let outer = ctx.fork("outer", |mut ctx| async move {
            let inner =
                ctx.fork(&key, |mut ctx| async move { ctx.step("work", || async { Ok::<_, CtxError>(1) }).await });
            inner.await
        });
        outer.await?;
        answer("done")
    });
    let lab = Lab::start(vec![resumes("work", works)]).await;
    let inner = 1_024 - "outer/".len();
    let key = lab.create_on("work", &inner.to_string()).await;
    assert_eq!(lab.end(&key).await, text_of("done"));
    let key = lab.create_on("work", &(inner + 1).to_string()).await;
    assert_eq!(code(&lab.end(&key).await), "BAD_FORK");
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
async fn many_children_are_created_in_several_commits() {
    let fans_out = handler(|mut ctx: Ctx, input| async move {
        let children = 0..input.as_str().parse().unwrap();
        let results = ctx.subtasks("children", children.map(|n: u32| Child::new("echo", n.to_string()))).await?;
        answer(&results.join(","))
    });
    for (children, commits) in [(1_000, 1), (1_001, 2)] {
        let lab = Lab::start(vec![resumes("parent", Arc::clone(&fans_out)), tool("echo", echo())]).await;
        let key = lab.create_on("parent", &children.to_string()).await;
        let expected = (0..children).map(|n: u32| n.to_string()).collect::<Vec<_>>().join(",");
        assert_eq!(lab.end(&key).await, text_of(&expected));
        assert_eq!(lab.store.calls("spawn"), commits, "{children} children");
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_whose_forks_wait_for_too_many_children_stays_in_memory() {
    let waits = handler(|mut ctx: Ctx, input| async move {
        let forks: usize = input.as_str().parse().unwrap();
        let waits = (0..forks).map(|n| {
            ctx.fork(&n.to_string(), |mut ctx| async move { ctx.subtask("child", Child::new("ask", "{}")).await })
        });
        try_join_all(waits.collect::<Vec<_>>()).await?;
        answer("done")
    });
    let lab = Lab::start(vec![resumes("parent", waits), resumes("ask", asks())]).await;
    let fits = lab.create_on("parent", &CHILD_RANGES_MAX.to_string()).await;
    lab.until(&fits, "it is parked", |task| task.phase.wake_condition().is_some()).await;
    let too_many = lab.create_on("parent", &(CHILD_RANGES_MAX + 1).to_string()).await;
    let parks = lab.store.calls("park");
    lab.until(&too_many, "all children", |task| task.family.children as usize == CHILD_RANGES_MAX + 1).await;
    // Its children ask and are parked, and so many tries to park it have been refused.
    while lab.store.calls("park") < parks + CHILD_RANGES_MAX + 3 {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert!(lab.read(&too_many).await.phase.active_attempt().is_some(), "it is in memory");
}

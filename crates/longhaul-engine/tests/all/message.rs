//! The status message that readers are shown: the newest of what the handler has said.

use std::time::Duration;

use longhaul_engine::Ctx;
use longhaul_task::TaskKey;

use crate::common::{Approve, Door, Lab, answer, handler_with, must_come, resumes, tool};

/// Waits until this message is shown.
async fn shows(lab: &Lab, key: &TaskKey, message: &str) {
    must_come(message, async {
        let mut watch = lab.engine.watch(key);
        while shown(lab, key).await.as_deref() != Some(message) {
            watch.changed().await;
        }
    })
    .await;
}

async fn shown(lab: &Lab, key: &TaskKey) -> Option<String> {
    let snapshot = lab.engine.read(key).await.unwrap();
    snapshot.task.status_message(snapshot.progress.as_deref()).map(ToString::to_string)
}

#[tokio::test(start_paused = true)]
async fn a_message_is_shown_until_the_handler_says_something_newer() {
    let door = Door::shut();
    let talks = handler_with(door.clone(), |door, mut ctx: Ctx, _input| async move {
        ctx.report("phase one").await?;
        ctx.progress(1.0, None, "page one").await?;
        door.pass().await;
        ctx.ask("approve", Approve).await?;
        door.pass().await;
        ctx.report("phase two").await?;
        door.pass().await;
        ctx.progress(2.0, None, "page two").await?;
        door.pass().await;
        answer("done")
    });
    let lab = Lab::start(vec![tool("talk", talks)]).await;
    let key = lab.create("talk").await;
    shows(&lab, &key, "page one").await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    // A question and its answer are changes of the task, and say nothing newer.
    door.open();
    let question = lab.question(&key).await;
    assert_eq!(shown(&lab, &key).await.as_deref(), Some("page one"));
    tokio::time::sleep(Duration::from_millis(50)).await;
    lab.answer(&key, &question, "\"yes\"").await;
    assert_eq!(shown(&lab, &key).await.as_deref(), Some("page one"));
    door.open();
    shows(&lab, &key, "phase two").await;
    // The progress itself is kept.
    assert_eq!(lab.engine.read(&key).await.unwrap().progress.map(|progress| progress.done), Some(1.0));
    door.open();
    shows(&lab, &key, "page two").await;
    door.open();
    lab.end(&key).await;
}

/// While it is parked, what it has said last is read from the disk.
#[tokio::test(start_paused = true)]
async fn a_parked_task_shows_what_its_handler_said_last() {
    for reports_last in [false, true] {
        let talks = handler_with((), move |(), mut ctx: Ctx, _input| async move {
            ctx.report("phase one").await?;
            ctx.progress(1.0, None, "page one").await?;
            if reports_last {
                ctx.report("phase two").await?;
            }
            ctx.ask("approve", Approve).await?;
            answer("done")
        });
        let lab = Lab::start(vec![resumes("talk", talks)]).await;
        let key = lab.create("talk").await;
        lab.until(&key, "parked", |task| task.phase.wake_condition().is_some()).await;
        let expected = if reports_last { "phase two" } else { "page one" };
        assert_eq!(shown(&lab, &key).await.as_deref(), Some(expected));
    }
}

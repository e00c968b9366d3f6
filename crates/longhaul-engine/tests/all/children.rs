//! A parent ends after its children, whenever its handler returns.

use crate::common::{
    Approve, Door, HandlerLog, Lab, Machine, answer, asks, handler_with, must_come, phase, resumes, text_of,
};
use crate::subtask::Child;
use longhaul_engine::Ctx;
use longhaul_store::Store;
use longhaul_task::transition::{Create, NewChild, Settle, Spawn};
use longhaul_task::{Event, Json, NodeId, Outcome, PhaseName, Policy, Retention, TaskId, TaskKey, Timestamp, ToolRef};

async fn child(lab: &Lab, parent: &TaskKey, n: u8) -> TaskKey {
    let key = TaskKey { owner: parent.owner.clone(), id: TaskId::mint(Timestamp::from_ms(1), [n; 16]) };
    let child = Create {
        key: key.clone(),
        tool: ToolRef::new("elsewhere", "1"),
        origin: "test".into(),
        policy: Policy::default(),
        retention: Retention::Unlimited,
        claimed_by: Some(NodeId::mint([n; 16])),
        first_fence: 0,
    };
    let fence = lab.read(parent).await.fence;
    let spawn =
        Spawn { fence, children: vec![NewChild { create: child, input: Json::from_text("{}") }], entries: Vec::new() };
    lab.store.apply(parent, Event::Spawn(Box::new(spawn))).await.unwrap();
    key
}

async fn settle(lab: &Lab, key: &TaskKey) {
    let outcome = Outcome::Result { body: Json::from_text("1"), is_error: false };
    lab.store.apply(key, Event::Settle(Settle { fence: 1, outcome, entries: Vec::new() })).await.unwrap();
}

/// A task whose handler is told to return while two of its children are open, and has.
async fn returned_early(lab: &Lab, door: &Door, log: &HandlerLog) -> (TaskKey, [TaskKey; 2]) {
    let key = lab.create_on("work", "1").await;
    log.hears("start 1").await;
    let children = [child(lab, &key, 1).await, child(lab, &key, 2).await];
    door.open();
    log.hears("done 1").await;
    lab.counts("work", (0, 0)).await;
    (key, children)
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_returns_before_its_children_ends_its_task_after_them() {
    let (lab, door, log) = Lab::with_one_worker().await;
    let (key, children) = returned_early(&lab, &door, &log).await;
    for child in &children {
        assert_eq!(phase(&*lab.read(&key).await), PhaseName::Running);
        settle(&lab, child).await;
    }
    assert_eq!(lab.end(&key).await, text_of("done"), "what the handler returned is not lost");
    lab.counts("work", (0, 0)).await;
}

#[tokio::test(start_paused = true)]
async fn a_parent_that_waits_for_its_children_gives_its_worker_to_others() {
    let (lab, door, log) = Lab::with_one_worker().await;
    let (key, children) = returned_early(&lab, &door, &log).await;
    door.open();
    let next = lab.create_on("work", "2").await;
    assert_eq!(lab.end(&next).await, text_of("done"));
    for child in &children {
        settle(&lab, child).await;
    }
    lab.end(&key).await;
    lab.counts("work", (0, 0)).await;
}

#[tokio::test(start_paused = true)]
async fn a_parent_that_waits_for_its_children_can_be_cancelled_with_them() {
    let (lab, door, log) = Lab::with_one_worker().await;
    let (key, children) = returned_early(&lab, &door, &log).await;
    lab.cancel(&key).await;
    for task in [&key, &children[0], &children[1]] {
        assert_eq!(lab.end(task).await, Outcome::Cancelled);
    }
    lab.counts("work", (0, 0)).await;
    must_come("the end of the shutdown", lab.engine.shut_down()).await;
}

/// The handler returns while a child and a question of a fork that it has given up are open.
#[test]
fn the_result_of_a_handler_that_returned_before_its_children_survives_a_crash() {
    let mut machine = Machine::new();
    let log = HandlerLog::new();
    let tools = || {
        let parent = handler_with(log.clone(), |log, mut ctx: Ctx, _input| async move {
            log.say("ran");
            ctx.start_subtasks("part", [Child::new("asks", "1")]).await?;
            let asked = ctx.fork("asks", |mut ctx| async move { ctx.ask("approve", Approve).await });
            tokio::select! {
                _ = asked => answer("answered"),
                () = tokio::time::sleep(std::time::Duration::from_millis(100)) => answer("early"),
            }
        });
        vec![resumes("parent", parent), resumes("asks", asks())]
    };
    let (key, child) = machine.run_engine(tools(), async |lab| {
        let key = lab.create("parent").await;
        lab.until(&key, "it waits for its child without a handler", |task| phase(task) == PhaseName::Parked).await;
        lab.counts("parent", (0, 0)).await;
        let child = lab.store.children(&key).await.unwrap().remove(0);
        (key.clone(), TaskKey { owner: key.owner, id: child })
    });
    machine.run_engine(tools(), async |lab| {
        let question = lab.question(&child).await;
        lab.answer(&child, &question, "\"yes\"").await;
        assert_eq!(lab.end(&key).await, text_of("early"));
    });
    assert_eq!(log.said(), ["ran"], "what it returned was stored");
}

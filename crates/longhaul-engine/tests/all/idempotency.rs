//! A creation that is repeated under its idempotency key takes nothing: no worker, no place in the queue, no count.

use futures_util::future::join_all;
use longhaul_engine::{EngineError, EngineLimits, EngineTool, NewCall, ToolLimits};
use longhaul_store::{CreateResult, IdempotencyKey, ListQuery, Store, StoreError};

use crate::common::{Door, HandlerLog, Lab, ada, call, one_worker, tool, waits_at};

fn request(digest: u8) -> IdempotencyKey {
    IdempotencyKey { key: "order 7".into(), digest: [digest; 32] }
}

fn keyed(tool: &str, digest: u8) -> NewCall {
    NewCall { idempotency: Some(Box::new(request(digest))), ..call(tool) }
}

async fn tasks(lab: &Lab) -> usize {
    let query = ListQuery { owner: Some(ada()), after: None, limit: 1_000 };
    lab.store.inner().list(&query).await.unwrap().tasks.len()
}

#[tokio::test(start_paused = true)]
async fn a_repeated_creation_returns_the_task_in_every_phase_and_runs_it_once() {
    let (door, log) = (Door::shut(), HandlerLog::new());
    let lab = Lab::start(vec![one_worker("work", waits_at(&door, &log))]).await;
    let first = lab.engine.create(keyed("work", 1)).await.unwrap();
    assert!(!first.existed);
    let key = first.task.key.clone();
    for _ in 0..3 {
        let CreateResult { task, existed } = lab.engine.create(keyed("work", 1)).await.unwrap();
        assert!(existed);
        assert_eq!(task, lab.read(&key).await);
    }
    assert_eq!(lab.load("work"), (1, 0));
    door.open_wide();
    lab.end(&key).await;
    let again = lab.engine.create(keyed("work", 1)).await.unwrap();
    assert!(again.existed);
    assert_eq!(again.task, lab.read(&key).await);
    assert_eq!(log.said(), ["start {}", "done {}"]);
    lab.counts("work", (0, 0)).await;
}

/// The task exists, so the repeated creation needs neither a worker nor a place in the queue.
#[tokio::test(start_paused = true)]
async fn a_repeated_creation_is_answered_where_a_new_one_has_no_room() {
    let (door, log) = (Door::shut(), HandlerLog::new());
    let limits = ToolLimits::default().running_max(1).queued_max(0);
    let tools =
        vec![EngineTool { limits, ..tool("work", waits_at(&door, &log)) }, tool("other", waits_at(&door, &log))];
    let lab = Lab::with(tools, EngineLimits::default().open_per_owner_max(1)).await;
    let first = lab.engine.create(keyed("work", 1)).await.unwrap();
    assert!(matches!(lab.engine.create(call("other")).await, Err(EngineError::TooManyOpen { .. })));
    assert_eq!(lab.engine.create(keyed("work", 1)).await.unwrap().task.key, first.task.key);
    lab.engine.drain();
    assert_eq!(lab.engine.create(keyed("work", 1)).await.unwrap().task.key, first.task.key);
}

/// All of them look for the task before it is created.
#[tokio::test(start_paused = true)]
async fn of_creations_at_once_one_counts_and_the_others_give_everything_back() {
    let (door, log) = (Door::shut(), HandlerLog::new());
    let limits = ToolLimits::default().running_max(3);
    let lab = Lab::start(vec![EngineTool { limits, ..tool("work", waits_at(&door, &log)) }]).await;
    let creation = lab.store.hold("create");
    let calls: Vec<_> = (0..10)
        .map(|_| {
            let engine = lab.engine.clone();
            tokio::spawn(async move { engine.create(keyed("work", 1)).await.unwrap() })
        })
        .collect();
    for _ in 0..10 {
        creation.carried_out().await;
    }
    for _ in 0..10 {
        creation.answer_one();
    }
    let created: Vec<_> = join_all(calls).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(created.iter().filter(|created| !created.existed).count(), 1);
    assert!(created.iter().all(|one| one.task.key == created[0].task.key));
    assert_eq!(lab.engine.open(&ada()), 1);
    lab.counts("work", (1, 0)).await;
    assert_eq!((lab.budget("queue").used, lab.engine.attempts()), (0, (1, 1)));
    assert_eq!(tasks(&lab).await, 1);
}

#[tokio::test(start_paused = true)]
async fn another_request_under_the_key_is_refused_and_counts_no_more() {
    let (door, log) = (Door::shut(), HandlerLog::new());
    let lab = Lab::start(vec![tool("work", waits_at(&door, &log))]).await;
    lab.engine.create(keyed("work", 1)).await.unwrap();
    let refused = EngineError::Store(StoreError::IdempotencyKeyUsed);
    assert_eq!(lab.engine.create(keyed("work", 2)).await.unwrap_err(), refused);
    assert_eq!(refused.code(), "IDEMPOTENCY_KEY_USED");
    assert_eq!(lab.engine.open(&ada()), 1);
    assert_eq!(lab.load("work"), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_creation_in_doubt_is_resolved_by_its_key() {
    let (door, log) = (Door::shut(), HandlerLog::new());
    let lab = Lab::start(vec![tool("work", waits_at(&door, &log))]).await;
    // The creation is written, and the response to it is lost.
    lab.store.doubt("create", 1);
    let first = lab.engine.create(keyed("work", 1)).await.unwrap();
    assert!(!first.existed);
    // Both requests look for the key before either is written, and the responses to both commits are lost.
    let creation = lab.store.hold("create");
    for (key, digests) in [("same", [1, 1]), ("other", [1, 2])] {
        let calls = digests.map(|digest| {
            let request = IdempotencyKey { key: key.into(), digest: [digest; 32] };
            let (engine, call) = (lab.engine.clone(), NewCall { idempotency: Some(Box::new(request)), ..call("work") });
            tokio::spawn(async move { engine.create(call).await })
        });
        for _ in 0..2 {
            creation.carried_out().await;
        }
        lab.store.doubt("create", 2);
        for _ in 0..2 {
            creation.answer_one();
        }
        let answers: Vec<_> = join_all(calls).await.into_iter().map(Result::unwrap).collect();
        let made = answers.iter().filter(|answer| answer.as_ref().is_ok_and(|created| !created.existed)).count();
        assert_eq!(made, 1, "{answers:?}");
        let second = answers.iter().find(|answer| !answer.as_ref().is_ok_and(|created| !created.existed)).unwrap();
        match key {
            "same" => assert!(second.as_ref().unwrap().existed),
            _ => assert_eq!(*second.as_ref().unwrap_err(), EngineError::Store(StoreError::IdempotencyKeyUsed)),
        }
    }
    assert_eq!(tasks(&lab).await, 3);
    lab.counts("work", (3, 0)).await;
}

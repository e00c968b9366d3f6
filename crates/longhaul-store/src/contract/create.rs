//! Creation is durable, happens once, and is visible to the owner only.

use std::sync::Arc;

use longhaul_task::transition::{self, AnswerQuestion, Cancel, Claim, Delete, Expire, Overdue, Wake};
use longhaul_task::{Answer, Event, Policy, QuestionKey, Retention, Timestamp, TransitionError};

use super::Subject;
use super::kit::*;
use crate::{NewTask, StoreError};

pub async fn a_created_task_reads_back_the_same<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    for (n, new) in (0..).zip([queued(key(0)), claimed(key(1)), resuming(key(2))]) {
        let expected = transition::create(&new.create, START);
        assert_eq!(*create(&*store, new).await, expected);
        assert_eq!(*read(&*store, &key(n)).await, expected);
    }
}

pub async fn a_task_created_for_a_node_runs_there_under_its_first_fence<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    let task = create(&*store, claimed(key(1))).await;
    assert_eq!((task.fence, task.attempt), (1, 1));
    assert_eq!(task.phase.active_attempt().map(|run| run.node), Some(node(1)));
    assert!(claim(&*store, node(2), 10).await.is_empty());
}

pub async fn an_acknowledged_write_survives_a_restart<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    let mut created = Vec::new();
    for n in 0..50 {
        created.push(create(&*store, queued(key(n))).await);
    }
    let (_subject, store) = reopened(subject, store).await;
    for task in created {
        assert_eq!(read(&*store, &task.key).await, task);
    }
    let claimed = store.claim(claim_request(node(2), tool(), 1)).await.unwrap();
    assert_eq!(claimed[0].input, queued(key(0)).input);
}

/// A backend may store small texts in another way than large ones.
pub async fn arguments_and_results_of_every_size_read_back_the_same<S: Subject>() {
    const SIZES: [usize; 8] = [2, 100, 319, 320, 321, 1_000, 5_000, 100_000];
    let (subject, store) = empty::<S>().await;
    let text = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));
    for (n, bytes) in (0..).zip(SIZES) {
        create(&*store, NewTask { input: json(&text(bytes)), ..queued(key(n)) }).await;
    }
    let (subject, store) = reopened(subject, store).await;
    for claimed in store.claim(claim_request(node(2), tool(), SIZES.len())).await.unwrap() {
        let (key, fence) = (&claimed.task.key, claimed.task.fence);
        apply(&*store, key, settle(fence, claimed.input.as_str())).await;
    }
    let (_subject, store) = reopened(subject, store).await;
    for (n, bytes) in (0..).zip(SIZES) {
        assert_eq!(read(&*store, &key(n)).await.phase.outcome(), Some(&answer(&text(bytes))), "{bytes} bytes");
    }
}

pub async fn an_owner_cannot_use_an_id_twice<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    let first = create(&*store, queued(key(1))).await;
    assert_eq!(refused(store.create(claimed(key(1))).await), TransitionError::DuplicateId);
    assert_eq!(read(&*store, &key(1)).await, first);
    let (_subject, store) = reopened(subject, store).await;
    assert_eq!(refused(store.create(claimed(key(1))).await), TransitionError::DuplicateId);
}

pub async fn of_many_concurrent_creations_of_one_id_one_succeeds<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    let calls = (0..32).map(|_| {
        let store = Arc::clone(&store);
        async move { store.create(queued(key(1))).await }
    });
    assert_eq!(succeeded(&all(calls).await), 1);
}

pub async fn two_owners_can_use_the_same_id<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    let of_ada = create(&*store, queued(key_of("ada", 1))).await;
    let of_grace = create(&*store, claimed(key_of("grace", 1))).await;
    assert_eq!(read(&*store, &of_ada.key).await, of_ada);
    assert_eq!(read(&*store, &of_grace.key).await, of_grace);
    apply(&*store, &of_grace.key, cancel()).await;
    assert_eq!(read(&*store, &of_ada.key).await, of_ada);
}

pub async fn a_foreign_task_and_an_unknown_one_give_the_same_error<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    let task = create(&*store, claimed(key_of("ada", 1))).await;
    apply(&*store, &task.key, spawn(1, queued(key_of("ada", 2)))).await;
    let events = [
        Event::Claim(Claim { node: node(1) }),
        report(1, "mine"),
        ask(1, 0),
        Event::Answer(AnswerQuestion { key: QuestionKey::from_text("approve-1"), answer: Answer::Given(json("1")) }),
        spawn(1, queued(key_of("mallory", 9))),
        Event::Wake(Wake { fence: 1 }),
        release(1, 0),
        settle(1, "{}"),
        Event::Cancel(Cancel::default()),
        lose(node(1), 1),
        Event::Overdue(Overdue),
        Event::Expire(Expire),
        Event::Delete(Delete),
    ];
    for missing in [key_of("mallory", 1), key_of("ada", 77)] {
        assert_eq!(store.read(&missing).await.unwrap_err(), StoreError::NotFound);
        for event in events.clone() {
            assert_eq!(store.apply(&missing, event).await.unwrap_err(), StoreError::NotFound);
        }
        assert_eq!(record(&*store, &missing, 1, step("", 0, "1")).await, Err(StoreError::NotFound));
        assert_eq!(store.journal(&missing, 1).await.unwrap(), []);
        assert_eq!(store.children(&missing).await.unwrap(), []);
        store.progress(&missing, 1, progress(1.0)).await.unwrap();
    }
    let snapshot = store.read(&task.key).await.unwrap();
    assert_eq!((snapshot.task.revision, snapshot.progress), (2, None));
}

pub async fn an_id_can_be_used_again_after_its_family_was_deleted<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    create(&*store, queued(key(1))).await;
    apply(&*store, &key(1), cancel()).await;
    apply(&*store, &key(1), Event::Delete(Delete)).await;
    let again = create(&*store, queued(key(1))).await;
    assert_eq!(again.revision, 1);
    assert_eq!(read(&*store, &key(1)).await, again);
}

pub async fn an_attempt_of_a_deleted_task_cannot_write_to_a_new_one_with_its_id<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    let first = create(&*store, claimed(key(1))).await;
    apply(&*store, &key(1), cancel()).await;
    apply(&*store, &key(1), Event::Delete(Delete)).await;
    let mut new = claimed(key(1));
    new.create.first_fence = 1 << 40;
    let second = create(&*store, new).await;
    assert_eq!(refused(store.apply(&key(1), settle(first.fence, "\"late\"")).await), TransitionError::Fenced);
    assert_eq!(record(&*store, &key(1), first.fence, step("", 0, "1")).await, Err(TransitionError::Fenced.into()));
    assert_eq!(read(&*store, &key(1)).await, second);
    apply(&*store, &key(1), settle(second.fence, "1")).await;
}

pub async fn names_and_payloads_read_back_as_the_same_bytes<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    let odd = "näme 'with' \"quotes\" %_\\ and 🦀 -- ;";
    let body = format!("{{\"text\":\"{}\"}}", "ü\\u0000\\n".repeat(100_000));
    let mut new = queued(longhaul_task::TaskKey { owner: owner(odd), id: longhaul_task::TaskId::parse(odd).unwrap() });
    new.create.tool = longhaul_task::ToolRef::new(odd, odd);
    new.create.origin = odd.into();
    new.input = json(&body);
    let key = new.create.key.clone();
    create(&*store, new).await;
    let claim = claim_request(node(1), longhaul_task::ToolRef::new(odd, odd), 1);
    let claimed = store.claim(claim).await.unwrap().remove(0);
    assert_eq!(claimed.input.as_str(), body);
    let settled = apply(&*store, &key, settle(claimed.task.fence, &body)).await;
    let (_subject, store) = reopened(subject, store).await;
    assert_eq!(read(&*store, &key).await, settled);
}

pub async fn unlimited_values_read_back_the_same<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    let mut new = queued(key(1));
    let never = u64::MAX;
    new.create.policy =
        Policy { running_ms_max: never, life_ms_max: never, backoff_ms_max: never, ..Policy::default() };
    new.create.retention = Retention::FromEnd(never);
    create(&*store, new).await;
    let fence = claim(&*store, node(1), 1).await[0].fence;
    let task = apply(&*store, &key(1), release(fence, never)).await;
    assert_eq!(task.phase.not_before(), Some(Timestamp::MAX));
    let (_subject, store) = reopened(subject, store).await;
    assert_eq!(read(&*store, &key(1)).await, task);
}

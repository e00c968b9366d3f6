//! Events are applied one after another, completely or not at all, and only with the current fence.

use std::sync::Arc;

use longhaul_task::transition::{AnswerQuestion, Settle, Wake};
use longhaul_task::{Answer, Event, Outcome, QuestionKey, Retention, TaskError, TransitionError};

use super::Subject;
use super::kit::*;
use crate::{ListQuery, StoreError};

pub async fn every_phase_reads_back_the_same_after_a_restart<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    let store_ref = &*store;
    let fault = |data: Option<&str>| {
        Outcome::Error(TaskError { code: Some(-32602), message: "no \"good\"".into(), data: data.map(json) })
    };
    let settled = |outcome| Some(Event::Settle(Settle { fence: 1, outcome, entries: Vec::new() }));
    let changes = [
        None,
        Some(report(1, "half of it")),
        Some(ask(1, 0)),
        Some(release(1, 5_000)),
        Some(park(1, Some(9))),
        Some(park(1, Some(u64::MAX))),
        settled(answer("{\"content\":[]}")),
        settled(Outcome::Result { body: json("{\"isError\":true}"), is_error: true }),
        settled(fault(None)),
        settled(fault(Some("{\"code\":\"X\"}"))),
        settled(Outcome::Error(TaskError::panic("a fault without a code"))),
        Some(cancel()),
    ];
    let kept = [Retention::Unlimited, Retention::FromEnd(5), Retention::FromCreation(7)];
    for (n, change) in (0..).zip(changes) {
        let mut new = resuming(key(n));
        new.create.retention = kept[n as usize % kept.len()];
        create(store_ref, new).await;
        if let Some(change) = change {
            subject.set_time(START.plus_ms(u64::from(n) + 1)).await;
            apply(store_ref, &key(n), change).await;
        }
    }
    // Waiting without a handler in memory: for an answer, also for a timer, also for a child, and in the queue.
    let first = QuestionKey::from_text("approve-1");
    let rests = [park_for_answer(1, &first), park(1, Some(9)), park_for(1, 0, 0), release(1, 7)];
    for (n, rest) in (100..).zip(rests) {
        create(store_ref, resuming(key(n))).await;
        apply(store_ref, &key(n), ask(1, 0)).await;
        apply(store_ref, &key(n), ask(1, 1)).await;
        apply(store_ref, &key(n), spawn(1, queued(key(n + 100)))).await;
        apply(store_ref, &key(n), rest).await;
    }
    create(store_ref, resuming(key(300))).await;
    apply(store_ref, &key(300), spawn(1, queued(key(301)))).await;
    apply(store_ref, &key(300), park_for(1, 0, 0)).await;

    let everything = ListQuery { owner: None, after: None, limit: 100 };
    let tasks = |page: crate::TaskPage| page.tasks.into_iter().map(|listed| listed.task).collect::<Vec<_>>();
    let before = tasks(store.list(&everything).await.unwrap());
    assert_eq!(before.len(), 22);
    for task in &before {
        assert_eq!(read(&*store, &task.key).await, *task);
    }
    let (_subject, store) = reopened(subject, store).await;
    assert_eq!(tasks(store.list(&everything).await.unwrap()), before);
    for task in before {
        assert_eq!(read(&*store, &task.key).await, task);
    }
}

pub async fn each_change_raises_the_revision_by_one<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    create(&*store, claimed(key(1))).await;
    for expected in 2..10 {
        assert_eq!(apply(&*store, &key(1), report(1, "on")).await.revision, expected);
        assert_eq!(read(&*store, &key(1)).await.revision, expected);
    }
}

pub async fn concurrent_events_are_applied_one_after_another<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    create(&*store, claimed(key(1))).await;
    let calls = (0..64).map(|n| {
        let store = Arc::clone(&store);
        async move { store.apply(&key(1), report(1, &n.to_string())).await.unwrap().task.revision }
    });
    let mut revisions = all(calls).await;
    revisions.sort_unstable();
    assert_eq!(revisions, (2..66).collect::<Vec<_>>());
}

pub async fn a_late_attempt_cannot_overwrite_the_winner<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    create(&*store, resuming(key(1))).await;
    apply(&*store, &key(1), release(1, 0)).await;
    let winner = claim(&*store, node(2), 1).await.remove(0);
    let late = [
        report(1, "late"),
        ask(1, 0),
        spawn(1, queued(key(2))),
        release(1, 0),
        park(1, Some(0)),
        lose(node(1), 1),
        settle(1, "\"late\""),
    ];
    for event in late {
        assert_eq!(refused(store.apply(&key(1), event).await), TransitionError::Fenced);
    }
    assert_eq!(record(&*store, &key(1), 1, step("", 0, "1")).await, Err(TransitionError::Fenced.into()));
    assert_eq!(read(&*store, &key(1)).await, winner);
    assert_eq!(store.read(&key(2)).await.unwrap_err(), StoreError::NotFound);
    assert_eq!(store.journal(&key(1), 0).await.unwrap(), []);
    apply(&*store, &key(1), settle(winner.fence, "\"won\"")).await;
    assert_eq!(read(&*store, &key(1)).await.phase.outcome(), Some(&answer("\"won\"")));
}

pub async fn a_settled_task_never_changes_again<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    create(&*store, claimed(key(1))).await;
    let settled = apply(&*store, &key(1), settle(1, "1")).await;
    let question = QuestionKey::from_text("approve-1");
    let more = [
        cancel(),
        settle(1, "2"),
        report(1, "more"),
        ask(1, 0),
        Event::Answer(AnswerQuestion { key: question, answer: Answer::Given(json("1")) }),
    ];
    for event in more {
        assert_eq!(refused(store.apply(&key(1), event).await), TransitionError::Settled);
    }
    assert_eq!(record(&*store, &key(1), 1, step("", 0, "1")).await, Err(TransitionError::Settled.into()));
    assert_eq!(read(&*store, &key(1)).await, settled);
}

pub async fn a_refused_event_does_not_make_others_fail<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    for n in 0..64 {
        create(&*store, claimed(key(n))).await;
    }
    // Every second event has a wrong fence.
    let calls = (0..64).map(|n| {
        let store = Arc::clone(&store);
        async move { store.apply(&key(n), settle(1 + u64::from(n % 2), "1")).await }
    });
    for (n, result) in (0..).zip(all(calls).await) {
        assert_eq!(result.is_ok(), n % 2 == 0);
        assert_eq!(read(&*store, &key(n)).await.is_settled(), n % 2 == 0);
    }
}

pub async fn of_many_concurrent_ends_one_wins_and_every_reader_sees_it<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    create(&*store, claimed(key(1))).await;
    let calls = (0..32).map(|n: u32| {
        let store = Arc::clone(&store);
        async move { store.apply(&key(1), settle(1, &n.to_string())).await }
    });
    let results = all(calls).await;
    assert_eq!(succeeded(&results), 1);
    let won = results.into_iter().find_map(Result::ok).unwrap().task;
    assert_eq!(read(&*store, &key(1)).await, won);
}

pub async fn a_late_wake_does_not_wake_a_task_that_was_parked_again<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    create(&*store, resuming(key(1))).await;
    let nap = apply(&*store, &key(1), park(1, Some(0))).await;
    apply(&*store, &key(1), Event::Wake(Wake { fence: nap.fence })).await;
    let again = claim(&*store, node(1), 1).await.remove(0);
    let asleep = apply(&*store, &key(1), park(again.fence, Some(0))).await;
    assert_eq!(refused(store.apply(&key(1), Event::Wake(Wake { fence: nap.fence })).await), TransitionError::Fenced);
    assert_eq!(read(&*store, &key(1)).await, asleep);
}

pub async fn an_answered_question_stays_closed<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    create(&*store, claimed(key(1))).await;
    let asked = apply(&*store, &key(1), ask(1, 0)).await;
    let question = asked.phase.questions().unwrap().iter().next().unwrap().key.clone();
    let calls = (0..8).map(|n: u32| {
        let (store, question) = (Arc::clone(&store), question.clone());
        let body = json(&n.to_string());
        async move {
            store.apply(&key(1), Event::Answer(AnswerQuestion { key: question, answer: Answer::Given(body) })).await
        }
    });
    assert_eq!(succeeded(&all(calls).await), 1);
    let again = apply(&*store, &key(1), ask(1, 1)).await;
    assert_ne!(again.phase.questions().unwrap().iter().next().unwrap().key, question);
}

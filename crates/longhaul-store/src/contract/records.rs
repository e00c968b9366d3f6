//! A recorded step is done.

use std::sync::Arc;

use longhaul_task::transition::Answer;
use longhaul_task::{Event, OnCrash, QuestionKey, Record, Refused};

use super::Subject;
use super::kit::*;
use crate::Store;

/// Asks at that place and says under which key.
async fn asked(store: &dyn Store, fence: u64, seq: u32) -> QuestionKey {
    let task = apply(store, &key(1), ask(fence, seq)).await;
    task.phase.questions().unwrap().iter().last().unwrap().key.clone()
}

pub async fn a_record_comes_back_as_it_was<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    create(&*store, claimed(key(1))).await;
    let new = record("", 0, "{\"a\":\"ü\"}");
    assert_eq!(store.record(&key(1), 1, new.clone()).await.unwrap(), new);
    let (_subject, store) = reopened(subject, store).await;
    assert_eq!(store.records(&key(1), 1).await.unwrap(), [record("", 0, "{\"a\":\"ü\"}")]);
}

pub async fn a_place_that_is_taken_keeps_what_it_has<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    create(&*store, claimed(key(1))).await;
    store.record(&key(1), 1, record("", 0, "\"first\"")).await.unwrap();
    let second = Record { key: "another".into(), digest: 1, ..record("", 0, "\"second\"") };
    assert_eq!(store.record(&key(1), 1, second).await.unwrap(), record("", 0, "\"first\""), "whoever is late is told");
    // Nor does a question take it.
    assert!(matches!(refused(store.apply(&key(1), ask(1, 0)).await), Refused::Changed(_)));
    assert_eq!(store.records(&key(1), 1).await.unwrap(), [record("", 0, "\"first\"")]);
}

pub async fn of_many_who_record_at_one_place_one_does<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    create(&*store, claimed(key(1))).await;
    let calls = (0..16).map(|n: u32| {
        let store = Arc::clone(&store);
        async move { store.record(&key(1), 1, record("", 0, &n.to_string())).await.unwrap() }
    });
    let stands = all(calls).await;
    let first = store.records(&key(1), 1).await.unwrap();
    assert_eq!(first.len(), 1);
    assert!(stands.iter().all(|stands| *stands == first[0]), "everybody gets what stands there");
    assert_eq!(store.records(&key(1), 1).await.unwrap(), first);
}

pub async fn records_come_fork_by_fork_in_their_order<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    create(&*store, claimed(key(1))).await;
    let places = [("b", 0), ("", 10), ("a", 1), ("", 2), ("a", 0), ("", 0)];
    for (fork, seq) in places {
        store.record(&key(1), 1, record(fork, seq, "1")).await.unwrap();
    }
    let order: Vec<_> = store.records(&key(1), 1).await.unwrap().into_iter().map(|record| record.place).collect();
    let expected = [("", 0), ("", 2), ("", 10), ("a", 0), ("a", 1), ("b", 0)];
    assert_eq!(order, expected.map(|(fork, seq)| place(fork, seq)));
}

pub async fn a_record_makes_no_revision<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    let task = create(&*store, claimed(key(1))).await;
    store.record(&key(1), 1, record("", 0, "1")).await.unwrap();
    assert_eq!(read(&*store, &key(1)).await, task);
}

pub async fn attempts_that_start_over_have_a_shelf_each_and_those_that_resume_share_one<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    for (n, on_crash, expected) in [(1, OnCrash::Retry, 0), (2, OnCrash::Resume, 1)] {
        let mut new = claimed(key(n));
        new.create.policy.on_crash = on_crash;
        let first = create(&*store, new).await;
        store.record(&key(n), first.fence, record("", 0, "1")).await.unwrap();
        apply(&*store, &key(n), release(first.fence, 0)).await;
        let second = claim(&*store, node(2), 1).await.remove(0);
        assert_eq!(store.records(&key(n), second.epoch()).await.unwrap().len(), expected);
    }
}

pub async fn an_answer_reaches_its_record<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    create(&*store, claimed(key(1))).await;
    let first = asked(&*store, 1, 0).await;
    let second = asked(&*store, 1, 1).await;
    let outputs = async |store: &dyn Store| {
        let records = store.records(&key(1), 1).await.unwrap();
        records.into_iter().map(|record| record.output).collect::<Vec<_>>()
    };
    assert_eq!(outputs(&*store).await, [None, None]);
    apply(&*store, &key(1), Event::Answer(Answer { key: second, body: json("\"two\"") })).await;
    assert_eq!(outputs(&*store).await, [None, Some(json("\"two\""))]);
    let running = apply(&*store, &key(1), Event::Answer(Answer { key: first, body: json("\"one\"") })).await;
    assert!(running.phase.questions().is_none());
    let (_subject, store) = reopened(subject, store).await;
    assert_eq!(outputs(&*store).await, [Some(json("\"one\"")), Some(json("\"two\""))]);
}

pub async fn an_answer_finds_a_task_that_gave_up_its_memory<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    create(&*store, resuming(key(1))).await;
    let question = asked(&*store, 1, 0).await;
    apply(&*store, &key(1), park(1, None)).await;
    let (_subject, store) = reopened(subject, store).await;
    apply(&*store, &key(1), Event::Answer(Answer { key: question, body: json("\"yes\"") })).await;
    let resumed = claim(&*store, node(2), 1).await.remove(0);
    let records = store.records(&key(1), resumed.epoch()).await.unwrap();
    assert_eq!(records[0].output, Some(json("\"yes\"")));
}

pub async fn a_resumed_attempt_finds_its_question_under_the_same_key<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    create(&*store, resuming(key(1))).await;
    let first = asked(&*store, 1, 0).await;
    // Its node dies with the question open, and the next attempt comes to the same place.
    apply(&*store, &key(1), lose(node(1), 1)).await;
    let (subject, store) = reopened(subject, store).await;
    subject.set_time(next_queued(&*store).await.unwrap()).await;
    let resumed = claim(&*store, node(2), 1).await.remove(0);
    let again = store.apply(&key(1), ask(resumed.fence, 0)).await;
    assert_eq!(refused(again), Refused::AskedAlready(first.clone()));
    assert_eq!(read(&*store, &key(1)).await, resumed, "nothing was asked twice");
    apply(&*store, &key(1), Event::Answer(Answer { key: first, body: json("\"yes\"") })).await;
    let records = store.records(&key(1), resumed.epoch()).await.unwrap();
    assert_eq!((records.len(), &records[0].output), (1, &Some(json("\"yes\""))));
}

pub async fn an_answer_that_comes_between_two_attempts_is_kept_for_the_next<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    create(&*store, resuming(key(1))).await;
    let question = asked(&*store, 1, 0).await;
    apply(&*store, &key(1), lose(node(1), 1)).await;
    apply(&*store, &key(1), Event::Answer(Answer { key: question.clone(), body: json("\"yes\"") })).await;
    subject.set_time(next_queued(&*store).await.unwrap()).await;
    let resumed = claim(&*store, node(2), 1).await.remove(0);
    // It comes to the place: the question was asked, and what was answered is on record.
    assert_eq!(refused(store.apply(&key(1), ask(resumed.fence, 0)).await), Refused::AskedAlready(question));
    let records = store.records(&key(1), resumed.epoch()).await.unwrap();
    assert_eq!((records.len(), &records[0].output), (1, &Some(json("\"yes\""))));
    assert_eq!(read(&*store, &key(1)).await, resumed);
}

pub async fn a_question_where_something_else_is_on_record_is_refused<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    let task = create(&*store, resuming(key(1))).await;
    store.record(&key(1), 1, record("", 0, "1")).await.unwrap();
    assert!(matches!(refused(store.apply(&key(1), ask(1, 0)).await), Refused::Changed(_)));
    assert_eq!(read(&*store, &key(1)).await, task);
}

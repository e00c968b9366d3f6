//! Journal entries are written at most once and are never replaced.

use std::sync::Arc;

use longhaul_task::transition::AnswerQuestion;
use longhaul_task::{Event, JournalEntry, OnCrash, QuestionKey, TransitionError};

use super::Subject;
use super::kit::*;
use crate::Store;

/// Asks a question at a position of the journal and returns its key.
async fn asked(store: &dyn Store, fence: u64, seq: u32) -> QuestionKey {
    let task = apply(store, &key(1), ask(fence, seq)).await;
    task.phase.questions().unwrap().iter().last().unwrap().key.clone()
}

pub async fn a_journal_entry_reads_back_the_same<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    create(&*store, claimed(key(1))).await;
    let new = record("", 0, "{\"a\":\"ü\"}");
    assert_eq!(store.record(&key(1), 1, new.clone()).await.unwrap(), new);
    let (_subject, store) = reopened(subject, store).await;
    assert_eq!(store.records(&key(1), 1).await.unwrap(), [record("", 0, "{\"a\":\"ü\"}")]);
}

pub async fn an_existing_entry_is_not_replaced<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    create(&*store, claimed(key(1))).await;
    store.record(&key(1), 1, record("", 0, "\"first\"")).await.unwrap();
    let second = JournalEntry { key: "another".into(), digest: 1, ..record("", 0, "\"second\"") };
    assert_eq!(
        store.record(&key(1), 1, second).await.unwrap(),
        record("", 0, "\"first\""),
        "the later call gets the existing entry"
    );
    // A question does not replace it either.
    assert!(matches!(refused(store.apply(&key(1), ask(1, 0)).await), TransitionError::HandlerChanged(_)));
    assert_eq!(store.records(&key(1), 1).await.unwrap(), [record("", 0, "\"first\"")]);
}

pub async fn of_many_concurrent_entries_at_one_position_one_is_kept<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    create(&*store, claimed(key(1))).await;
    let calls = (0..16).map(|n: u32| {
        let store = Arc::clone(&store);
        async move { store.record(&key(1), 1, record("", 0, &n.to_string())).await.unwrap() }
    });
    let entries = all(calls).await;
    let first = store.records(&key(1), 1).await.unwrap();
    assert_eq!(first.len(), 1);
    assert!(entries.iter().all(|entry| *entry == first[0]), "every call gets the entry that was kept");
    assert_eq!(store.records(&key(1), 1).await.unwrap(), first);
}

pub async fn entries_are_ordered_by_fork_and_position<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    create(&*store, claimed(key(1))).await;
    let places = [("b", 0), ("", 10), ("a", 1), ("", 2), ("a", 0), ("", 0)];
    for (fork, seq) in places {
        store.record(&key(1), 1, record(fork, seq, "1")).await.unwrap();
    }
    let order: Vec<_> = store.records(&key(1), 1).await.unwrap().into_iter().map(|record| record.position).collect();
    let expected = [("", 0), ("", 2), ("", 10), ("a", 0), ("a", 1), ("b", 0)];
    assert_eq!(order, expected.map(|(fork, seq)| position(fork, seq)));
}

pub async fn a_journal_entry_does_not_raise_the_revision<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    let task = create(&*store, claimed(key(1))).await;
    store.record(&key(1), 1, record("", 0, "1")).await.unwrap();
    assert_eq!(read(&*store, &key(1)).await, task);
}

pub async fn attempts_share_a_journal_only_if_they_resume<S: Subject>() {
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

pub async fn an_answer_is_written_to_the_entry_of_its_question<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    create(&*store, claimed(key(1))).await;
    let first = asked(&*store, 1, 0).await;
    let second = asked(&*store, 1, 1).await;
    let outputs = async |store: &dyn Store| {
        let records = store.records(&key(1), 1).await.unwrap();
        records.into_iter().map(|record| record.output).collect::<Vec<_>>()
    };
    assert_eq!(outputs(&*store).await, [None, None]);
    apply(&*store, &key(1), Event::Answer(AnswerQuestion { key: second, body: json("\"two\"") })).await;
    assert_eq!(outputs(&*store).await, [None, Some(json("\"two\""))]);
    let running = apply(&*store, &key(1), Event::Answer(AnswerQuestion { key: first, body: json("\"one\"") })).await;
    assert!(running.phase.questions().is_none());
    let (_subject, store) = reopened(subject, store).await;
    assert_eq!(outputs(&*store).await, [Some(json("\"one\"")), Some(json("\"two\""))]);
}

pub async fn an_answer_is_recorded_for_a_parked_task<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    create(&*store, resuming(key(1))).await;
    let question = asked(&*store, 1, 0).await;
    apply(&*store, &key(1), park(1, None)).await;
    let (_subject, store) = reopened(subject, store).await;
    apply(&*store, &key(1), Event::Answer(AnswerQuestion { key: question, body: json("\"yes\"") })).await;
    let resumed = claim(&*store, node(2), 1).await.remove(0);
    let records = store.records(&key(1), resumed.epoch()).await.unwrap();
    assert_eq!(records[0].output, Some(json("\"yes\"")));
}

pub async fn a_resumed_attempt_finds_its_question_with_the_same_key<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    create(&*store, resuming(key(1))).await;
    let first = asked(&*store, 1, 0).await;
    // The node dies while the question is open, and the next attempt comes to the same position.
    apply(&*store, &key(1), lose(node(1), 1)).await;
    let (subject, store) = reopened(subject, store).await;
    subject.set_time(next_queued(&*store).await.unwrap()).await;
    let resumed = claim(&*store, node(2), 1).await.remove(0);
    let again = store.apply(&key(1), ask(resumed.fence, 0)).await;
    assert_eq!(refused(again), TransitionError::AskedAlready(first.clone()));
    assert_eq!(read(&*store, &key(1)).await, resumed, "the question was not asked again");
    apply(&*store, &key(1), Event::Answer(AnswerQuestion { key: first, body: json("\"yes\"") })).await;
    let records = store.records(&key(1), resumed.epoch()).await.unwrap();
    assert_eq!((records.len(), &records[0].output), (1, &Some(json("\"yes\""))));
}

pub async fn an_answer_between_two_attempts_is_kept_for_the_next<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    create(&*store, resuming(key(1))).await;
    let question = asked(&*store, 1, 0).await;
    apply(&*store, &key(1), lose(node(1), 1)).await;
    apply(&*store, &key(1), Event::Answer(AnswerQuestion { key: question.clone(), body: json("\"yes\"") })).await;
    subject.set_time(next_queued(&*store).await.unwrap()).await;
    let resumed = claim(&*store, node(2), 1).await.remove(0);
    // At the same position the attempt finds the question and its answer in the journal.
    assert_eq!(refused(store.apply(&key(1), ask(resumed.fence, 0)).await), TransitionError::AskedAlready(question));
    let records = store.records(&key(1), resumed.epoch()).await.unwrap();
    assert_eq!((records.len(), &records[0].output), (1, &Some(json("\"yes\""))));
    assert_eq!(read(&*store, &key(1)).await, resumed);
}

pub async fn a_question_at_the_position_of_another_entry_is_refused<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    let task = create(&*store, resuming(key(1))).await;
    store.record(&key(1), 1, record("", 0, "1")).await.unwrap();
    assert!(matches!(refused(store.apply(&key(1), ask(1, 0)).await), TransitionError::HandlerChanged(_)));
    assert_eq!(read(&*store, &key(1)).await, task);
}

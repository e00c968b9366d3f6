//! A journal entry is written once. Only the entry of a step that is tried again, of a timer or of a question is replaced.

use std::sync::Arc;

use longhaul_task::transition::{Abandon, Park, Settle, TimeOut};
use longhaul_task::{
    Answer, AttemptEnd, AttemptRecord, EntryKind, EntryState, Event, JournalEntry, OnCrash, QuestionKey, StepRetry,
    TransitionError, Wait,
};

use super::Subject;
use super::kit::*;
use crate::Store;

/// Asks a question at a position of the journal and returns its key.
async fn asked(store: &dyn Store, fence: u64, seq: u32) -> QuestionKey {
    let task = apply(store, &key(1), ask(fence, seq)).await;
    task.phase.questions().unwrap().iter().last().unwrap().key.clone()
}

/// The states of the entries of an epoch, in order.
async fn states(store: &dyn Store, epoch: u32) -> Vec<EntryState> {
    store.journal(&key(1), epoch).await.unwrap().into_iter().map(|entry| entry.state).collect()
}

fn done(output: &str) -> EntryState {
    EntryState::Done(json(output))
}

pub async fn a_journal_entry_reads_back_the_same<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    create(&*store, claimed(key(1))).await;
    let wait = Wait::of_ms(START, 5);
    let states = [
        EntryState::Done(json("{\"a\":\"ü\"}")),
        EntryState::Failed("no \"such\" file".into()),
        EntryState::Retrying(StepRetry { failures: 2, wait, error: "busy".into() }),
        EntryState::Open,
        EntryState::TooLarge { bytes: u64::MAX, bytes_max: 7 },
    ];
    let mut entries: Vec<JournalEntry> = Vec::new();
    for (seq, kind) in (0..).zip(EntryKind::ALL) {
        for (fork, state) in ["", "a", "b", "c", "d"].into_iter().zip(&states) {
            let entry = JournalEntry::new(position(fork, seq), kind, "nämé".into(), u64::MAX, state.clone());
            entries.push(JournalEntry { took_ms: Some(7), note: Some("n".into()), ..entry });
        }
    }
    store.record(&key(1), 1, entries.clone()).await.unwrap();
    let (_subject, store) = reopened(subject, store).await;
    entries.sort_by_key(|entry| entry.position.clone());
    let entries: Vec<_> = entries.into_iter().map(|entry| written(entry, 1)).collect();
    assert_eq!(store.journal(&key(1), 1).await.unwrap(), entries);
    assert_eq!(store.history(&key(1)).await.unwrap().entries, entries);
}

pub async fn an_existing_entry_is_not_replaced<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    create(&*store, claimed(key(1))).await;
    record(&*store, &key(1), 1, step("", 0, "\"first\"")).await.unwrap();
    record(&*store, &key(1), 1, step("", 0, "\"second\"")).await.unwrap();
    let other = JournalEntry { name: "another".into(), ..step("", 0, "\"second\"") };
    let changed = refused(record(&*store, &key(1), 1, other).await);
    assert!(matches!(changed, TransitionError::HandlerChanged { .. }), "{changed}");
    // A question does not replace it either.
    let changed = refused(store.apply(&key(1), ask(1, 0)).await);
    assert!(matches!(changed, TransitionError::HandlerChanged { .. }), "{changed}");
    assert_eq!(store.journal(&key(1), 1).await.unwrap(), [written(step("", 0, "\"first\""), 1)]);
}

pub async fn a_step_that_is_tried_again_replaces_its_entry_until_it_is_done<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    create(&*store, resuming(key(1))).await;
    let retrying = |failures| {
        let wait = Wait::of_ms(START, 5);
        let state = EntryState::Retrying(StepRetry { failures, wait, error: "busy".into() });
        JournalEntry { state, ..step("", 0, "1") }
    };
    for entry in [retrying(1), retrying(2), step("", 0, "3"), retrying(3)] {
        record(&*store, &key(1), 1, entry).await.unwrap();
    }
    let (_subject, store) = reopened(subject, store).await;
    assert_eq!(states(&*store, 0).await, [done("3")]);
}

pub async fn entries_of_the_last_step_are_written_with_the_end<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    create(&*store, resuming(key(1))).await;
    let Event::Settle(mut event) = settle(1, "1") else { unreachable!() };
    event.entries.push(step("", 0, "1"));
    apply(&*store, &key(1), Event::Settle(event)).await;
    let (_subject, store) = reopened(subject, store).await;
    assert_eq!(store.journal(&key(1), 0).await.unwrap(), [written(step("", 0, "1"), 1)]);
}

pub async fn of_many_concurrent_entries_at_one_position_one_is_kept<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    create(&*store, claimed(key(1))).await;
    let calls = (0..16).map(|n: u32| {
        let store = Arc::clone(&store);
        async move { record(&*store, &key(1), 1, step("", 0, &n.to_string())).await.unwrap() }
    });
    all(calls).await;
    assert_eq!(store.journal(&key(1), 1).await.unwrap().len(), 1);
}

pub async fn entries_are_ordered_by_fork_and_position<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    create(&*store, claimed(key(1))).await;
    let positions = [("b", 0), ("", 10), ("a", 1), ("", 2), ("a", 0), ("", 0)];
    for (fork, seq) in positions {
        record(&*store, &key(1), 1, step(fork, seq, "1")).await.unwrap();
    }
    let order: Vec<_> = store.journal(&key(1), 1).await.unwrap().into_iter().map(|entry| entry.position).collect();
    let expected = [("", 0), ("", 2), ("", 10), ("a", 0), ("a", 1), ("b", 0)];
    assert_eq!(order, expected.map(|(fork, seq)| position(fork, seq)));
}

pub async fn a_journal_entry_does_not_raise_the_revision<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    let task = create(&*store, claimed(key(1))).await;
    record(&*store, &key(1), 1, step("", 0, "1")).await.unwrap();
    assert_eq!(read(&*store, &key(1)).await, task);
}

pub async fn attempts_share_a_journal_only_if_they_resume<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    for (n, on_crash, expected) in [(1, OnCrash::Retry, 0), (2, OnCrash::Resume, 1)] {
        let mut new = claimed(key(n));
        new.create.policy.on_crash = on_crash;
        let first = create(&*store, new).await;
        record(&*store, &key(n), first.fence, step("", 0, "1")).await.unwrap();
        apply(&*store, &key(n), release(first.fence, 0)).await;
        let second = claim(&*store, node(2), 1).await.remove(0);
        assert_eq!(store.journal(&key(n), second.epoch()).await.unwrap().len(), expected);
    }
}

pub async fn an_answer_is_written_to_the_entry_of_its_question<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    create(&*store, claimed(key(1))).await;
    let first = asked(&*store, 1, 0).await;
    let second = asked(&*store, 1, 1).await;
    assert_eq!(states(&*store, 1).await, [EntryState::Open, EntryState::Open]);
    subject.set_time(START.plus_ms(40)).await;
    apply(&*store, &key(1), given(&second, "\"two\"")).await;
    assert_eq!(states(&*store, 1).await, [EntryState::Open, done("\"two\"")]);
    let refusal = longhaul_task::transition::AnswerQuestion { key: first, answer: Answer::NotGiven("busy".into()) };
    let running = apply(&*store, &key(1), Event::Answer(refusal)).await;
    assert!(running.phase.questions().is_none());
    let (_subject, store) = reopened(subject, store).await;
    assert_eq!(states(&*store, 1).await, [EntryState::Failed("busy".into()), done("\"two\"")]);
    let entry = store.question(&key(1), &second).await.unwrap().unwrap();
    assert_eq!((entry.at, entry.took_ms, entry.state), (START, Some(40), done("\"two\"")));
    assert_eq!(store.question(&key(1), &QuestionKey::from_text("none")).await.unwrap(), None);
}

pub async fn an_answer_is_recorded_for_a_parked_task<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    create(&*store, resuming(key(1))).await;
    let question = asked(&*store, 1, 0).await;
    apply(&*store, &key(1), park_for_answer(1, &question)).await;
    let (_subject, store) = reopened(subject, store).await;
    apply(&*store, &key(1), given(&question, "\"yes\"")).await;
    let resumed = claim(&*store, node(2), 1).await.remove(0);
    assert_eq!(states(&*store, resumed.epoch()).await, [done("\"yes\"")]);
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
    apply(&*store, &key(1), given(&first, "\"yes\"")).await;
    assert_eq!(states(&*store, resumed.epoch()).await, [done("\"yes\"")]);
}

pub async fn an_answer_between_two_attempts_is_kept_for_the_next<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    create(&*store, resuming(key(1))).await;
    let question = asked(&*store, 1, 0).await;
    apply(&*store, &key(1), lose(node(1), 1)).await;
    apply(&*store, &key(1), given(&question, "\"yes\"")).await;
    subject.set_time(next_queued(&*store).await.unwrap()).await;
    let resumed = claim(&*store, node(2), 1).await.remove(0);
    // At the same position the attempt finds the question and its answer in the journal.
    assert_eq!(refused(store.apply(&key(1), ask(resumed.fence, 0)).await), TransitionError::AskedAlready(question));
    assert_eq!(states(&*store, resumed.epoch()).await, [done("\"yes\"")]);
    assert_eq!(read(&*store, &key(1)).await, resumed);
}

pub async fn a_question_at_the_position_of_another_entry_is_refused<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    let task = create(&*store, resuming(key(1))).await;
    record(&*store, &key(1), 1, step("", 0, "1")).await.unwrap();
    assert!(matches!(refused(store.apply(&key(1), ask(1, 0)).await), TransitionError::HandlerChanged { .. }));
    assert_eq!(read(&*store, &key(1)).await, task);
}

pub async fn a_refused_request_leaves_none_of_its_entries<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    let task = create(&*store, resuming(key(1))).await;
    record(&*store, &key(1), 1, step("", 1, "1")).await.unwrap();
    let entries = vec![step("", 0, "0"), JournalEntry { name: "another step".into(), ..step("", 1, "2") }];
    let recorded = store.record(&key(1), 1, entries.clone()).await;
    assert!(matches!(refused(recorded), TransitionError::HandlerChanged { .. }));
    let settled = store.apply(&key(1), Event::Settle(Settle { fence: 1, outcome: answer("1"), entries })).await;
    assert!(matches!(refused(settled), TransitionError::HandlerChanged { .. }));
    assert_eq!(store.journal(&key(1), 0).await.unwrap(), [written(step("", 1, "1"), 1)]);
    assert_eq!(read(&*store, &key(1)).await, task);
}

pub async fn a_question_is_closed_with_its_default_when_its_time_is_over<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    create(&*store, resuming(key(1))).await;
    let Event::Ask(mut event) = ask(1, 0) else { unreachable!() };
    event.time_limit = Some((50, Answer::Given(json("\"default\""))));
    let task = apply(&*store, &key(1), Event::Ask(event)).await;
    let question = task.phase.questions().unwrap().iter().next().unwrap().key.clone();
    apply(&*store, &key(1), park_for_answer(1, &question)).await;
    let (subject, store) = reopened(subject, store).await;
    let time_out = Event::TimeOut(TimeOut { key: question.clone() });
    assert_eq!(refused(store.apply(&key(1), time_out.clone()).await), TransitionError::TooEarly);
    assert_eq!(store.due(10).await.unwrap().next, Some(START.plus_ms(50)));
    subject.set_time(START.plus_ms(50)).await;
    assert_eq!(due_keys(&*store).await, [key(1)]);
    let woken = apply(&*store, &key(1), time_out.clone()).await;
    assert!(woken.phase.not_before().is_some() && woken.phase.questions().is_none());
    assert_eq!(states(&*store, 0).await, [done("\"default\"")]);
    assert_eq!(refused(store.apply(&key(1), time_out).await), TransitionError::NoSuchQuestion);
}

pub async fn a_lost_race_closes_the_questions_of_its_forks<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    create(&*store, resuming(key(1))).await;
    for (fork, seq) in [("0:first", 0), ("0:first/inner", 0), ("0:second", 0), ("0:firstly", 0)] {
        let Event::Ask(mut event) = ask(1, seq) else { unreachable!() };
        event.position = position(fork, seq);
        apply(&*store, &key(1), Event::Ask(event)).await;
    }
    let race = JournalEntry { kind: EntryKind::Race, ..step("", 0, "\"second\"") };
    let abandon = Event::Abandon(Abandon { fence: 1, forks: vec!["0:first".into()], race });
    for _again in 0..2 {
        let task = apply(&*store, &key(1), abandon.clone()).await;
        let open: Vec<_> = task.phase.questions().unwrap().iter().map(|open| &*open.position.fork).collect();
        assert_eq!(open, ["0:second", "0:firstly"]);
    }
    assert_eq!(states(&*store, 0).await[0], done("\"second\""));
}

pub async fn the_beginning_of_an_attempt_does_not_change_with_an_answer<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    create(&*store, resuming(key(1))).await;
    let began_at = store.now().await.unwrap();
    let question = asked(&*store, 1, 0).await;
    subject.set_time(began_at.plus_ms(10)).await;
    apply(&*store, &key(1), given(&question, "\"yes\"")).await;
    let (subject, store) = reopened(subject, store).await;
    let run = read(&*store, &key(1)).await.phase.active_attempt().unwrap();
    assert_eq!((run.began_at, run.since), (began_at, began_at.plus_ms(10)));
    apply(&*store, &key(1), settle(1, "{}")).await;
    let (_subject, store) = reopened(subject, store).await;
    assert_eq!(read(&*store, &key(1)).await.phase.last_attempt(), Some(run));
}

pub async fn each_attempt_that_ends_before_its_task_leaves_a_record<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    create(&*store, resuming(key(1))).await;
    let released = AttemptEnd::Released("the disk was full".into());
    let ends = [AttemptEnd::Lost, AttemptEnd::Stopped, AttemptEnd::Parked, AttemptEnd::Returned, released];
    let mut expected = Vec::new();
    for (attempt, end) in (1..).zip(ends) {
        let task = read(&*store, &key(1)).await;
        let run = task.phase.active_attempt().unwrap();
        subject.set_time(store.now().await.unwrap().plus_ms(10)).await;
        // A lost attempt has given its last sign of life when it was claimed.
        let ended_at = if end == AttemptEnd::Lost { run.since } else { store.now().await.unwrap() };
        let event = match &end {
            AttemptEnd::Lost => lose(run.node, task.fence),
            AttemptEnd::Stopped => {
                Event::Lose(longhaul_task::transition::Lose { node: run.node, fence: task.fence, is_stop: true })
            }
            AttemptEnd::Parked => park(task.fence, Some(10)),
            AttemptEnd::Returned => {
                let returned = Some(Box::new(step(":return", 0, "1")));
                Event::Park(Park { fence: task.fence, wait_ms: Some(10), returned, ..Park::default() })
            }
            AttemptEnd::Released(_) => release(task.fence, 0),
        };
        let ended = apply(&*store, &key(1), event).await;
        expected.push(AttemptRecord { attempt, node: run.node, began_at: run.began_at, ended_at, end });
        if let Some(at) = ended.due_at().filter(|_| ended.phase.wake_condition().is_some()) {
            subject.set_time(at).await;
            let wake = longhaul_task::transition::Wake { fence: ended.fence };
            apply(&*store, &key(1), Event::Wake(wake)).await;
        }
        if let Some(at) = next_queued(&*store).await {
            subject.set_time(at.max(store.now().await.unwrap())).await;
        }
        claim(&*store, node(2), 1).await;
    }
    let (_subject, store) = reopened(subject, store).await;
    assert_eq!(store.history(&key(1)).await.unwrap().attempts, expected);
}

pub async fn only_attempts_that_got_no_further_count_as_failed<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    let mut new = resuming(key(1));
    new.create.policy.attempts_max = 2;
    create(&*store, new).await;
    for n in 0..4 {
        let task = read(&*store, &key(1)).await;
        record(&*store, &key(1), task.fence, step("", n, "1")).await.unwrap();
        let lost = apply(&*store, &key(1), lose(task.phase.active_attempt().unwrap().node, task.fence)).await;
        assert_eq!(lost.failed_attempts, 1);
        subject.set_time(next_queued(&*store).await.unwrap()).await;
        claim(&*store, node(2), 1).await;
    }
    let task = read(&*store, &key(1)).await;
    assert!(apply(&*store, &key(1), lose(node(2), task.fence)).await.is_settled(), "it recorded nothing");
}

//! The random histories reach every event, refusal and outcome. Otherwise the laws could hold only because nothing
//! happened.

use std::collections::BTreeSet;
use std::mem::discriminant;

use longhaul_task::{Change, Event, Outcome, PhaseName, QuestionKey, Task, TaskError, TransitionError};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use crate::model::{History, Moment, answers, plans};

const HISTORIES: usize = 400;

fn histories() -> Vec<History> {
    let mut runner = TestRunner::deterministic();
    (0..HISTORIES).map(|_| History::of(&plans().new_tree(&mut runner).unwrap().current())).collect()
}

#[test]
fn the_histories_contain_every_event_accepted_and_refused() {
    let histories = histories();
    let moments = || histories.iter().flat_map(|history| &history.moments);
    let names = |accepted: bool| -> BTreeSet<&str> {
        moments().filter(|moment| moment.result.is_ok() == accepted).map(|moment| moment.event.name()).collect()
    };
    let all: BTreeSet<&str> = [
        "abandon", "answer", "ask", "cancel", "claim", "delete", "expire", "lose", "overdue", "park", "release",
        "renew", "report", "settle", "shorten", "spawn", "time out", "wake",
    ]
    .into();
    assert_eq!(names(true), all, "accepted");
    assert_eq!(names(false), all, "refused");

    let refusals = [
        TransitionError::Settled,
        TransitionError::Fenced,
        TransitionError::WrongPhase(PhaseName::Queued),
        TransitionError::TooEarly,
        TransitionError::NoSuchQuestion,
        TransitionError::BadLabel,
        TransitionError::ChildrenOpen,
        TransitionError::NotRoot,
        TransitionError::NotResumable,
        TransitionError::AskedAlready(QuestionKey::from_text("")),
        TransitionError::HandlerChanged { recorded: "".into(), performed: "".into() },
        TransitionError::AlreadyHappened,
        TransitionError::NothingToWaitFor,
        TransitionError::AttemptsSpent,
        TransitionError::NothingToShorten,
        TransitionError::DuplicateId,
    ];
    for refused in refusals {
        let found = moments().any(|m| m.result.as_ref().is_err_and(|r| discriminant(r) == discriminant(&refused)));
        assert!(found, "no history was refused with {refused:?}");
    }

    let crashed = TaskError::crash_recovery(moments().next().unwrap().task());
    let ends = [TaskError::running_time(0), TaskError::life_time(0), crashed, TaskError::panic("")];
    for code in ends.map(|fault| fault.data) {
        let found = moments()
            .flat_map(|moment| moment.after.values())
            .any(|task| matches!(task.phase.outcome(), Some(Outcome::Error(fault)) if fault.data == code));
        assert!(found, "no history ended with {code:?}");
    }
}

#[test]
fn the_histories_contain_deep_and_wide_families_and_clock_jumps() {
    let histories = histories();
    let tasks = || histories.iter().flat_map(|history| &history.moments).flat_map(|m| m.after.values());
    assert!(tasks().any(|task| task.family.depth >= 2), "grandchildren");
    assert!(tasks().any(|task| task.family.children >= 2), "siblings");
    assert!(tasks().any(|task| task.phase.questions().is_some_and(|open| open.count() >= 2)), "two questions");
    let waiting = || tasks().filter(|task| task.phase.name() == PhaseName::Waiting);
    assert!(waiting().any(|task| task.phase.not_before().is_some()), "waiting and in the queue");
    assert!(
        waiting().any(|task| task.phase.wake_condition().is_some_and(|rest| rest.timer.is_some())),
        "waiting with a timer"
    );
    assert!(waiting().any(|task| task.phase.active_attempt().is_some()), "waiting with its handler in memory");
    let ranges = |count| move |task: &Task| task.awaited_children().len() >= count;
    assert!(tasks().any(ranges(2)), "a task waits for two ranges of children");
    assert!(tasks().any(|task| task.awaited_children().iter().any(|range| range.first < range.last)), "a wide range");
    let goes_back = |history: &History| history.moments.windows(2).any(|pair| pair[1].now < pair[0].now);
    assert!(histories.iter().any(goes_back), "the clock jumps back");
    let relatives = || histories.iter().flat_map(History::changes).map(|(_, change)| &change.relatives);
    assert!(relatives().any(|relatives| relatives.len() >= 2), "a family ends in one change");
    let woken = |relatives: &Vec<Task>| relatives.iter().any(|task| !task.is_settled());
    assert!(relatives().any(woken), "a parent is woken by its child");
    let abandoned = |(moment, change): (&Moment, &Change)| {
        matches!(moment.event, Event::Abandon(_))
            && change.task.phase.questions().is_some()
            && answers(change).count() > 0
    };
    assert!(
        histories.iter().flat_map(History::changes).any(abandoned),
        "a lost fork had a question, and so had another"
    );
    let begins_again = |(moment, change): (&Moment, &Change)| {
        matches!(moment.event, Event::Lose(_)) && moment.task().failed_attempts > 0 && change.task.failed_attempts == 1
    };
    assert!(histories.iter().flat_map(History::changes).any(begins_again), "the count of failed attempts begins again");
}

//! Everything has a limit, and an event past the limit is refused with its own reason. Random histories do not reach
//! these limits.

use longhaul_task::transition::{self, Claim, Create, Lose, NewChild, Park, Release, Report, Spawn, Wake};
use longhaul_task::{
    AttemptEnd, CHILD_RANGES_MAX, CHILDREN_MAX, Change, ChildRange, DEPTH_MAX, Event, Json, LABEL_BYTES_MAX,
    MESSAGE_BYTES_MAX, OnCrash, QUESTIONS_OPEN_MAX, Surroundings, Task, Timestamp, TransitionError,
};

use crate::model::{ask, creation, node};

const NOW: Timestamp = Timestamp::from_ms(1_000);

fn new(id: &str) -> Create {
    Create { claimed_by: Some(node(1)), ..creation(id) }
}

fn apply(task: &Task, event: &Event) -> Result<Change, TransitionError> {
    transition::apply(task, event, &Surroundings::default(), NOW)
}

fn spawn(task: &Task, id: &str) -> Event {
    spawn_all(task, [id.to_owned()])
}

fn spawn_all(task: &Task, ids: impl IntoIterator<Item = String>) -> Event {
    let child = |id: String| NewChild { create: new(&id), input: Json::from_text("{}") };
    let children = ids.into_iter().map(child).collect();
    Event::Spawn(Box::new(Spawn { fence: task.fence, children, entries: Vec::new() }))
}

fn release(task: &Task, wait_ms: u64) -> Event {
    Event::Release(Release { fence: task.fence, wait_ms, reason: "x".repeat(2 * MESSAGE_BYTES_MAX).into() })
}

#[test]
fn a_child_past_the_limit_is_refused() {
    let mut task = transition::create(&new("root"), NOW);
    for n in 0..CHILDREN_MAX {
        task = apply(&task, &spawn(&task, &format!("child-{n}"))).unwrap().task;
    }
    assert_eq!(apply(&task, &spawn(&task, "one-more")), Err(TransitionError::TooManyChildren));

    // As many at once are as many.
    let task = transition::create(&new("root"), NOW);
    let ids = |count| (0..count).map(|n| format!("child-{n}"));
    assert_eq!(apply(&task, &spawn_all(&task, ids(CHILDREN_MAX))).unwrap().task.family.children, CHILDREN_MAX);
    assert_eq!(apply(&task, &spawn_all(&task, ids(CHILDREN_MAX + 1))), Err(TransitionError::TooManyChildren));
}

#[test]
fn a_family_deeper_than_the_limit_is_refused() {
    let mut task = transition::create(&new("root"), NOW);
    for n in 0..DEPTH_MAX {
        (task, _) = apply(&task, &spawn(&task, &format!("level-{n}"))).unwrap().children.remove(0);
    }
    assert_eq!(apply(&task, &spawn(&task, "one-deeper")), Err(TransitionError::TooDeep));
}

#[test]
fn an_open_question_past_the_limit_is_refused() {
    let mut task = transition::create(&new("root"), NOW);
    for _ in 0..QUESTIONS_OPEN_MAX {
        task = apply(&task, &ask(&task, "same")).unwrap().task;
    }
    assert_eq!(task.phase.questions().unwrap().count(), QUESTIONS_OPEN_MAX);
    assert_eq!(apply(&task, &ask(&task, "same")), Err(TransitionError::TooManyQuestions));
}

#[test]
fn a_label_is_accepted_at_its_limit_and_refused_past_it() {
    let task = transition::create(&new("root"), NOW);
    assert!(apply(&task, &ask(&task, "x".repeat(LABEL_BYTES_MAX))).is_ok());
    assert_eq!(apply(&task, &ask(&task, "x".repeat(LABEL_BYTES_MAX + 1))), Err(TransitionError::BadLabel));
    assert_eq!(apply(&task, &ask(&task, "ä")), Err(TransitionError::BadLabel));
}

#[test]
fn a_message_past_the_limit_is_cut_and_not_refused() {
    let task = transition::create(&new("root"), NOW);
    let message = "x".repeat(MESSAGE_BYTES_MAX + 1).into();
    let change = apply(&task, &Event::Report(Report { fence: task.fence, message })).unwrap();
    assert!(change.task.message.is_some_and(|message| message.len() <= MESSAGE_BYTES_MAX));
}

#[test]
fn a_release_after_the_last_attempt_is_refused() {
    let mut task = transition::create(&new("root"), NOW);
    for _ in 1..task.policy.attempts_max {
        task = apply(&task, &release(&task, 0)).unwrap().task;
        task = apply(&task, &Event::Claim(Claim { node: node(1) })).unwrap().task;
    }
    assert_eq!(apply(&task, &release(&task, 0)), Err(TransitionError::AttemptsSpent));
}

#[test]
fn a_handler_that_sleeps_a_thousand_times_has_used_no_attempt() {
    let mut new = new("root");
    new.policy.on_crash = OnCrash::Resume;
    let mut task = transition::create(&new, NOW);
    for _ in 0..1_000 {
        let park = Park { fence: task.fence, wait_ms: Some(0), ..Park::default() };
        task = apply(&task, &Event::Park(park)).unwrap().task;
        task = apply(&task, &Event::Wake(Wake { fence: task.fence })).unwrap().task;
        task = apply(&task, &Event::Claim(Claim { node: node(1) })).unwrap().task;
    }
    assert_eq!(task.failed_attempts, 0);
    assert!(
        !apply(&task, &Event::Lose(Lose { node: node(1), fence: task.fence, is_stop: false }))
            .unwrap()
            .task
            .is_settled()
    );
}

#[test]
fn a_delay_past_the_latest_timestamp_saturates() {
    let task = transition::create(&new("root"), NOW);
    let change = apply(&task, &release(&task, u64::MAX)).unwrap();
    assert_eq!(change.task.phase.not_before(), Some(Timestamp::MAX));
}

#[test]
fn a_reason_past_the_limit_of_a_message_is_cut() {
    let task = transition::create(&new("root"), NOW);
    let record = apply(&task, &release(&task, 0)).unwrap().ended_attempt.unwrap();
    assert!(matches!(record.end, AttemptEnd::Released(reason) if reason.len() <= MESSAGE_BYTES_MAX));
}

#[test]
fn a_handler_can_wait_for_as_many_ranges_of_children_as_the_limit_says() {
    let mut new = new("root");
    new.policy.on_crash = OnCrash::Resume;
    let task = transition::create(&new, NOW);
    let task = apply(&task, &spawn_all(&task, (0..=CHILD_RANGES_MAX).map(|n| format!("child-{n}")))).unwrap().task;
    let park = |count: usize| {
        let children: Vec<_> = (0..u32::try_from(count).unwrap()).map(|n| ChildRange { first: n, last: n }).collect();
        let surroundings = Surroundings { open_children: children.clone(), ..Surroundings::default() };
        let event = Event::Park(Park { fence: task.fence, wait_ms: None, children, ..Park::default() });
        transition::apply(&task, &event, &surroundings, NOW)
    };
    assert!(park(CHILD_RANGES_MAX).is_ok());
    assert_eq!(park(CHILD_RANGES_MAX + 1), Err(TransitionError::TooManyWaits));
}

/// An attempt that got further than the last one is not a sign of a task that kills its process again and again.
#[test]
fn a_handler_that_gets_further_each_time_survives_a_thousand_crashes() {
    let mut new = new("root");
    new.policy.on_crash = OnCrash::Resume;
    let mut task = transition::create(&new, NOW);
    let after_loss = |task: &Task, wrote_entries: bool| {
        let surroundings = Surroundings { attempt_wrote_at: wrote_entries.then_some(NOW), ..Surroundings::default() };
        let event = Event::Lose(Lose { node: node(1), fence: task.fence, is_stop: false });
        transition::apply(task, &event, &surroundings, NOW).unwrap().task
    };
    let claim = |task: &Task| {
        let now = task.phase.not_before().unwrap();
        transition::apply(task, &Event::Claim(Claim { node: node(1) }), &Surroundings::default(), now).unwrap().task
    };
    for _ in 0..1_000 {
        task = claim(&after_loss(&task, true));
        assert_eq!(task.failed_attempts, 1);
    }
    for _ in 1..task.policy.attempts_max {
        assert!(!task.is_settled());
        let lost = after_loss(&task, false);
        if lost.is_settled() {
            return;
        }
        task = claim(&lost);
    }
    panic!("a task whose attempts come to nothing goes on: {task:?}");
}

#[test]
fn stops_of_the_server_use_up_no_attempt() {
    let mut new = new("root");
    new.policy.on_crash = OnCrash::Retry;
    let mut task = transition::create(&new, NOW);
    for _ in 0..100 {
        let stop = Event::Lose(Lose { node: node(1), fence: task.fence, is_stop: true });
        let change = apply(&task, &stop).unwrap();
        assert_eq!(change.ended_attempt.unwrap().end, AttemptEnd::Stopped);
        assert_eq!(change.task.phase.not_before(), Some(NOW), "the next server need not wait");
        task = apply(&change.task, &Event::Claim(Claim { node: node(1) })).unwrap().task;
    }
    assert_eq!(task.failed_attempts, 0);
}

/// Tasks that began again together would be lost together, if one of them kills its process.
#[test]
fn the_tasks_of_a_dead_process_begin_again_at_different_times() {
    let not_before = |id: &str| {
        let mut new = new(id);
        new.policy.on_crash = OnCrash::Retry;
        let task = transition::create(&new, NOW);
        let lose = Event::Lose(Lose { node: node(1), fence: task.fence, is_stop: false });
        apply(&task, &lose).unwrap().task.phase.not_before().unwrap()
    };
    let times: std::collections::BTreeSet<_> = (0..100).map(|number| not_before(&format!("task-{number}"))).collect();
    assert!(times.len() > 50, "{times:?}");
}

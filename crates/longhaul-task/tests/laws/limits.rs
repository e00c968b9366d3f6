//! Everything has a limit, and an event past the limit is refused with its own reason. Random histories do not reach
//! these limits.

use longhaul_task::transition::{self, Claim, Create, Lose, Park, Release, Report, Spawn, Wake};
use longhaul_task::{
    CHILDREN_MAX, Change, DEPTH_MAX, Event, Json, LABEL_BYTES_MAX, MESSAGE_BYTES_MAX, OnCrash, QUESTIONS_OPEN_MAX,
    Surroundings, Task, Timestamp, TransitionError,
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
    Event::Spawn(Box::new(Spawn { fence: task.fence, child: new(id), input: Json::from_text("{}") }))
}

#[test]
fn a_child_past_the_limit_is_refused() {
    let mut task = transition::create(&new("root"), NOW);
    for n in 0..CHILDREN_MAX {
        task = apply(&task, &spawn(&task, &format!("child-{n}"))).unwrap().task;
    }
    assert_eq!(apply(&task, &spawn(&task, "one-more")), Err(TransitionError::TooManyChildren));
}

#[test]
fn a_family_deeper_than_the_limit_is_refused() {
    let mut task = transition::create(&new("root"), NOW);
    for n in 0..DEPTH_MAX {
        (task, _) = apply(&task, &spawn(&task, &format!("level-{n}"))).unwrap().child.unwrap();
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
        task = apply(&task, &Event::Release(Release { fence: task.fence, wait_ms: 0 })).unwrap().task;
        task = apply(&task, &Event::Claim(Claim { node: node(1) })).unwrap().task;
    }
    let once_more = Event::Release(Release { fence: task.fence, wait_ms: 0 });
    assert_eq!(apply(&task, &once_more), Err(TransitionError::AttemptsSpent));
}

#[test]
fn a_handler_that_sleeps_a_thousand_times_has_used_no_attempt() {
    let mut new = new("root");
    new.policy.on_crash = OnCrash::Resume;
    let mut task = transition::create(&new, NOW);
    for _ in 0..1_000 {
        let park = Park { fence: task.fence, wait_ms: Some(0), open_children: 0, open_questions: 0 };
        task = apply(&task, &Event::Park(park)).unwrap().task;
        task = apply(&task, &Event::Wake(Wake { fence: task.fence })).unwrap().task;
        task = apply(&task, &Event::Claim(Claim { node: node(1) })).unwrap().task;
    }
    assert_eq!(task.failed_attempts, 0);
    assert!(!apply(&task, &Event::Lose(Lose { node: node(1), fence: task.fence })).unwrap().task.is_settled());
}

#[test]
fn a_delay_past_the_latest_timestamp_saturates() {
    let task = transition::create(&new("root"), NOW);
    let change = apply(&task, &Event::Release(Release { fence: task.fence, wait_ms: u64::MAX })).unwrap();
    assert_eq!(change.task.phase.not_before(), Some(Timestamp::MAX));
}

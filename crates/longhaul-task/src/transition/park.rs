use crate::{
    Answer, AttemptEnd, AttemptRecord, CHILD_RANGES_MAX, Change, ChildRange, JournalEntry, JournalWrite, Phase,
    QuestionKey, Surroundings, Task, Timestamp, TransitionError, Wait, WaitingState, WakeCondition,
};

/// The attempt ends while the task waits. What its handler did is in the journal, and a later attempt resumes it.
///
/// The event says what the attempt waits for. If any of that has already happened, nothing would wake the task for it
/// again, so the event is refused and the attempt continues.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Park {
    pub fence: u64,
    /// The time after which the task is woken if nothing else wakes it. A duration, because the clock may be set between the
    /// decision of the attempt and the commit.
    pub wait_ms: Option<u64>,
    /// The children that the attempt waits for: one range for each fork that waits for children.
    pub children: Vec<ChildRange>,
    /// The questions whose answers the attempt waits for.
    pub questions: Vec<QuestionKey>,
    /// The outcome of the handler, if it has returned and the task waits only for its children. The next attempt settles the
    /// task with it. The open questions are closed, because no fork waits for them.
    pub returned: Option<Box<JournalEntry>>,
}

pub(super) fn apply(
    task: &Task,
    event: &Park,
    surroundings: &Surroundings,
    now: Timestamp,
) -> Result<Change, TransitionError> {
    task.check_fence(event.fence)?;
    if !task.resumes() {
        return Err(TransitionError::NotResumable);
    }
    if event.children.len() > CHILD_RANGES_MAX {
        return Err(TransitionError::TooManyWaits);
    }
    let questions = task.phase.questions();
    let is_open = |key| questions.is_some_and(|open| open.find(key).is_some());
    let have_ended = |range| !surroundings.open_children.contains(range);
    if !event.questions.iter().all(is_open) || event.children.iter().any(have_ended) {
        return Err(TransitionError::AlreadyHappened);
    }
    let timer = event.wait_ms.map(|wait_ms| Wait::of_ms(now, wait_ms));
    let waits_for_answer = !event.questions.is_empty() && event.returned.is_none();
    if timer.is_none() && event.children.is_empty() && !waits_for_answer {
        return Err(TransitionError::NothingToWaitFor);
    }
    let wake_condition = WakeCondition { timer, children: event.children.clone() };
    let mut next = task.next_revision(now);
    next.fence += 1;
    next.phase = match questions.filter(|_| event.returned.is_none()) {
        Some(questions) => Phase::Waiting { state: WaitingState::Parked(wake_condition), questions: questions.clone() },
        None => Phase::Parked { wake_condition },
    };
    let mut change = Change::new(next);
    change.ended_attempt = AttemptRecord::of(task, AttemptEnd::Parked, now);
    if let (Some(returned), Some(ended)) = (&event.returned, &mut change.ended_attempt) {
        ended.end = AttemptEnd::Returned;
        change.journal.push(JournalWrite::Insert(JournalEntry::clone(returned).written_by(task, now)));
        for question in questions.into_iter().flatten() {
            let answer = Answer::NotGiven("the handler has returned".into());
            change.journal.push(JournalWrite::Answer { key: question.key.clone(), answer, at: now });
        }
    }
    Ok(change)
}

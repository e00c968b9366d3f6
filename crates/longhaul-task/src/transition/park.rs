use crate::{Change, Phase, Surroundings, Task, Timestamp, TransitionError, Wait, WaitingState, WakeCondition};

/// The attempt ends while the task waits. What its handler did is in the journal, and a later attempt resumes it.
///
/// The event says what the attempt waits for. If any of that has already happened, nothing would wake the task for it
/// again, so the event is refused and the attempt continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Park {
    pub fence: u64,
    /// The time after which the task is woken if nothing else wakes it. A duration, because the clock may be set between the
    /// decision of the attempt and the commit.
    pub wait_ms: Option<u64>,
    /// The number of open children if the attempt waits for one to end, else 0.
    pub open_children: u32,
    /// The number of open questions if the attempt waits for an answer, else 0.
    pub open_questions: usize,
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
    let questions = task.phase.questions();
    let open_questions = questions.map_or(0, crate::Questions::count);
    if surroundings.open_children < event.open_children || open_questions < event.open_questions {
        return Err(TransitionError::AlreadyHappened);
    }
    let timer = event.wait_ms.map(|wait_ms| Wait::of_ms(now, wait_ms));
    let wake_condition = WakeCondition { timer, for_children: event.open_children > 0 };
    let mut next = task.next_revision(now);
    next.fence += 1;
    next.phase = match questions {
        Some(questions) => Phase::Waiting { state: WaitingState::Parked(wake_condition), questions: questions.clone() },
        None if wake_condition.timer.is_none() && !wake_condition.for_children => {
            return Err(TransitionError::NothingToWaitFor);
        }
        None => Phase::Parked { wake_condition },
    };
    Ok(Change::new(next))
}

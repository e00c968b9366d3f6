use crate::{Change, Meanwhile, Phase, Refused, Rest, Surroundings, Task, Timestamp};

/// The attempt gives up its memory while it waits: what it did is recorded, and a later attempt will resume it.
///
/// It says what it believes to wait for. If any of that has come by now, nobody would wake the task for it any more, so
/// the event is refused and the attempt goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Park {
    /// The attempt's fence.
    pub fence: u64,
    /// When to go on without being woken.
    pub wake_at: Option<Timestamp>,
    /// How many of its children are open, if it waits for any; then the end of the next one wakes it.
    pub open_children: u32,
    /// How many of its questions are open, if it waits for any; the answer to the next one wakes it.
    pub open_questions: usize,
}

pub(super) fn apply(task: &Task, event: &Park, around: &Surroundings, now: Timestamp) -> Result<Change, Refused> {
    task.must_hold(event.fence)?;
    if !task.resumes() {
        return Err(Refused::NotResumable);
    }
    let questions = task.phase.questions();
    let open_questions = questions.map_or(0, crate::Questions::count);
    if around.open_children < event.open_children || open_questions < event.open_questions {
        return Err(Refused::CameMeanwhile);
    }
    let rest = Rest { wake_at: event.wake_at, for_children: event.open_children > 0 };
    let mut next = task.touched(now);
    next.fence += 1;
    next.phase = match questions {
        Some(questions) => Phase::Waiting { meanwhile: Meanwhile::Parked(rest), questions: questions.clone() },
        None if rest.wake_at.is_none() && !rest.for_children => return Err(Refused::NothingToWaitFor),
        None => Phase::Parked { rest },
    };
    Ok(Change::of(next))
}

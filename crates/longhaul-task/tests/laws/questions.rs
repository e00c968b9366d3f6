//! A question is asked once and answered once.

use std::collections::HashSet;

use longhaul_task::{
    Answer, EntryKind, EntryState, Event, PhaseName, QuestionKey, Questions, Task, TaskKey, TransitionError,
};
use proptest::prelude::*;

use crate::model::{History, answers, inserted, plans};

proptest! {
    #[test]
    fn a_question_key_is_never_used_twice_in_a_tasks_life(plan in plans()) {
        let mut used = HashSet::new();
        for (moment, change) in History::of(&plan).changes() {
            let Event::Ask(ask) = &moment.event else { continue };
            let entry = inserted(change).next().filter(|entry| entry.kind == EntryKind::Question);
            let Some((entry, key)) = entry.and_then(|entry| Some((entry, entry.question.as_ref()?))) else {
                return Err(TestCaseError::fail("a question without an entry"));
            };
            prop_assert!(used.insert((moment.id.clone(), key.clone())), "{} again", key);
            prop_assert!(change.task.phase.questions().is_some_and(|open| open.find(key).is_some()));
            prop_assert_eq!((&entry.position, &entry.name, entry.digest), (&ask.position, &ask.label, ask.digest));
            prop_assert_eq!(&entry.state, &EntryState::Open);
        }
    }

    /// By its answer, by its default, or because the fork that asked it was given up.
    #[test]
    fn a_question_is_closed_at_most_once_and_only_after_it_was_asked(plan in plans()) {
        let mut open = HashSet::new();
        for moment in &History::of(&plan).moments {
            let Ok(change) = &moment.result else { continue };
            for (key, _) in answers(change) {
                prop_assert!(open.remove(&(moment.id.clone(), key.clone())), "{} again: {:?}", key, moment);
            }
            open.extend(inserted(change).filter_map(|entry| Some((moment.id.clone(), entry.question.clone()?))));
        }
    }

    #[test]
    fn an_answer_to_an_open_question_is_taken_and_any_other_is_refused(plan in plans()) {
        for moment in &History::of(&plan).moments {
            let Event::Answer(answer) = &moment.event else { continue };
            let task = moment.task();
            match &moment.result {
                Ok(change) => prop_assert!(answers(change).eq([(&answer.key, &answer.answer)])),
                Err(refused) => {
                    let is_open = task.phase.questions().is_some_and(|open| open.find(&answer.key).is_some());
                    prop_assert!(!is_open, "the answer to an open question was refused");
                    let expected = if task.is_settled() { TransitionError::Settled } else { TransitionError::NoSuchQuestion };
                    prop_assert_eq!(refused, &expected);
                }
            }
        }
    }

    #[test]
    fn a_question_gets_its_default_from_its_deadline_on_and_not_before(plan in plans()) {
        for moment in &History::of(&plan).moments {
            let Event::TimeOut(time_out) = &moment.event else { continue };
            let question = moment.task().phase.questions().and_then(|open| open.find(&time_out.key));
            let deadline = question.and_then(|question| question.deadline.as_ref());
            match (&moment.result, deadline) {
                (Ok(change), Some(deadline)) => {
                    prop_assert!(moment.now >= deadline.wait.until);
                    prop_assert!(answers(change).eq([(&time_out.key, &deadline.default)]));
                }
                (Err(refused), Some(deadline)) => {
                    prop_assert_eq!(refused, &TransitionError::TooEarly);
                    prop_assert!(moment.now < deadline.wait.until);
                }
                (result, None) => {
                    let settled = moment.task().is_settled();
                    let expected = if settled { TransitionError::Settled } else { TransitionError::NoSuchQuestion };
                    prop_assert_eq!(result, &Err(expected));
                }
            }
        }
    }

    #[test]
    fn giving_up_forks_closes_exactly_their_questions(plan in plans()) {
        for (moment, change) in History::of(&plan).changes() {
            let Event::Abandon(abandon) = &moment.event else { continue };
            // Its own comparison, by components: `lefty` is not in `left`.
            let lost = |fork: &str| {
                let names: Vec<&str> = fork.split('/').collect();
                abandon.forks.iter().any(|lost| names.starts_with(&lost.split('/').collect::<Vec<_>>()))
            };
            let before = moment.task().phase.questions().into_iter().flatten();
            let (closed, left): (Vec<_>, Vec<_>) = before.partition(|question| lost(&question.position.fork));
            let open: Vec<_> = change.task.phase.questions().into_iter().flatten().collect();
            prop_assert_eq!(open, left);
            prop_assert!(answers(change).map(|(key, _)| key).eq(closed.iter().map(|question| &question.key)));
            prop_assert!(answers(change).all(|(_, answer)| matches!(answer, Answer::NotGiven(_))));
            prop_assert!(change.task.phase.active_attempt().is_some());
        }
    }

    #[test]
    fn closing_a_question_closes_no_other(plan in plans()) {
        for (moment, change) in History::of(&plan).changes() {
            let Some(key) = closed_by(&moment.event) else { continue };
            let left: Vec<_> =
                moment.task().phase.questions().into_iter().flatten().filter(|open| open.key != *key).collect();
            let open: Vec<_> = change.task.phase.questions().into_iter().flatten().collect();
            prop_assert_eq!(&open, &left);
            let next = match (left.is_empty(), moment.task().phase.active_attempt()) {
                (false, _) => PhaseName::Waiting,
                (true, Some(_)) => PhaseName::Running,
                (true, None) => PhaseName::Queued,
            };
            prop_assert_eq!(change.task.phase.name(), next);
        }
    }

    #[test]
    fn a_task_is_waiting_exactly_while_a_question_is_open(plan in plans()) {
        for task in History::of(&plan).moments.iter().flat_map(|moment| moment.after.values()) {
            let open = task.phase.questions().map_or(0, Questions::count);
            prop_assert_eq!(task.phase.name() == PhaseName::Waiting, open > 0);
            prop_assert!(open <= task.questions_asked as usize);
        }
    }

    /// An attempt that resumes finds the open questions of the last attempt, and an answer between two attempts is not
    /// lost. Only an attempt that starts over removes its questions.
    #[test]
    fn a_question_of_a_tool_that_resumes_stays_open_across_attempts(plan in plans()) {
        for (moment, _) in History::of(&plan).changes() {
            for (before, after) in moment.pairs().filter(|(_, after)| !after.is_settled()) {
                let change = moment.result.iter().filter(|_| before.key.id == moment.id);
                let closed: Vec<&QuestionKey> = change.flat_map(answers).map(|(key, _)| key).collect();
                let starts_over = !before.resumes() && matches!(moment.event, Event::Lose(_) | Event::Release(_));
                for question in before.phase.questions().into_iter().flatten() {
                    let stays = after.phase.questions().is_some_and(|open| open.find(&question.key).is_some());
                    prop_assert!(stays || closed.contains(&&question.key) || starts_over, "{:?}", moment);
                }
            }
        }
    }

    /// A handler that asks at a position with an open question gets the key of that question.
    #[test]
    fn no_two_open_questions_have_the_same_position(plan in plans()) {
        for moment in &History::of(&plan).moments {
            for task in moment.after.values() {
                let open: Vec<_> = task.phase.questions().into_iter().flatten().map(|open| &open.position).collect();
                prop_assert_eq!(open.iter().collect::<HashSet<_>>().len(), open.len());
            }
            if let (Event::Ask(ask), Err(TransitionError::AskedAlready(key))) = (&moment.event, &moment.result) {
                let open = moment.task().phase.questions().and_then(|open| open.find(key)).unwrap();
                prop_assert_eq!((&open.position, key.label()), (&ask.position, &*ask.label));
            }
        }
    }

    /// The fork that asked can continue, even if the other forks still wait.
    #[test]
    fn any_answer_and_any_default_wakes_a_parked_task(plan in plans()) {
        for (moment, change) in History::of(&plan).changes() {
            if closed_by(&moment.event).is_some() && moment.task().phase.wake_condition().is_some() {
                prop_assert_eq!(change.task.phase.not_before(), Some(moment.now));
            }
        }
    }

    /// A question can also be closed because an attempt that starts over is lost or releases the task.
    #[test]
    fn a_closed_question_is_never_open_again(plan in plans()) {
        let mut closed = HashSet::new();
        for moment in &History::of(&plan).moments {
            for (before, after) in moment.pairs() {
                let (before, now) = (open(before), open(after));
                closed.extend(before.difference(&now).cloned());
                prop_assert!(closed.is_disjoint(&now), "{:?}", moment);
            }
        }
    }
}

/// The question that the event closes.
fn closed_by(event: &Event) -> Option<&QuestionKey> {
    match event {
        Event::Answer(answer) => Some(&answer.key),
        Event::TimeOut(time_out) => Some(&time_out.key),
        _ => None,
    }
}

fn open(task: &Task) -> HashSet<(TaskKey, QuestionKey)> {
    let questions = task.phase.questions().into_iter().flatten();
    questions.map(|question| (task.key.clone(), question.key.clone())).collect()
}

//! A question is asked once and answered once.

use std::collections::HashSet;

use longhaul_task::{Event, JournalWrite, PhaseName, QuestionKey, Questions, Task, TaskKey, TransitionError};
use proptest::prelude::*;

use crate::model::{History, plans};

proptest! {
    #[test]
    fn a_question_key_is_never_used_twice_in_a_tasks_life(plan in plans()) {
        let mut used = HashSet::new();
        for (moment, change) in History::of(&plan).changes() {
            let Event::Ask(ask) = &moment.event else { continue };
            let Some(JournalWrite::Asked { key, record }) = &change.journal_write else {
                return Err(TestCaseError::fail("a question without a record"));
            };
            prop_assert!(used.insert((moment.id.clone(), key.clone())), "{} again", key);
            prop_assert!(change.task.phase.questions().is_some_and(|open| open.find(key).is_some()));
            prop_assert_eq!((&record.position, &record.key, record.digest), (&ask.position, &ask.label, ask.digest));
        }
    }

    #[test]
    fn a_question_is_answered_at_most_once_and_only_after_it_was_asked(plan in plans()) {
        let mut open = HashSet::new();
        for moment in &History::of(&plan).moments {
            let task = moment.task();
            match (&moment.event, &moment.result) {
                (Event::Answer(answer), Ok(change)) => {
                    prop_assert!(open.remove(&(moment.id.clone(), answer.key.clone())), "{} again", answer.key);
                    let journal_write = JournalWrite::Answered { key: answer.key.clone(), body: answer.body.clone() };
                    prop_assert_eq!(change.journal_write.as_ref(), Some(&journal_write));
                }
                (Event::Answer(answer), Err(refused)) => {
                    let is_open = task.phase.questions().is_some_and(|open| open.find(&answer.key).is_some());
                    prop_assert!(!is_open, "the answer to an open question was refused");
                    let expected = if task.is_settled() { TransitionError::Settled } else { TransitionError::NoSuchQuestion };
                    prop_assert_eq!(refused, &expected);
                }
                (_, Ok(change)) => {
                    if let Some(JournalWrite::Asked { key, .. }) = &change.journal_write {
                        open.insert((moment.id.clone(), key.clone()));
                    }
                }
                _ => {}
            }
        }
    }

    #[test]
    fn an_answer_closes_its_own_question_and_no_other(plan in plans()) {
        for (moment, change) in History::of(&plan).changes() {
            let Event::Answer(answer) = &moment.event else { continue };
            let left: Vec<_> =
                moment.task().phase.questions().into_iter().flatten().filter(|open| open.key != answer.key).collect();
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
                let answered = match &moment.event {
                    Event::Answer(answer) if before.key.id == moment.id => Some(&answer.key),
                    _ => None,
                };
                let starts_over = !before.resumes() && matches!(moment.event, Event::Lose(_) | Event::Release(_));
                for question in before.phase.questions().into_iter().flatten() {
                    let stays = after.phase.questions().is_some_and(|open| open.find(&question.key) == Some(question));
                    prop_assert!(stays || answered == Some(&question.key) || starts_over, "{:?}", moment);
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
                prop_assert_eq!((&open.position, open.digest, key.label()), (&ask.position, ask.digest, &*ask.label));
            }
        }
    }

    /// The fork that asked can continue, even if the other forks still wait.
    #[test]
    fn any_answer_wakes_a_parked_task(plan in plans()) {
        for (moment, change) in History::of(&plan).changes() {
            if matches!(moment.event, Event::Answer(_)) && moment.task().phase.wake_condition().is_some() {
                prop_assert_eq!(change.task.phase.not_before(), Some(moment.now));
            }
        }
    }

    /// A question is closed by its answer, or when an attempt that starts over is lost or releases the task.
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

fn open(task: &Task) -> HashSet<(TaskKey, QuestionKey)> {
    let questions = task.phase.questions().into_iter().flatten();
    questions.map(|question| (task.key.clone(), question.key.clone())).collect()
}

use foldhash::{HashMap, HashSet};
use longhaul_task::{JournalPosition, QuestionKey, TaskKey};

use super::Law;
use super::durable_states::DurableStates;
use crate::ledger::{Ack, Commit, Fact, WrittenEntry, short};

/// A question is asked once and answered once. Its key is not used again, and its answer is kept.
#[derive(Default)]
pub(super) struct QuestionLaw {
    /// By task and life: all keys used so far.
    used: HashMap<(TaskKey, usize), HashSet<QuestionKey>>,
    /// By task, life and epoch: the positions at which questions were asked.
    positions: HashMap<(TaskKey, usize, u32), HashSet<JournalPosition>>,
    answered: HashSet<(TaskKey, usize, QuestionKey)>,
}

impl Law for QuestionLaw {
    fn statement(&self) -> &'static str {
        "a question is asked once and answered once"
    }

    fn observe(&mut self, states: &DurableStates, fact: &Fact) -> Result<(), String> {
        match fact {
            Fact::Committed(commit) => {
                self.asked(states, commit)?;
                self.answers(commit)?;
                on_time(states, commit)?;
                kept(states, commit)
            }
            Fact::Acknowledged { what: Ack::Answered { question, .. }, key, .. } => {
                let mut lives = 0..=states.lives(key).count();
                if lives.any(|life| self.answered.contains(&(key.clone(), life, question.clone()))) {
                    Ok(())
                } else {
                    Err(format!("the answer to {question} of {} is not on the disk", short(key)))
                }
            }
            _ => Ok(()),
        }
    }
}

impl QuestionLaw {
    fn asked(&mut self, states: &DurableStates, commit: &Commit) -> Result<(), String> {
        for task in commit.written.iter().filter_map(|written| written.after.as_ref()) {
            let Some(open) = task.phase.questions() else { continue };
            let before = states.before(task);
            let old = before.and_then(|before| before.phase.questions());
            let life = states.life(task);
            for question in open.iter().filter(|question| old.is_none_or(|old| old.find(&question.key).is_none())) {
                if !self.used.entry((task.key.clone(), life)).or_default().insert(question.key.clone()) {
                    return Err(format!("{} of {} was used before", question.key, short(&task.key)));
                }
                let positions = self.positions.entry((task.key.clone(), life, task.epoch())).or_default();
                if !positions.insert(question.position.clone()) {
                    return Err(format!(
                        "{} of {} was asked again as {}",
                        question.position.seq,
                        short(&task.key),
                        question.key
                    ));
                }
            }
        }
        Ok(())
    }

    fn answers(&mut self, commit: &Commit) -> Result<(), String> {
        for recorded in &commit.recorded {
            let (Some(question), Some(_)) = (&recorded.entry.question, recorded.output()) else { continue };
            if recorded.entry.note.is_some() {
                continue;
            }
            if !self.answered.insert((recorded.key.clone(), recorded.life, question.clone())) {
                return Err(format!("{question} of {} was answered before", short(&recorded.key)));
            }
        }
        Ok(())
    }
}

/// A handler that resumes finds every question of earlier attempts, open or answered.
fn kept(states: &DurableStates, commit: &Commit) -> Result<(), String> {
    for task in commit.written.iter().filter_map(|written| written.after.as_ref()) {
        let before = states.before(task);
        let Some(before) = before.filter(|_| task.resumes() && !task.is_settled()) else { continue };
        for question in before.phase.questions().into_iter().flatten() {
            let open = task.phase.questions().is_some_and(|open| open.find(&question.key).is_some());
            let answered = commit.recorded.iter().any(|recorded| {
                recorded.key == task.key
                    && recorded.entry.question.as_ref() == Some(&question.key)
                    && recorded.output().is_some()
            });
            if !open && !answered {
                return Err(format!("{} of {} is gone without an answer", question.key, short(&task.key)));
            }
        }
    }
    Ok(())
}

/// A question gets its default at its deadline and not before.
fn on_time(states: &DurableStates, commit: &Commit) -> Result<(), String> {
    for task in commit.written.iter().filter_map(|written| written.after.as_ref()) {
        for question in states.before(task).and_then(|before| before.phase.questions()).into_iter().flatten() {
            let Some(deadline) = &question.deadline else { continue };
            let is_default = |recorded: &WrittenEntry| {
                recorded.key == task.key
                    && recorded.entry.question.as_ref() == Some(&question.key)
                    && recorded.entry.state == deadline.default.clone().into_state()
            };
            let is_closed = task.phase.questions().is_none_or(|open| open.find(&question.key).is_none());
            if is_closed && commit.recorded.iter().any(is_default) && commit.now < deadline.wait.until {
                return Err(format!("{} of {} got its default before its deadline", question.key, short(&task.key)));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use longhaul_task::transition::AnswerQuestion;
    use longhaul_task::{Answer, Event, Json, QuestionKey};

    use crate::check::test_ledger::{TestLedger, ask};
    use crate::ledger::Ack;

    #[test]
    fn a_question_key_that_is_used_again_is_caught() {
        let (mut ledger, created) = TestLedger::with_task();
        let asked = ledger.apply(&created, &ask(1));
        let answer = Event::Answer(AnswerQuestion {
            key: QuestionKey::from_text("q-1"),
            answer: Answer::Given(Json::from_text("1")),
        });
        let mut answered = ledger.apply(&asked, &answer);
        answered.questions_asked = 0;
        ledger.apply(&answered, &ask(1));
        ledger.assert_breaks("a question is asked once and answered once");
    }

    #[test]
    fn an_answer_that_was_acknowledged_and_not_kept_is_caught() {
        let (mut ledger, created) = TestLedger::with_task();
        let asked = ledger.apply(&created, &ask(1));
        let (question, answer) = (QuestionKey::from_text("q-1"), Answer::Given(Json::from_text("1")));
        let answered =
            ledger.apply(&asked, &Event::Answer(AnswerQuestion { key: question.clone(), answer: answer.clone() }));
        ledger.acknowledge(Ack::Answered { question, answer }, &answered);
        ledger.assert_breaks("a question is asked once and answered once");
    }
}

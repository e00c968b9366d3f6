use foldhash::HashMap;
use longhaul_task::{EntryKind, JournalPosition, Json, QuestionKey, Task, TaskId, TaskKey};

use super::Law;
use super::durable_states::DurableStates;
use crate::ledger::{Ack, Commit, Fact, WrittenEntry, output_of, short};

/// The output of an operation is recorded once, every later attempt gets it, and no output that a handler has used is missing
/// when its task settles.
#[derive(Default)]
pub(super) struct JournalLaw {
    /// By task, number of its life, epoch and position.
    outputs: HashMap<(TaskKey, usize, u32, JournalPosition), Json>,
    /// By task, number of its life and question.
    answers: HashMap<(TaskKey, usize, QuestionKey), Json>,
    /// The outputs that handlers have got and that are not recorded yet. By task, number of its life and attempt.
    unrecorded: HashMap<(TaskKey, usize, u32), Vec<(JournalPosition, Json)>>,
}

impl Law for JournalLaw {
    fn statement(&self) -> &'static str {
        "a recorded output does not change"
    }

    fn observe(&mut self, states: &DurableStates, fact: &Fact) -> Result<(), String> {
        let newest_life = |key: &TaskKey| states.lives(key).count();
        match fact {
            Fact::Committed(commit) => {
                commit.recorded.iter().try_for_each(|recorded| self.record(recorded))?;
                self.settle(states, commit)
            }
            Fact::Got { key, attempt, epoch, position, output } => {
                // A handler whose task was deleted may get a recorded output when another task already has the same key.
                let newest = newest_life(key);
                let output_in = |life| self.outputs.get(&(key.clone(), life, *epoch, position.clone()));
                let kept: Vec<&Json> = (0..=newest).filter_map(output_in).collect();
                if kept.contains(&output) {
                    return Ok(());
                }
                // If several tasks have had the key, the fact does not say to which of them the handler belongs.
                if output_in(newest).is_none() || newest > 1 {
                    let of = (key.clone(), newest, *attempt);
                    self.unrecorded.entry(of).or_default().push((position.clone(), output.clone()));
                    return Ok(());
                }
                Err(format!("{} {position:?}: a handler got {output:?}, recorded is {kept:?}", short(key)))
            }
            Fact::ChildEnded { key, epoch, position, outcome } => {
                let recorded = |life| self.outputs.get(&(key.clone(), life, *epoch, position.clone()));
                let children = (0..=newest_life(key)).filter_map(recorded).filter_map(|id| child_key(key, id));
                let lives: Vec<&Task> = children
                    .flat_map(|child| states.lives(&child).filter_map(|life| life.last()).collect::<Vec<_>>())
                    .map(|task| &**task)
                    .collect();
                if lives.iter().any(|child| child.phase.outcome() == Some(outcome)) {
                    return Ok(());
                }
                Err(format!("{} {position:?}: got {outcome:?} of a subtask that has {lives:?}", short(key)))
            }
            Fact::Acknowledged { what: Ack::Answered { question, answer }, key, .. } => {
                // The task that was answered may have been deleted before the acknowledgement.
                let answer_in = |life| self.answers.get(&(key.clone(), life, question.clone()));
                let kept: Vec<&Json> = (0..=newest_life(key)).filter_map(answer_in).collect();
                let told = output_of(&answer.clone().into_state());
                if kept.is_empty() || told.is_some_and(|told| kept.contains(&&told)) {
                    return Ok(());
                }
                Err(format!("{} {question}: acknowledged the answer {answer:?}, recorded is {kept:?}", short(key)))
            }
            _ => Ok(()),
        }
    }
}

impl JournalLaw {
    fn record(&mut self, recorded: &WrittenEntry) -> Result<(), String> {
        let WrittenEntry { key, life, epoch, entry, .. } = recorded;
        let Some(output) = recorded.output() else { return Ok(()) };
        if let Some(question) = &entry.question {
            self.answers.insert((key.clone(), *life, question.clone()), output.clone());
        }
        let position = &entry.position;
        let before = self.outputs.insert((key.clone(), *life, *epoch, position.clone()), output.clone());
        // An answered question is written again with a note, and a timer when the clock was set back.
        let may_repeat = match entry.kind {
            EntryKind::Question => before.as_ref() == Some(&output),
            EntryKind::Timer => true,
            _ => false,
        };
        if let Some(before) = before.filter(|_| !may_repeat) {
            return Err(format!(
                "{} {position:?}: the recorded output {before:?} was replaced by {output:?}",
                short(key)
            ));
        }
        let unrecorded = self.unrecorded.get_mut(&(key.clone(), *life, entry.attempt));
        let got: Vec<Json> = unrecorded
            .map(|all| all.extract_if(.., |(at, _)| at == position).map(|(_, got)| got).collect())
            .unwrap_or_default();
        if got.is_empty() || got.contains(&output) {
            return Ok(());
        }
        Err(format!("{} {position:?}: a handler got {got:?}, and {output:?} was recorded", short(key)))
    }

    /// When the handler of a task that resumes settles it, every output that the handler has got is recorded.
    fn settle(&self, states: &DurableStates, commit: &Commit) -> Result<(), String> {
        for written in commit.written.iter().filter(|written| written.event == "settle") {
            let Some(task) = written.after.as_ref().filter(|task| task.resumes() && task.is_settled()) else {
                continue;
            };
            let of = (task.key.clone(), states.life(task), task.attempt);
            if let Some((position, output)) = self.unrecorded.get(&of).and_then(|all| all.first()) {
                return Err(format!("{} settled without an entry for {output:?} at {position:?}", short(&task.key)));
            }
        }
        Ok(())
    }
}

/// The key of the subtask whose ID is recorded.
pub(super) fn child_key(parent: &TaskKey, id: &Json) -> Option<TaskKey> {
    let id = TaskId::parse(id.as_str().trim_matches('"')).ok()?;
    Some(TaskKey { owner: parent.owner.clone(), id })
}

#[cfg(test)]
mod tests {
    use longhaul_task::transition;
    use longhaul_task::transition::Create;

    use crate::check::test_ledger::{TestLedger, cancel, key, new, resumed, settle};

    #[test]
    fn a_record_that_changes_is_caught() {
        let (mut ledger, _) = TestLedger::with_task();
        ledger.record(&key("a"), None, "1");
        ledger.record(&key("a"), None, "2");
        ledger.assert_breaks("a recorded output does not change");
    }

    #[test]
    fn a_handler_that_gets_something_else_than_is_on_record_is_caught() {
        let (mut ledger, _) = TestLedger::with_task();
        ledger.record(&key("a"), None, "1");
        ledger.got("a", 1, "2");
        ledger.assert_breaks("a recorded output does not change");
    }

    #[test]
    fn a_handler_may_hear_of_its_record_when_its_task_is_deleted_and_another_has_the_id() {
        let (mut ledger, task) = TestLedger::with_task();
        ledger.record(&key("a"), None, "1");
        let cancelled = ledger.apply(&task, &cancel());
        ledger.commit("delete", &cancelled.key, None);
        let again = transition::create(&Create { first_fence: 1 << 40, ..new("a") }, ledger.now);
        ledger.commit("create", &again.key, Some(again.clone()));
        ledger.got("a", 1, "1");
        ledger.assert_holds();
    }

    #[test]
    fn an_output_that_is_missing_when_the_task_settles_is_caught() {
        let (mut ledger, task) = resumed();
        ledger.effect("a", 0, true);
        ledger.got("a", 0, "1");
        ledger.apply(&task, &settle(1));
        ledger.assert_breaks("a recorded output does not change");
    }
}

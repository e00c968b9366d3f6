use foldhash::HashMap;
use longhaul_task::{JournalPosition, Json, QuestionKey, TaskKey};

use super::Law;
use super::durable_states::DurableStates;
use crate::ledger::{Ack, Fact, short};

/// The output of a step and the answer to a question are recorded once, and every later attempt gets them.
#[derive(Default)]
pub(super) struct JournalLaw {
    /// By task, number of its life, epoch and position.
    outputs: HashMap<(TaskKey, usize, u32, JournalPosition), Json>,
    /// By task, number of its life and question.
    answers: HashMap<(TaskKey, usize, QuestionKey), Json>,
}

impl Law for JournalLaw {
    fn statement(&self) -> &'static str {
        "a recorded step is done"
    }

    fn observe(&mut self, states: &DurableStates, fact: &Fact) -> Result<(), String> {
        let newest_life = |key: &TaskKey| states.lives(key).count();
        match fact {
            Fact::Committed(commit) => {
                for recorded in &commit.recorded {
                    let Some(output) = &recorded.output else { continue };
                    let key = &recorded.key;
                    if let Some(question) = &recorded.question {
                        self.answers.insert((key.clone(), recorded.life, question.clone()), output.clone());
                    }
                    let position = (key.clone(), recorded.life, recorded.epoch, recorded.position.clone());
                    if let Some(before) = self.outputs.insert(position, output.clone()) {
                        return Err(format!(
                            "{} {:?}: the recorded output {before:?} was replaced by {output:?}",
                            short(key),
                            recorded.position
                        ));
                    }
                }
                Ok(())
            }
            Fact::Got { key, epoch, position, output } => {
                // A handler whose task was deleted may hear late of what was recorded before, when its key has another life.
                let output_in = |life| self.outputs.get(&(key.clone(), life, *epoch, position.clone()));
                let kept: Vec<&Json> = (0..=newest_life(key)).filter_map(output_in).collect();
                if kept.contains(&output) {
                    return Ok(());
                }
                Err(format!("{} {position:?}: a handler got {output:?}, recorded is {kept:?}", short(key)))
            }
            Fact::Acknowledged { what: Ack::Answered { question, body }, key, .. } => {
                // The life that the answer was for may have ended before the acknowledgement.
                let answer_in = |life| self.answers.get(&(key.clone(), life, question.clone()));
                let kept: Vec<&Json> = (0..=newest_life(key)).filter_map(answer_in).collect();
                if kept.is_empty() || kept.contains(&body) {
                    return Ok(());
                }
                Err(format!("{} {question}: acknowledged the answer {body:?}, recorded is {kept:?}", short(key)))
            }
            _ => Ok(()),
        }
    }
}

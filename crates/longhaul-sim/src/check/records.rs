use foldhash::HashMap;
use longhaul_task::{JournalPosition, Json, TaskKey};

use super::Law;
use super::durable_states::DurableStates;
use crate::ledger::{Ack, Fact, short};

/// A journal entry is written once, and every later attempt reads it.
#[derive(Default)]
pub(super) struct JournalLaw {
    /// By task, life, epoch and position.
    outputs: HashMap<(TaskKey, usize, u32, JournalPosition), Json>,
    answers: HashMap<(TaskKey, usize, longhaul_task::QuestionKey), Json>,
}

impl Law for JournalLaw {
    fn statement(&self) -> &'static str {
        "a recorded step is done"
    }

    fn observe(&mut self, states: &DurableStates, fact: &Fact) -> Result<(), String> {
        let life = |key: &TaskKey| states.lives(key).count();
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
                        return Err(format!("{} {:?}: {before:?} became {output:?}", short(key), recorded.position));
                    }
                }
                Ok(())
            }
            Fact::Got { key, epoch, position, output } => {
                match self.outputs.get(&(key.clone(), life(key), *epoch, position.clone())) {
                    Some(kept) if kept == output => Ok(()),
                    kept => Err(format!("{} {position:?}: got {output:?}, on record is {kept:?}", short(key))),
                }
            }
            Fact::Acknowledged { what: Ack::Answered { question, body }, key, .. } => {
                let of = |life| self.answers.get(&(key.clone(), life, question.clone()));
                let kept: Vec<&Json> = (0..=life(key)).filter_map(of).collect();
                if kept.is_empty() || kept.contains(&body) {
                    return Ok(());
                }
                Err(format!("{} {question}: answered {body:?}, on record is {kept:?}", short(key)))
            }
            _ => Ok(()),
        }
    }
}

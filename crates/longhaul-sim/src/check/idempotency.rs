use std::sync::Arc;

use foldhash::HashMap;
use longhaul_store::IdempotencyKey;
use longhaul_task::{Owner, TaskKey};

use super::Law;
use super::durable_states::DurableStates;
use crate::ledger::{Commit, Fact, KeyedResponse, short};

/// An idempotency key names one task of its owner while that task exists, and every request under the key is answered with it.
#[derive(Default)]
pub(super) struct IdempotencyLaw {
    uses: HashMap<(Owner, Arc<str>), Vec<KeyUse>>,
}

/// One task under a key, from its creation to its deletion.
struct KeyUse {
    task: TaskKey,
    digest: [u8; 32],
    created_at: usize,
    deleted_at: Option<usize>,
    /// Whether a client was told that its request has created the task.
    is_acknowledged: bool,
}

impl Law for IdempotencyLaw {
    fn statement(&self) -> &'static str {
        "an idempotency key names one task"
    }

    fn observe(&mut self, states: &DurableStates, fact: &Fact) -> Result<(), String> {
        match fact {
            Fact::Committed(commit) => self.committed(states.line, commit),
            Fact::KeyedCreation { began, owner, request, response } => self.answered(*began, owner, request, response),
            _ => Ok(()),
        }
    }
}

impl IdempotencyLaw {
    fn committed(&mut self, line: usize, commit: &Commit) -> Result<(), String> {
        for written in &commit.written {
            if written.after.is_none() {
                for key_use in self.uses.values_mut().flatten().filter(|key_use| key_use.task == written.key) {
                    key_use.deleted_at.get_or_insert(line);
                }
            }
            let Some(IdempotencyKey { key, digest }) = &written.idempotency else { continue };
            let uses = self.uses.entry((written.key.owner.clone(), Arc::clone(key))).or_default();
            if let Some(other) = uses.iter().find(|key_use| key_use.deleted_at.is_none()) {
                return Err(format!("{} was created under {key:?} beside {}", short(&written.key), short(&other.task)));
            }
            uses.push(KeyUse {
                task: written.key.clone(),
                digest: *digest,
                created_at: line,
                deleted_at: None,
                is_acknowledged: false,
            });
        }
        Ok(())
    }

    fn answered(
        &mut self,
        began: usize,
        owner: &Owner,
        request: &IdempotencyKey,
        response: &KeyedResponse,
    ) -> Result<(), String> {
        let key = &request.key;
        let uses = self.uses.entry((owner.clone(), Arc::clone(key))).or_default();
        // Only tasks that existed while the request was under way.
        let mut uses = uses.iter_mut().filter(|key_use| key_use.deleted_at.is_none_or(|line| line >= began));
        let found = match response {
            KeyedResponse::Refused => uses.find(|key_use| key_use.digest != request.digest),
            KeyedResponse::Created(task) | KeyedResponse::Existed(task) => {
                uses.find(|key_use| key_use.task == *task && key_use.digest == request.digest)
            }
        };
        let found = found.ok_or_else(|| format!("{response:?} under {key:?}, and no such task was there"))?;
        if let KeyedResponse::Created(task) = response {
            if found.is_acknowledged || found.created_at < began {
                return Err(format!("{} was created by another request under {key:?}", short(task)));
            }
            found.is_acknowledged = true;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use longhaul_task::Event;
    use longhaul_task::transition::Delete;

    use crate::check::test_ledger::{TestLedger, cancel, key};
    use crate::ledger::KeyedResponse;

    #[test]
    fn a_second_task_under_an_idempotency_key_is_caught() {
        let mut ledger = TestLedger::new();
        let first = ledger.create_keyed("a", 1);
        ledger.answer_keyed(0, 1, KeyedResponse::Created(first.key.clone()));
        ledger.answer_keyed(0, 1, KeyedResponse::Existed(first.key.clone()));
        ledger.answer_keyed(0, 2, KeyedResponse::Refused);
        let ended = ledger.apply(&first, &cancel());
        ledger.apply(&ended, &Event::Delete(Delete));
        ledger.create_keyed("b", 2);
        ledger.assert_holds();
        ledger.create_keyed("c", 2);
        ledger.assert_breaks("an idempotency key names one task");
    }

    #[test]
    fn a_wrong_answer_under_an_idempotency_key_is_caught() {
        let answers = [
            (1, KeyedResponse::Created(key("a"))),
            (1, KeyedResponse::Existed(key("b"))),
            (2, KeyedResponse::Existed(key("a"))),
            (1, KeyedResponse::Refused),
        ];
        for (digest, response) in answers {
            let mut ledger = TestLedger::new();
            ledger.create_keyed("a", 1);
            ledger.answer_keyed(0, 1, KeyedResponse::Created(key("a")));
            ledger.assert_holds();
            let began = ledger.lines.len();
            ledger.answer_keyed(began, digest, response);
            ledger.assert_breaks("an idempotency key names one task");
        }
    }
}

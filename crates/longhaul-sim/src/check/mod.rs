//! Checks a ledger against the laws. Each law has a file, with ledgers that break it.

mod attempts;
mod durable;
mod durable_states;
mod families;
mod fences;
mod finality;
mod foreign;
mod idempotency;
mod journal;
mod limits;
mod progress;
mod questions;
mod readers;
mod recovery;
mod renames;
mod returns;
mod steps;
#[cfg(test)]
mod test_ledger;
mod time;
mod waking;
mod watchers;

use self::durable_states::DurableStates;
use crate::ledger::{Entry, Fact};

/// A law that a history broke.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{law}: {what} (line {line})")]
pub struct Violation {
    pub law: &'static str,
    pub what: String,
    /// The line of the ledger that violates the law.
    pub line: usize,
}

/// A law. It observes the ledger line by line; `states` already contains the line.
trait Law {
    /// The law in one sentence.
    fn statement(&self) -> &'static str;

    fn observe(&mut self, states: &DurableStates, fact: &Fact) -> Result<(), String>;
}

fn laws() -> [Box<dyn Law>; 19] {
    [
        Box::new(durable::DurabilityLaw),
        Box::new(finality::FinalityLaw),
        Box::new(fences::FenceLaw),
        Box::new(questions::QuestionLaw::default()),
        Box::new(journal::JournalLaw::default()),
        Box::new(steps::StepLaw::default()),
        Box::new(attempts::AttemptLaw::default()),
        Box::new(families::FamilyLaw::default()),
        Box::new(foreign::ForeignTaskLaw),
        Box::new(idempotency::IdempotencyLaw::default()),
        Box::new(limits::LimitLaw::default()),
        Box::new(time::TimeLaw::default()),
        Box::new(waking::WakingLaw),
        Box::new(readers::ReaderLaw::default()),
        Box::new(recovery::RecoveryLaw),
        Box::new(renames::RenameLaw::default()),
        Box::new(returns::ReturnLaw::default()),
        Box::new(watchers::WatcherLaw),
        Box::new(progress::ProgressLaw),
    ]
}

/// Checks a whole ledger against every law.
pub fn check(ledger: &[Entry]) -> Result<(), Violation> {
    let mut states = DurableStates::default();
    let mut laws = laws();
    for (line, entry) in ledger.iter().enumerate() {
        let counted = states.take(line, entry);
        counted.map_err(|what| Violation { law: "every change is counted", what, line })?;
        for law in &mut laws {
            law.observe(&states, &entry.fact).map_err(|what| Violation { law: law.statement(), what, line })?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use longhaul_task::transition::AnswerQuestion;
    use longhaul_task::{Answer, Event, Json, QuestionKey};

    use crate::check::test_ledger::{TestLedger, ask, key, settle};
    use crate::ledger::{Ack, EndStage, Fact};

    #[test]
    fn an_honest_ledger_breaks_no_law() {
        let (mut ledger, created) = TestLedger::with_task();
        ledger.acknowledge(Ack::Created, &created);
        ledger.read(&created.key, Some(&created));
        let asked = ledger.apply(&created, &ask(1));
        let (question, answer) = (QuestionKey::from_text("q-1"), Answer::Given(Json::from_text("\"yes\"")));
        let answered =
            ledger.apply(&asked, &Event::Answer(AnswerQuestion { key: question.clone(), answer: answer.clone() }));
        ledger.record(&created.key, Some("q-1"), "\"yes\"");
        ledger.acknowledge(Ack::Answered { question, answer }, &answered);
        let settled = ledger.apply(&answered, &settle(1));
        ledger.note(Fact::Wrote { key: key("a"), fence: 1, event: "settle", revision: settled.revision });
        ledger.quiet(EndStage::Settled, 0, 0);
        ledger.now = ledger.now.plus_ms(1_000);
        ledger.commit("expire", &created.key, None);
        ledger.read(&created.key, None);
        ledger.assert_holds();
    }
}

use longhaul_task::{Json, QuestionKind};
use serde::{Deserialize, Serialize};

use super::Revision;
use crate::{Capabilities, Capability};

/// What a session knows about its client. Small and serialisable, so that the session's token can carry it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Peer {
    /// What is spoken.
    pub revision: Revision,
    /// What the client can do, as far as the revision has it.
    pub capabilities: Capabilities,
}

impl Peer {
    /// A client that declared these. What its revision does not have is left out, however loudly it was declared.
    pub fn new(revision: Revision, declared: Capabilities) -> Self {
        // The extension is not defined in this era: whoever declares it here gets no tasks by it.
        let mut capabilities = declared.without(Capability::Tasks);
        if !revision.has_url_elicitation() && capabilities.has(Capability::ElicitationUrl) {
            // Before there were modes, every elicitation was by form.
            capabilities = capabilities.without(Capability::ElicitationUrl).and(Capability::ElicitationForm);
        }
        if !revision.has_elicitation() {
            capabilities = capabilities.without(Capability::ElicitationForm);
        }
        if !revision.has_sampling_tools() {
            capabilities = capabilities.without(Capability::SamplingTools).without(Capability::SamplingContext);
        }
        if !revision.has_tasks() {
            let of_tasks = [
                Capability::LegacyTasks,
                Capability::SamplingTasks,
                Capability::ElicitationTasks,
                Capability::CancelTasks,
                Capability::ListTasks,
            ];
            capabilities = of_tasks.into_iter().fold(capabilities, Capabilities::without);
        }
        Self { revision, capabilities }
    }

    /// Whether such a question can be put to it.
    pub fn can_answer(self, kind: QuestionKind, params: &Json) -> bool {
        self.capabilities.can_answer(kind, params)
    }

    /// Whether it can answer such a question by way of a task of its own.
    pub fn can_run_as_task(self, kind: QuestionKind) -> bool {
        Capability::to_run_as_task(kind).is_some_and(|capability| self.capabilities.has(capability))
    }
}

//! The client of a request: its revision and its capabilities.

use longhaul_task::{Json, QuestionKind};
use serde::{Deserialize, Serialize};

use crate::{Capabilities, Capability, Revision};

/// The client: of a session, or as one stateless request describes it. Small and serialisable, so that a session's
/// token can carry it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Peer {
    pub revision: Revision,
    /// What the client declared, as far as the revision has it.
    pub capabilities: Capabilities,
}

impl Peer {
    /// Leaves out the capabilities that the revision does not have.
    pub fn new(revision: Revision, declared: Capabilities) -> Self {
        if revision.is_stateless() {
            return Self { revision, capabilities: declared };
        }
        // The extension is not defined for sessions: a client that declares it in `initialize` gets no tasks by it.
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

    pub fn can_answer(self, kind: QuestionKind, params: &Json) -> bool {
        self.capabilities.can_answer(kind, params)
    }

    /// Whether the client can answer such a question with a task of its own.
    pub fn can_run_as_task(self, kind: QuestionKind) -> bool {
        Capability::to_run_as_task(kind).is_some_and(|capability| self.capabilities.has(capability))
    }
}

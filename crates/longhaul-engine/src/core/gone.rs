//! Queued tasks whose tool no node serves.

use longhaul_store::ToolClaim;
use longhaul_task::transition::Settle;
use longhaul_task::{Event, Outcome, TaskError, TaskKey, ToolRef};

use super::{Action, Core};

/// How many tasks are claimed to be failed at once.
const BATCH: usize = 100;

impl Core {
    /// Claims the queued tasks of a tool that no node serves, to fail them.
    pub(super) fn tool_gone(&mut self, tool: ToolRef) -> Vec<Action> {
        if self.serves(&tool) || !self.failing.insert(tool.clone()) {
            return Vec::new();
        }
        vec![Action::Claim { claim: ToolClaim::new(tool, BATCH), commit: self.commits.begin() }]
    }

    /// Fails tasks that were claimed for that.
    pub(super) fn fail(&mut self, tool: &ToolRef, asked: usize, tasks: Vec<(TaskKey, u64)>) -> Vec<Action> {
        self.failing.remove(tool);
        let got = tasks.len();
        let mut actions = Vec::new();
        for (key, fence) in tasks {
            actions.extend(self.begin(key, tool, fence).into_iter().map(|action| match action {
                Action::Start { key, fence } => {
                    let outcome = Outcome::Error(TaskError::tool_gone(tool));
                    Action::Write { key, fence, event: Event::Settle(Settle { fence, outcome, entries: Vec::new() }) }
                }
                other => other,
            }));
        }
        if got == asked {
            actions.extend(self.tool_gone(tool.clone()));
        }
        actions
    }
}

//! The tools that an engine runs, and their ordinary calls. Tools can be added and removed while the engine runs.

use std::collections::BTreeSet;
use std::sync::Arc;

use foldhash::HashMap;
use longhaul_task::{Json, Owner, ToolRef};
use parking_lot::RwLock;

use crate::core::Core;
use crate::sorted::sorted;
use crate::{Budget, BudgetUse, CtxError, EngineError, EngineTool, Share};

/// A tool, and its ordinary calls under way.
pub(crate) struct RegisteredTool {
    pub(crate) tool: EngineTool,
    calls: Arc<Budget>,
}

impl RegisteredTool {
    fn new(tool: EngineTool) -> Arc<Self> {
        let calls = Budget::new("calls", tool.limits.calls_max);
        Arc::new(Self { tool, calls })
    }

    fn check_input(&self, input: &Json) -> Result<(), EngineError> {
        let (bytes, bytes_max) = (input.bytes(), self.tool.limits.input_bytes_max);
        if bytes > bytes_max { Err(EngineError::InputTooLarge { bytes, bytes_max }) } else { Ok(()) }
    }
}

#[derive(Default)]
pub(crate) struct Registry(RwLock<Tools>);

#[derive(Default)]
struct Tools {
    by_name: HashMap<Arc<str>, Arc<RegisteredTool>>,
    /// Tools that were removed while they had tasks. They stay in `by_name` until their tasks have ended.
    withdrawn: BTreeSet<Arc<str>>,
}

impl Registry {
    pub(crate) fn new(tools: Vec<EngineTool>) -> Self {
        let by_name = tools.into_iter().map(|tool| (Arc::clone(&tool.tool.name), RegisteredTool::new(tool))).collect();
        Self(RwLock::new(Tools { by_name, withdrawn: BTreeSet::new() }))
    }

    pub(crate) fn get(&self, tool: &str) -> Option<Arc<RegisteredTool>> {
        self.0.read().by_name.get(tool).cloned()
    }

    /// Adds a tool, or replaces the one of its name.
    pub(crate) fn insert(&self, tool: EngineTool) {
        let mut tools = self.0.write();
        tools.withdrawn.remove(&tool.tool.name);
        tools.by_name.insert(Arc::clone(&tool.tool.name), RegisteredTool::new(tool));
    }

    /// Marks a tool for removal. Returns false if there is no such tool, or if it is marked already.
    pub(crate) fn withdraw(&self, name: &str) -> bool {
        let mut tools = self.0.write();
        let Some((name, _)) = tools.by_name.get_key_value(name) else { return false };
        let name = Arc::clone(name);
        tools.withdrawn.insert(name)
    }

    /// Removes the withdrawn tools that have no tasks in this process any more. Returns whether it removed any.
    pub(crate) fn remove_idle(&self, core: &mut Core) -> bool {
        let mut tools = self.0.write();
        let Tools { by_name, withdrawn } = &mut *tools;
        let before = withdrawn.len();
        withdrawn.retain(|name| {
            let is_removed = core.unregister(name);
            if is_removed {
                by_name.remove(name);
            }
            !is_removed
        });
        withdrawn.len() < before
    }

    /// Finds the tool for a subtask, and checks the size of the subtask's input. `parent` is the tool of the task that
    /// creates the subtask.
    pub(crate) fn for_subtask(
        &self,
        tool: &str,
        input: &Json,
        parent: Option<&str>,
    ) -> Result<Arc<RegisteredTool>, CtxError> {
        let bad = |reason: String| CtxError::BadSubtask { tool: tool.into(), reason };
        let registered = self.get(tool).ok_or_else(|| bad("this server has no such tool".into()))?;
        let (result_kind, parent) = (registered.tool.result_kind, parent.and_then(|parent| self.get(parent)));
        if let Some(parent) = parent.map(|parent| parent.tool.result_kind).filter(|parent| *parent != result_kind) {
            let reason =
                format!("its result is that of a {result_kind}, and the task is a {parent}; use a step instead");
            return Err(bad(reason));
        }
        registered.check_input(input).map_err(|error| bad(error.to_string()))?;
        Ok(registered)
    }

    /// Admits an ordinary call of a tool. It counts until the share is dropped.
    pub(crate) fn admit_call(
        &self,
        tool: &Arc<str>,
        owner: &Owner,
        input: &Json,
    ) -> Result<(Arc<RegisteredTool>, Share), EngineError> {
        let registered = self.get(tool).ok_or_else(|| EngineError::NoSuchTool(Arc::clone(tool)))?;
        registered.check_input(input)?;
        let calls_max = registered.tool.limits.calls_max;
        let share = registered.calls.take(owner, 1).ok_or(EngineError::TooManyCalls { calls_max })?;
        Ok((registered, share))
    }

    pub(crate) fn budgets(&self) -> Vec<BudgetUse> {
        self.0.read().by_name.values().map(|registered| registered.calls.usage()).collect()
    }

    pub(crate) fn running_calls(&self) -> Vec<(Arc<str>, usize)> {
        let tools = self.0.read();
        let calls = tools.by_name.iter().map(|(name, registered)| (Arc::clone(name), registered.calls.usage().used));
        sorted(calls)
    }

    /// The tools that this node serves.
    pub(crate) fn served(&self) -> Vec<ToolRef> {
        sorted(self.0.read().by_name.values().map(|registered| registered.tool.tool.clone()))
    }
}

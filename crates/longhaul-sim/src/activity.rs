//! Counts the handlers that work. A handler works while at least one of its branches does not wait for its context.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::ledger::Fact;
use crate::world::World;

pub(crate) struct HandlerActivity {
    world: World,
    engine: usize,
    tool_index: usize,
    state: Mutex<ActivityState>,
}

struct ActivityState {
    /// The number of branches that have no branches of their own.
    leaves: usize,
    /// The number of leaves that wait.
    waiting: usize,
    stopped: bool,
    counted: bool,
}

impl HandlerActivity {
    pub(crate) fn begin(world: &World, engine: usize, tool_index: usize) -> Arc<Self> {
        world.state().handlers += 1;
        let state = ActivityState { leaves: 1, waiting: 0, stopped: false, counted: false };
        let work = Arc::new(Self { world: world.clone(), engine, tool_index, state: Mutex::new(state) });
        work.change(|_| ());
        work
    }

    /// Counts a branch as waiting, or as working again. A branch that is dropped while it waits stays counted as waiting.
    pub(crate) fn set_waiting(&self, branch: &BranchWait, waits: bool) {
        self.change(|state| {
            if branch.0.swap(waits, Ordering::Relaxed) != waits {
                state.waiting = if waits { state.waiting + 1 } else { state.waiting - 1 };
            }
        });
    }

    /// A group for the branches of one branch. That branch counts as waiting while the group is empty.
    pub(crate) fn group(self: &Arc<Self>, parent: &Arc<BranchWait>) -> LeafGroup {
        LeafGroup { work: Arc::clone(self), live: Arc::default(), parent: Arc::clone(parent) }
    }

    pub(crate) fn stop(&self) {
        self.change(|state| state.stopped = true);
    }

    fn change(&self, change: impl FnOnce(&mut ActivityState)) {
        let mut state = self.state.lock();
        change(&mut state);
        let works = !state.stopped && state.waiting < state.leaves;
        if works == state.counted {
            return;
        }
        state.counted = works;
        let handlers = {
            let mut world = self.world.state();
            if world.crashed.is_some() {
                return;
            }
            let count = world.working.entry((self.engine, self.tool_index)).or_default();
            *count = if works { *count + 1 } else { count.saturating_sub(1) };
            *count
        };
        if works && handlers > 1 {
            let tool = self.world.setup().tools[self.tool_index].tool.clone();
            self.world.note(Fact::Working { tool, handlers });
        }
    }
}

impl Drop for HandlerActivity {
    fn drop(&mut self) {
        self.stop();
        let mut world = self.world.state();
        if world.crashed.is_none() {
            world.handlers = world.handlers.saturating_sub(1);
        }
    }
}

pub(crate) struct LeafGroup {
    work: Arc<HandlerActivity>,
    /// The branches of the group that have not ended.
    live: Arc<Mutex<usize>>,
    parent: Arc<BranchWait>,
}

impl LeafGroup {
    /// Adds a branch. The first one replaces its parent among the leaves.
    pub(crate) fn leaf(&self) -> Leaf {
        let Self { work, live, parent } = self;
        let mut count = live.lock();
        *count += 1;
        let is_first = *count == 1;
        work.change(|state| {
            state.waiting -= usize::from(parent.0.swap(false, Ordering::Relaxed));
            state.leaves += usize::from(!is_first);
        });
        Leaf { work: Arc::clone(work), live: Arc::clone(live), parent: Arc::clone(parent), wait: Arc::default() }
    }
}

/// Counts a branch until it is dropped.
pub(crate) struct Leaf {
    work: Arc<HandlerActivity>,
    live: Arc<Mutex<usize>>,
    parent: Arc<BranchWait>,
    pub(crate) wait: Arc<BranchWait>,
}

/// Whether a branch waits.
#[derive(Default)]
pub(crate) struct BranchWait(AtomicBool);

impl Drop for Leaf {
    fn drop(&mut self) {
        let mut live = self.live.lock();
        *live -= 1;
        let is_last = *live == 0;
        self.work.change(|state| {
            state.waiting -= usize::from(self.wait.0.swap(false, Ordering::Relaxed));
            if is_last {
                state.waiting += usize::from(!self.parent.0.swap(true, Ordering::Relaxed));
            } else {
                state.leaves -= 1;
            }
        });
    }
}

//! Tracks whether every branch of a handler waits.
//!
//! A handler that forks its context runs several branches. A *leaf* is a started branch without started forks. The handler is
//! *waiting* when every leaf is inside a context operation that waits for an answer, for children or for a time. While it
//! is waiting, its worker can serve another task, and an ordinary call can hand its questions to the client.
//!
//! A branch with forks may wait, too, while a fork works; then the handler works. A fork that was made and not polled yet has
//! not started: it cannot work before the branch that made it goes on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Waker;

use longhaul_task::{ChildRange, QuestionKey, Wait};
use parking_lot::Mutex;

/// Shared by all branches of one run of a handler.
#[derive(Debug, Default)]
pub(crate) struct WaitTracker {
    state: Mutex<TrackerState>,
}

#[derive(Debug, Default)]
struct TrackerState {
    branches: BTreeMap<BranchId, BranchState>,
    next_branch: BranchId,
    leaves: usize,
    /// The leaves that do not wait.
    working: usize,
    /// The waits that have begun and not ended, by their number.
    waits: BTreeMap<u64, WaitFor>,
    next_wait: u64,
    waker: Option<Waker>,
}

type BranchId = u64;

#[derive(Debug, Default)]
struct BranchState {
    parent: Option<BranchId>,
    has_started: bool,
    started_forks: usize,
    waits: usize,
}

impl BranchState {
    fn is_leaf(&self) -> bool {
        self.has_started && self.started_forks == 0
    }

    fn works(&self) -> bool {
        self.is_leaf() && self.waits == 0
    }
}

/// What a branch waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WaitFor {
    /// The answer to a question of the task.
    Answer(QuestionKey),
    /// The end of all children in a range.
    Children(ChildRange),
    /// A time of the store's clock.
    Time(Wait),
    /// The answer to a question of an ordinary call. The client sends it with its next call.
    NextCall,
}

impl TrackerState {
    fn all_wait(&self) -> bool {
        self.leaves > 0 && self.working == 0
    }

    fn add_branch(&mut self, parent: Option<BranchId>) -> BranchId {
        let id = self.next_branch;
        self.next_branch += 1;
        self.branches.insert(id, BranchState { parent, ..BranchState::default() });
        id
    }

    /// Changes a branch and keeps the counts of leaves. A branch that has ended is not changed.
    fn change(&mut self, id: BranchId, change: impl FnOnce(&mut BranchState)) {
        let Some(branch) = self.branches.get_mut(&id) else { return };
        self.leaves -= usize::from(branch.is_leaf());
        self.working -= usize::from(branch.works());
        change(branch);
        self.leaves += usize::from(branch.is_leaf());
        self.working += usize::from(branch.works());
    }

    fn start(&mut self, id: BranchId) {
        let Some(branch) = self.branches.get(&id).filter(|branch| !branch.has_started) else { return };
        if let Some(parent) = branch.parent {
            self.change(parent, |parent| parent.started_forks += 1);
        }
        self.change(id, |branch| branch.has_started = true);
    }

    fn end(&mut self, id: BranchId) {
        let Some(BranchState { parent, has_started: true, .. }) = self.branches.get(&id) else {
            self.branches.remove(&id);
            return;
        };
        let parent = *parent;
        self.change(id, |branch| branch.has_started = false);
        self.branches.remove(&id);
        if let Some(parent) = parent {
            self.change(parent, |parent| parent.started_forks = parent.started_forks.saturating_sub(1));
        }
    }
}

impl WaitTracker {
    /// Whether there is a leaf, and every leaf waits.
    pub(crate) fn all_wait(&self) -> bool {
        self.state.lock().all_wait()
    }

    /// Calls `act` if every leaf waits. No wait can end before `act` returns. Returns whether every leaf waits.
    pub(crate) fn if_all_wait(&self, act: impl FnOnce()) -> bool {
        let state = self.state.lock();
        let all_wait = state.all_wait();
        if all_wait {
            act();
        }
        all_wait
    }

    /// What the branches wait for, if every leaf waits.
    pub(crate) fn waits(&self) -> Option<Vec<WaitFor>> {
        let state = self.state.lock();
        state.all_wait().then(|| state.waits.values().cloned().collect())
    }

    /// Sets the waker of the task that polls the handler. It is woken after every change that leaves all leaves waiting,
    /// because a branch may begin to wait on another thread.
    pub(crate) fn set_waker(&self, waker: &Waker) {
        let mut state = self.state.lock();
        if !state.waker.as_ref().is_some_and(|current| current.will_wake(waker)) {
            state.waker = Some(waker.clone());
        }
    }

    /// Changes the state, and wakes the task that polls the handler if every leaf waits then.
    fn update(&self, change: impl FnOnce(&mut TrackerState)) {
        let waker = {
            let mut state = self.state.lock();
            change(&mut state);
            state.all_wait().then(|| state.waker.clone()).flatten()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// One branch of a handler: the root, or a fork. Dropping it ends the branch.
#[derive(Debug)]
pub(crate) struct BranchGuard {
    wait_tracker: Arc<WaitTracker>,
    id: BranchId,
}

impl BranchGuard {
    /// The branch that the handler starts with.
    pub(crate) fn root(wait_tracker: Arc<WaitTracker>) -> Self {
        let mut id = 0;
        wait_tracker.update(|state| {
            id = state.add_branch(None);
            state.start(id);
        });
        Self { wait_tracker, id }
    }

    /// A fork of this branch. It counts when it has started.
    pub(crate) fn fork(&self) -> Self {
        let mut id = 0;
        self.wait_tracker.update(|state| id = state.add_branch(Some(self.id)));
        Self { wait_tracker: Arc::clone(&self.wait_tracker), id }
    }

    /// Starts this branch, when it is polled for the first time.
    pub(crate) fn start(&self) -> BranchStart {
        BranchStart { wait_tracker: Arc::clone(&self.wait_tracker), id: self.id }
    }

    /// Counts this branch as waiting until the guard is dropped.
    pub(crate) fn wait(&self, wait: WaitFor) -> WaitGuard {
        let (branch, mut number) = (self.id, 0);
        self.wait_tracker.update(|state| {
            number = state.next_wait;
            state.next_wait += 1;
            state.waits.insert(number, wait);
            state.start(branch);
            state.change(branch, |branch| branch.waits += 1);
        });
        WaitGuard { wait_tracker: Arc::clone(&self.wait_tracker), branch, number }
    }
}

impl Drop for BranchGuard {
    fn drop(&mut self) {
        self.wait_tracker.update(|state| state.end(self.id));
    }
}

/// The right to start a branch whose guard is elsewhere.
#[derive(Debug)]
pub(crate) struct BranchStart {
    wait_tracker: Arc<WaitTracker>,
    id: BranchId,
}

impl BranchStart {
    pub(crate) fn run(self) {
        self.wait_tracker.update(|state| state.start(self.id));
    }
}

#[derive(Debug)]
pub(crate) struct WaitGuard {
    wait_tracker: Arc<WaitTracker>,
    branch: BranchId,
    number: u64,
}

impl Drop for WaitGuard {
    fn drop(&mut self) {
        self.wait_tracker.update(|state| {
            state.waits.remove(&self.number);
            state.change(self.branch, |branch| branch.waits = branch.waits.saturating_sub(1));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handler_waits_when_all_its_leaves_do() {
        let wait_tracker = Arc::new(WaitTracker::default());
        let root = BranchGuard::root(Arc::clone(&wait_tracker));
        assert!(!wait_tracker.all_wait());

        let (left, right) = (root.fork(), root.fork());
        right.start().run();
        let left_waits = left.wait(WaitFor::NextCall);
        assert!(!wait_tracker.all_wait(), "the right branch still works");
        let right_waits = right.wait(WaitFor::NextCall);
        assert!(wait_tracker.all_wait());

        drop(left_waits);
        assert!(!wait_tracker.all_wait(), "the left branch goes on");
        drop(left);
        assert!(wait_tracker.all_wait(), "the left branch has ended, the right one waits");

        drop(right_waits);
        drop(right);
        assert!(!wait_tracker.all_wait(), "the root works again");
        let _waits = root.wait(WaitFor::NextCall);
        assert!(wait_tracker.all_wait());
    }

    #[test]
    fn a_branch_that_waits_does_not_hide_that_its_fork_works() {
        let wait_tracker = Arc::new(WaitTracker::default());
        let root = BranchGuard::root(Arc::clone(&wait_tracker));
        let fork = root.fork();
        let root_waits = root.wait(WaitFor::NextCall);
        assert!(wait_tracker.all_wait(), "the fork has not started, and only the root could start it");

        fork.start().run();
        assert!(!wait_tracker.all_wait(), "the fork works");
        let fork_waits = fork.wait(WaitFor::NextCall);
        assert!(wait_tracker.all_wait());
        drop(root_waits);
        assert!(wait_tracker.all_wait(), "the root goes on only to wait for its fork");
        drop((fork_waits, fork));
        assert!(!wait_tracker.all_wait(), "only the root is left, and works");
    }
}

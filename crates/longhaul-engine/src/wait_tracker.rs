//! Tracks whether every branch of a handler waits.
//!
//! A handler that forks its context runs several branches. A *leaf* is a branch without live forks. The handler is
//! *waiting* when every leaf is inside a context operation that waits for an answer, for children or for a time. While it
//! is waiting, its worker can serve another task, and an ordinary call can hand its questions to the client.

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
    leaves: usize,
    /// The waits that have begun and not ended, by their number.
    waits: BTreeMap<u64, WaitFor>,
    next_wait: u64,
    waker: Option<Waker>,
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
        self.leaves > 0 && self.waits.len() >= self.leaves
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
    parent: Option<Arc<BranchForks>>,
    forks: Arc<BranchForks>,
}

#[derive(Debug, Default)]
struct BranchForks {
    live_forks: Mutex<usize>,
}

impl BranchGuard {
    /// The branch that the handler starts with.
    pub(crate) fn root(wait_tracker: Arc<WaitTracker>) -> Self {
        wait_tracker.update(|state| state.leaves += 1);
        Self { wait_tracker, parent: None, forks: Arc::default() }
    }

    /// A fork of this branch.
    pub(crate) fn fork(&self) -> Self {
        let mut live_forks = self.forks.live_forks.lock();
        *live_forks += 1;
        if *live_forks > 1 {
            self.wait_tracker.update(|state| state.leaves += 1);
        }
        // With its first fork the parent is no longer a leaf, and the fork is one: the count stays the same.
        Self {
            wait_tracker: Arc::clone(&self.wait_tracker),
            parent: Some(Arc::clone(&self.forks)),
            forks: Arc::default(),
        }
    }

    /// Counts this branch as waiting until the guard is dropped.
    pub(crate) fn wait(&self, wait: WaitFor) -> WaitGuard {
        let mut number = 0;
        self.wait_tracker.update(|state| {
            number = state.next_wait;
            state.next_wait += 1;
            state.waits.insert(number, wait);
        });
        WaitGuard { wait_tracker: Arc::clone(&self.wait_tracker), number }
    }
}

impl Drop for BranchGuard {
    fn drop(&mut self) {
        let was_leaf = *self.forks.live_forks.lock() == 0;
        let parent_is_leaf_now = self.parent.as_ref().is_some_and(|parent| {
            let mut live_forks = parent.live_forks.lock();
            *live_forks -= 1;
            *live_forks == 0
        });
        match (was_leaf, parent_is_leaf_now) {
            (true, false) => self.wait_tracker.update(|state| state.leaves = state.leaves.saturating_sub(1)),
            (false, true) => self.wait_tracker.update(|state| state.leaves += 1),
            (true, true) | (false, false) => {}
        }
    }
}

#[derive(Debug)]
pub(crate) struct WaitGuard {
    wait_tracker: Arc<WaitTracker>,
    number: u64,
}

impl Drop for WaitGuard {
    fn drop(&mut self) {
        self.wait_tracker.update(|state| drop(state.waits.remove(&self.number)));
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
}

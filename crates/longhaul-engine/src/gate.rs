//! Finds out whether every branch of a handler waits.
//!
//! A handler that forks its context runs several branches. It is *waiting* when every leaf among them (a branch
//! without live forks of its own) is inside a context operation that waits: for an answer, a child or a time. Only then can its worker
//! be given to another task, and only then can an ordinary call hand its questions to the client.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Waker;

use longhaul_task::{ChildRange, QuestionKey, Wait};
use parking_lot::Mutex;

/// Shared by all branches of one run of a handler.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    state: Mutex<GateState>,
}

#[derive(Debug, Default)]
struct GateState {
    leaves: usize,
    /// What each waiting branch waits for, by the number of its wait.
    waits: BTreeMap<u64, WaitFor>,
    next_wait: u64,
    driver: Option<Waker>,
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
    /// The answer to a question of an ordinary call. It comes with the next call.
    NextCall,
}

impl GateState {
    fn all_wait(&self) -> bool {
        self.leaves > 0 && self.waits.len() >= self.leaves
    }
}

impl Gate {
    /// Whether there is a leaf, and every leaf waits.
    pub(crate) fn all_wait(&self) -> bool {
        self.state.lock().all_wait()
    }

    /// Calls `act` if every leaf waits; no leaf can go on before `act` returns. Returns whether every leaf waits.
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

    /// Sets the waker of the task that polls the handler. It is woken when a branch on another thread begins to wait.
    pub(crate) fn driven_by(&self, waker: &Waker) {
        let mut state = self.state.lock();
        if !state.driver.as_ref().is_some_and(|driver| driver.will_wake(waker)) {
            state.driver = Some(waker.clone());
        }
    }

    fn change(&self, change: impl FnOnce(&mut GateState)) {
        let driver = {
            let mut state = self.state.lock();
            change(&mut state);
            state.all_wait().then(|| state.driver.clone()).flatten()
        };
        if let Some(driver) = driver {
            driver.wake();
        }
    }
}

/// One branch of a handler: the root, or a fork.
#[derive(Debug)]
pub(crate) struct ForkGuard {
    gate: Arc<Gate>,
    parent: Option<Arc<BranchForks>>,
    forks: Arc<BranchForks>,
}

#[derive(Debug, Default)]
struct BranchForks {
    live_forks: Mutex<usize>,
}

impl ForkGuard {
    /// The handler itself.
    pub(crate) fn root(gate: Arc<Gate>) -> Self {
        gate.change(|state| state.leaves += 1);
        Self { gate, parent: None, forks: Arc::default() }
    }

    /// A branch of this one.
    pub(crate) fn fork(&self) -> Self {
        let mut live_forks = self.forks.live_forks.lock();
        *live_forks += 1;
        if *live_forks > 1 {
            self.gate.change(|state| state.leaves += 1);
        }
        // The first fork takes its parent's place among the leaves: the count stays.
        Self { gate: Arc::clone(&self.gate), parent: Some(Arc::clone(&self.forks)), forks: Arc::default() }
    }

    /// Counts this branch as waiting for as long as the guard lives.
    pub(crate) fn wait(&self, wait: WaitFor) -> WaitGuard {
        let mut number = 0;
        self.gate.change(|state| {
            number = state.next_wait;
            state.next_wait += 1;
            state.waits.insert(number, wait);
        });
        WaitGuard { gate: Arc::clone(&self.gate), number }
    }
}

impl Drop for ForkGuard {
    fn drop(&mut self) {
        let was_leaf = *self.forks.live_forks.lock() == 0;
        let parent_is_leaf_now = self.parent.as_ref().is_some_and(|parent| {
            let mut live_forks = parent.live_forks.lock();
            *live_forks -= 1;
            *live_forks == 0
        });
        match (was_leaf, parent_is_leaf_now) {
            (true, false) => self.gate.change(|state| state.leaves = state.leaves.saturating_sub(1)),
            (false, true) => self.gate.change(|state| state.leaves += 1),
            (true, true) | (false, false) => {}
        }
    }
}

#[derive(Debug)]
pub(crate) struct WaitGuard {
    gate: Arc<Gate>,
    number: u64,
}

impl Drop for WaitGuard {
    fn drop(&mut self) {
        self.gate.change(|state| drop(state.waits.remove(&self.number)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handler_waits_when_all_its_leaves_do() {
        let gate = Arc::new(Gate::default());
        let root = ForkGuard::root(Arc::clone(&gate));
        assert!(!gate.all_wait());

        let (left, right) = (root.fork(), root.fork());
        let left_waits = left.wait(WaitFor::NextCall);
        assert!(!gate.all_wait(), "the right branch still works");
        let right_waits = right.wait(WaitFor::NextCall);
        assert!(gate.all_wait());

        drop(left_waits);
        assert!(!gate.all_wait(), "the left branch goes on");
        drop(left);
        assert!(gate.all_wait(), "the left branch has ended, the right one waits");

        drop(right_waits);
        drop(right);
        assert!(!gate.all_wait(), "the root works again");
        let _waits = root.wait(WaitFor::NextCall);
        assert!(gate.all_wait());
    }
}

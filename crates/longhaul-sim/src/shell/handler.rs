//! A handler under way: branches that go through their script step by step.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use longhaul_store::Watch;
use longhaul_task::{Event, Place, QuestionKey, Task};

use crate::setup::{Op, Script};

/// What the shell keeps of an attempt.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is independent of the others")]
pub(crate) struct Running {
    pub(crate) fence: u64,
    pub(crate) attempt: u32,
    pub(crate) epoch: u32,
    /// Finds again what earlier attempts have done.
    pub(crate) resumes: bool,
    pub(crate) tool: usize,
    pub(crate) script: Arc<Script>,
    pub(crate) started: bool,
    /// It was told to stop.
    pub(crate) stopped: bool,
    /// It has returned, and its end is being written.
    pub(crate) ended: bool,
    /// The store did not let it go on.
    pub(crate) failed: bool,
    /// Whether all of it waited when last looked at.
    pub(crate) waited: bool,
    /// Its memory is being given up.
    pub(crate) parking: bool,
    /// It has returned before its children, and its end waits for them.
    pub(crate) held_back: Option<(Event, Option<Watch>)>,
    pub(crate) branches: Vec<Branch>,
}

#[derive(Debug)]
pub(crate) struct Branch {
    pub(crate) path: Arc<str>,
    pub(crate) ops: Arc<[Op]>,
    pub(crate) next: usize,
    /// How many recorded operations it has done.
    pub(crate) seq: u32,
    pub(crate) parent: Option<usize>,
    pub(crate) at: At,
}

/// Where a branch is.
#[derive(Debug)]
pub(crate) enum At {
    /// It can go on.
    Ready,
    /// It works, for so many steps more.
    Working(u32),
    /// The store has its request.
    Sent(Option<Watch>),
    /// Its question is open.
    Asking { question: QuestionKey, place: Place, watch: Watch, looked: bool },
    /// It waits for its children, of which so many were open when it looked.
    Joining { watch: Option<Watch>, open: u32 },
    /// It has what it waited for, and wants a worker.
    WantsWorker { answer: Option<Place> },
    /// It has one, and reads its answer.
    Resumed { answer: Option<Place> },
    /// So many forks of it are under way.
    Forked(usize),
    /// It runs until it is stopped; a stubborn one until it is dropped.
    Hanging,
    /// It is done.
    Over,
}

impl Running {
    pub(crate) fn new(tool: usize, script: Arc<Script>, task: &Task) -> Self {
        let first = Self::first(tool, script, task.resumes());
        Self { fence: task.fence, attempt: task.attempt, epoch: task.epoch(), ..first }
    }

    /// The first attempt of a task whose ID was minted for it.
    pub(crate) fn first(tool: usize, script: Arc<Script>, resumes: bool) -> Self {
        Self {
            fence: 1,
            attempt: 1,
            epoch: u32::from(!resumes),
            resumes,
            tool,
            script,
            started: false,
            stopped: false,
            ended: false,
            failed: false,
            waited: false,
            parking: false,
            held_back: None,
            branches: Vec::new(),
        }
    }

    pub(crate) fn start(&mut self) {
        self.started = true;
        let ops = Arc::clone(&self.script.ops);
        self.branches.push(Branch { path: "".into(), ops, next: 0, seq: 0, parent: None, at: At::Ready });
    }

    /// Whether every leaf among its branches waits for somebody else.
    pub(crate) fn all_wait(&self) -> bool {
        let mut leaves =
            self.branches.iter().filter(|branch| !matches!(branch.at, At::Forked(_) | At::Over)).peekable();
        leaves.peek().is_some()
            && leaves.all(|branch| matches!(branch.at, At::Asking { .. } | At::Joining { .. } | At::WantsWorker { .. }))
    }

    /// Whether every leaf waits for somebody who has not come.
    pub(crate) fn all_wait_for_others(&self) -> bool {
        self.all_wait() && !self.branches.iter().any(|branch| matches!(branch.at, At::WantsWorker { .. }))
    }

    /// Whether it uses a worker that it was given.
    pub(crate) fn works(&self) -> bool {
        self.started && !self.stopped && !self.ended && !self.all_wait()
    }

    /// A branch for work side by side.
    pub(crate) fn fork(&mut self, parent: usize, key: &str, ops: &Arc<[Op]>) {
        let above = &self.branches[parent].path;
        let path = if above.is_empty() { key.into() } else { format!("{above}/{key}").into() };
        self.branches.push(Branch { path, ops: Arc::clone(ops), next: 0, seq: 0, parent: Some(parent), at: At::Ready });
    }
}

impl Branch {
    /// The place of the next recorded operation.
    pub(crate) fn place(&mut self) -> Place {
        let place = Place { fork: Arc::clone(&self.path), seq: self.seq };
        self.seq += 1;
        place
    }
}

/// Whether the watched task changed since this was last asked.
pub(crate) fn heard(watch: &mut Watch) -> bool {
    let changed = pin!(watch.changed());
    changed.poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

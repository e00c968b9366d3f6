//! Subtasks: tasks that a handler creates, and whose results it uses.

use std::sync::Arc;

use longhaul_task::transition::{Cancel, Create, NewChild, Spawn};
use longhaul_task::{
    CHILDREN_MAX, ChildRange, EntryKind, EntryState, Event, JournalEntry, JournalPosition, Json, Outcome, TaskId,
    TaskKey, TransitionError,
};

use crate::ctx::Link;
use crate::journal::{check_name, child_id};
use crate::task_link::TaskLink;
use crate::{Ctx, CtxError};

/// The most children that are created in one commit.
const SPAWN_MAX: usize = 1_000;

/// A subtask with a typed result. The crate `longhaul` implements it for the tools of the protocol.
pub trait SubtaskRequest: Send {
    /// What the handler gets when the subtask has ended.
    type Result;

    /// The name of the tool. The server must have it.
    fn tool(&self) -> &str;

    /// The arguments.
    fn input(&self) -> Result<Json, CtxError>;

    /// Converts the outcome. The handler decides what a failed subtask means, so a failure is a value here.
    fn read(&self, outcome: Outcome) -> Result<Self::Result, CtxError>;
}

/// Subtasks that have been created. Their results come in the order of the requests: see [`next`](Self::next).
#[derive(Debug)]
pub struct Subtasks<S> {
    remaining: std::vec::IntoIter<(S, StartedSubtask)>,
}

/// A subtask that was started: a child task, or the outcome that an ordinary call has computed in its place.
#[derive(Debug)]
enum StartedSubtask {
    Child(TaskKey),
    Done(Outcome),
}

impl Ctx {
    /// Creates a subtask and waits for its result. It is a task like any other: it has its tool's own limits, progress and
    /// questions, and clients can follow it. A crash does not create it again. A tool with `on_crash = resume` holds no
    /// memory and no worker while it waits.
    ///
    /// In an ordinary call, where the client did not ask for a task, the subtask's tool runs inside of the call.
    pub async fn subtask<S: SubtaskRequest>(&mut self, name: &str, request: S) -> Result<S::Result, CtxError> {
        let mut results = self.subtasks(name, [request]).await?;
        results.pop().ok_or(CtxError::Cancelled)
    }

    /// Creates subtasks and waits for all of them. The results are in the order of the requests.
    pub async fn subtasks<S: SubtaskRequest>(
        &mut self,
        name: &str,
        requests: impl IntoIterator<Item = S>,
    ) -> Result<Vec<S::Result>, CtxError> {
        let subtasks = self.start_subtasks(name, requests).await?;
        if let Link::Task(link) = &self.link {
            let children: Vec<_> =
                subtasks.remaining.as_slice().iter().filter_map(|(_, started)| started.key()).collect();
            link.wait_for_all(&children, &self.branch).await?;
        }
        let mut results = Vec::new();
        for (request, started) in subtasks.remaining {
            results.push(request.read(self.outcome(started).await?)?);
        }
        Ok(results)
    }

    /// Creates subtasks and does not wait: the results are taken one by one, with [`Subtasks::next`].
    pub async fn start_subtasks<S: SubtaskRequest>(
        &mut self,
        name: &str,
        requests: impl IntoIterator<Item = S>,
    ) -> Result<Subtasks<S>, CtxError> {
        check_name(name)?;
        // One more than the limit, which is refused below, before a child is created.
        let requests: Vec<S> = requests.into_iter().take(CHILDREN_MAX as usize + 1).collect();
        let link = match &self.link {
            Link::Task(link) => Arc::clone(link),
            Link::Call(_) => return self.run_in_call(requests).await,
        };
        if requests.len() > CHILDREN_MAX as usize {
            return Err(TransitionError::TooManyChildren.into());
        }
        let mut children = Vec::with_capacity(requests.len());
        let mut new = Vec::new();
        for request in &requests {
            let position = self.next_position()?;
            let input = request.input()?;
            let digest = digest(request.tool(), &input);
            let key = if let Some(entry) = link.replay(&position, EntryKind::Subtask, name, digest).await? {
                link.child_key(child_id(&entry).ok_or(CtxError::BadRecord { cause: "a subtask has no ID".into() })?)
            } else {
                let (child, entry) = link.new_child(name, request.tool(), input, position, digest).await?;
                let key = child.create.key.clone();
                new.push((child, entry));
                key
            };
            children.push(StartedSubtask::Child(key));
        }
        // They are created in several commits, of which the first must not be made if the last would be refused.
        if new.len() > SPAWN_MAX && new.len() > link.room_for_children().await? {
            return Err(TransitionError::TooManyChildren.into());
        }
        while !new.is_empty() {
            let rest = new.split_off(new.len().min(SPAWN_MAX));
            link.spawn(std::mem::replace(&mut new, rest)).await?;
        }
        let remaining = requests.into_iter().zip(children).collect::<Vec<_>>().into_iter();
        Ok(Subtasks { remaining })
    }

    async fn outcome(&self, started: StartedSubtask) -> Result<Outcome, CtxError> {
        match (started, &self.link) {
            (StartedSubtask::Done(outcome), _) => Ok(outcome),
            (StartedSubtask::Child(key), Link::Task(link)) => link.outcome_of(&key).await,
            (StartedSubtask::Child(_), Link::Call(_)) => Err(CtxError::Cancelled),
        }
    }

    /// Runs the tools of subtasks inside of an ordinary call, one after the other, each in a fork of this context.
    async fn run_in_call<S: SubtaskRequest>(&mut self, requests: Vec<S>) -> Result<Subtasks<S>, CtxError> {
        let mut done = Vec::with_capacity(requests.len());
        for request in requests {
            let position = self.next_position()?;
            let input = request.input()?;
            let ctx = self.fork_with(&format!("{}:subtask", position.seq), None);
            ctx.branch.start().run();
            let Link::Call(link) = &ctx.link else { return Err(CtxError::Cancelled) };
            let handler = Arc::clone(&link.engine.tools.for_subtask(request.tool(), &input, None)?.tool.handler);
            let outcome = match crate::attempt::catch_panic(handler, ctx, input).await {
                Err(CtxError::Final(outcome)) => *outcome,
                end => end?,
            };
            done.push((request, StartedSubtask::Done(outcome)));
        }
        Ok(Subtasks { remaining: done.into_iter() })
    }
}

impl<S: SubtaskRequest> Subtasks<S> {
    /// Waits for the next subtask, in the order of the requests. `None` after the last one.
    pub async fn next(&mut self, ctx: &mut Ctx) -> Result<Option<S::Result>, CtxError> {
        let Some((request, started)) = self.remaining.next() else { return Ok(None) };
        if let (Link::Task(link), Some(key)) = (&ctx.link, started.key()) {
            link.wait_for_all(&[key], &ctx.branch).await?;
        }
        let outcome = ctx.outcome(started).await?;
        request.read(outcome).map(Some)
    }
}

impl StartedSubtask {
    fn key(&self) -> Option<TaskKey> {
        match self {
            Self::Child(key) => Some(key.clone()),
            Self::Done(_) => None,
        }
    }
}

impl TaskLink {
    fn child_key(&self, id: TaskId) -> TaskKey {
        TaskKey { owner: self.key().owner.clone(), id }
    }

    /// A child that does not exist yet, and its entry in the journal.
    async fn new_child(
        &self,
        name: &str,
        tool: &str,
        input: Json,
        position: JournalPosition,
        digest: u64,
    ) -> Result<(NewChild, JournalEntry), CtxError> {
        let registered = self.engine.tools.for_subtask(tool, &input, Some(&self.task.tool.name))?;
        let tool = &registered.tool;
        let id = TaskId::mint(self.now().await?, self.random().bits());
        let output = Json::from_text(format!("\"{}\"", id.as_str()));
        let entry = JournalEntry::new(position, EntryKind::Subtask, name.into(), digest, EntryState::Done(output));
        self.journal.count(&entry)?;
        let create = Create {
            key: self.child_key(id),
            tool: tool.tool.clone(),
            origin: Arc::clone(&self.task.origin),
            policy: tool.policy.clone(),
            retention: self.task.retention,
            claimed_by: None,
            first_fence: 0,
        };
        Ok((NewChild { create, input }, entry))
    }

    /// How many children the task may still create.
    async fn room_for_children(&self) -> Result<usize, CtxError> {
        Ok(CHILDREN_MAX.saturating_sub(self.read().await?.family.children) as usize)
    }

    async fn spawn(&self, new: Vec<(NewChild, JournalEntry)>) -> Result<(), CtxError> {
        let (children, entries): (Vec<_>, Vec<_>) = new.into_iter().unzip();
        // The journal knows the children before they are created: if the branch is dropped meanwhile, they are cancelled.
        for entry in &entries {
            if let Some(id) = child_id(entry) {
                self.journal.add_subtask(entry.position.clone(), id);
            }
        }
        let event = Spawn { fence: self.fence(), children, entries };
        match self.apply(Event::Spawn(Box::new(event))).await {
            // The IDs are random: they exist only if an earlier try, whose response was lost, was written.
            Ok(_) | Err(CtxError::Refused(TransitionError::DuplicateId)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Waits until all of these children have ended, one range after the other. If it waited for several ranges at once, the
    /// handler could not be dropped after the first of them has ended, because `park` refuses a range that has ended.
    async fn wait_for_all(
        &self,
        children: &[TaskKey],
        branch: &crate::wait_tracker::BranchGuard,
    ) -> Result<(), CtxError> {
        let mut ranges: Vec<(ChildRange, Vec<TaskKey>)> = Vec::new();
        for key in children {
            let child = self.call_store(|| self.engine.store.read(key)).await?.task;
            let ordinal = child.family.ordinal;
            match ranges.last_mut() {
                Some((range, _)) if range.last + 1 == ordinal => range.last = ordinal,
                _ => ranges.push((ChildRange { first: ordinal, last: ordinal }, Vec::new())),
            }
            if let Some((_, open)) = ranges.last_mut().filter(|_| !child.is_settled()) {
                open.push(key.clone());
            }
        }
        for (range, open) in ranges.into_iter().filter(|(_, open)| !open.is_empty()) {
            self.wait_for_children(&open, range, branch).await?;
        }
        self.ensure_not_cancelled()
    }

    async fn outcome_of(&self, key: &TaskKey) -> Result<Outcome, CtxError> {
        let child = self.call_store(|| self.engine.store.read(key)).await?.task;
        child.phase.outcome().cloned().ok_or(CtxError::Cancelled)
    }

    /// Cancels a child that is no longer needed, if it has not ended.
    pub(crate) async fn cancel_child(&self, id: TaskId) -> Result<(), CtxError> {
        let key = self.child_key(id);
        let cancel = Event::Cancel(Cancel::default());
        match self.call_store(|| self.apply_to_end(&key, cancel.clone())).await {
            // It has ended already, or was never created.
            Err(CtxError::Cancelled) => self.ensure_not_cancelled(),
            other => other.map(|_| ()),
        }
    }
}

/// Digest of the tool and the arguments. It is stored, so it must be the same on every machine and in every version.
fn digest(tool: &str, input: &Json) -> u64 {
    let seed = xxhash_rust::xxh3::xxh3_64(tool.as_bytes());
    xxhash_rust::xxh3::xxh3_64_with_seed(input.as_str().as_bytes(), seed)
}

//! One request and everything that its operation needs to answer it.

use std::sync::Arc;

use longhaul_engine::audit::{self, RequestSource};
use longhaul_task::{Owner, Task, TaskId, TaskKey};
use longhaul_wire::jsonrpc::{RequestId, RpcError};
use longhaul_wire::{Generation, Peer, ReplyTo, refusal as words};

use crate::loaded_task::LoadedTask;
use crate::receiver::ReceiverInner;
use crate::refusal;
use crate::session::{LastNotified, Session};

/// The context of one request.
#[derive(Clone)]
pub(crate) struct Exchange {
    pub(crate) receiver: Arc<ReceiverInner>,
    pub(crate) owner: Owner,
    /// Whether the owner can be told from others.
    pub(crate) is_known: bool,
    pub(crate) id: RequestId,
    pub(crate) method: &'static str,
    pub(crate) generation: Generation,
    pub(crate) peer: Peer,
    /// `None` in the stateless era.
    pub(crate) session: Option<Arc<Session>>,
}

impl Exchange {
    pub(crate) fn reply_to(&self) -> ReplyTo<'_> {
        ReplyTo { id: &self.id, revision: self.peer.revision, server: &self.receiver.server }
    }

    /// Refuses a request for a feature that the server does not offer.
    pub(crate) fn require(&self, is_offered: bool) -> Result<(), RpcError> {
        if is_offered { Ok(()) } else { Err(words::not_offered(self.method, self.peer.revision)) }
    }

    pub(crate) fn key(&self, id: TaskId) -> TaskKey {
        TaskKey { owner: self.owner.clone(), id }
    }

    /// The actor, for the audit log.
    pub(crate) fn source(&self) -> RequestSource<'_> {
        RequestSource { owner: &self.owner, generation: self.generation.label(), method: self.method }
    }

    /// Reads a task by the ID that the client sent. Failed look-ups are counted against the owner.
    pub(crate) async fn look_up(&self, key: &TaskKey) -> Result<LoadedTask, RpcError> {
        let found = self.receiver.rates.look_up(&self.owner, LoadedTask::read(&self.receiver, key)).await?;
        let task = found.map_err(|error| refusal::of_engine(&error))?;
        audit::read(self.source(), &task.snapshot.task);
        Ok(task)
    }

    /// Has the session follow a task that its client has created or looked at. `is_waiting`: the client waits for the
    /// task's result and so for its questions.
    pub(crate) fn follow(&self, task: &Task, is_waiting: bool) {
        if let Some(session) = &self.session
            && !task.is_settled()
        {
            session.follow(LastNotified::of(task, self.generation), is_waiting);
        }
    }
}

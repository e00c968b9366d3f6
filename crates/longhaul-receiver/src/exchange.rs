//! One request and everything that its operation needs to answer it.

use std::borrow::Cow;
use std::sync::Arc;

use longhaul_engine::EngineError;
use longhaul_engine::audit::{self, RequestSource};
use longhaul_store::StoreError;
use longhaul_task::{NAME_BYTES_MAX, NameError, Owner, Task, TaskId, TaskKey};
use longhaul_wire::jsonrpc::{RequestId, RpcError};
use longhaul_wire::{Capability, Generation, Peer, ReplyTo, refusal as wire_refusal, route};

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
    pub(crate) is_identified: bool,
    pub(crate) id: RequestId,
    pub(crate) method: &'static str,
    pub(crate) generation: Generation,
    /// The request is answered in the generation of the task that it names.
    pub(crate) follows_task: bool,
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
        if is_offered { Ok(()) } else { Err(wire_refusal::not_offered(self.method, self.peer.revision)) }
    }

    pub(crate) fn key(&self, id: TaskId) -> TaskKey {
        TaskKey { owner: self.owner.clone(), id }
    }

    /// The key of a task whose ID the requestor chooses. Without an identity it belongs to the session: otherwise the refusal
    /// of a used ID would tell about the tasks of others.
    pub(crate) fn chosen_key(&self, id: TaskId) -> Result<TaskKey, RpcError> {
        match &self.session {
            Some(session) if !self.is_identified => {
                let scoped = TaskId::in_session(&session.scope(), &id).map_err(|error| {
                    let bytes = id.as_str().len();
                    let excess = if let NameError::TooLong(all) = error { all - NAME_BYTES_MAX } else { 0 };
                    wire_refusal::task_id_too_long(bytes, bytes.saturating_sub(excess))
                })?;
                Ok(self.key(scoped))
            }
            _ => Ok(self.key(id)),
        }
    }

    /// The key of the task that a request names by an ID which may be one of its session.
    pub(crate) async fn find_key(&self, id: TaskId) -> TaskKey {
        if !self.is_identified
            && self.session.is_some()
            && let Ok(chosen) = self.chosen_key(id.clone())
            && self.receiver.engine.read(&chosen).await.is_ok()
        {
            return chosen;
        }
        self.key(id)
    }

    /// This exchange in the generation of the task that it is about, if the request does not say in which.
    pub(crate) fn about(&self, task: &Task) -> Cow<'_, Self> {
        let generation = route::generation_of_task(&task.origin);
        if self.follows_task && generation != self.generation {
            Cow::Owned(Self { generation, ..self.clone() })
        } else {
            Cow::Borrowed(self)
        }
    }

    /// The actor, for the audit log.
    pub(crate) fn source(&self) -> RequestSource<'_> {
        RequestSource { owner: &self.owner, generation: self.generation.label(), method: self.method }
    }

    /// Reads a task by the ID that the client sent. Failed look-ups are counted against the owner.
    pub(crate) async fn look_up(&self, key: &TaskKey) -> Result<LoadedTask, RpcError> {
        let read = LoadedTask::read(&self.receiver, key, self.session.as_deref());
        let task = self.receiver.rates.look_up(&self.owner, read).await?;
        let task = task.map_err(|error| refusal::of_engine(&error))?;
        audit::read(self.source(), &task.snapshot.task);
        Ok(task)
    }

    /// Refuses a request about a task that another generation made. The answer is the same for a task that does not exist.
    pub(crate) async fn require_made_by(&self, generation: Generation, id: &TaskId) -> Result<(), RpcError> {
        let (receiver, key) = (&self.receiver, self.find_key(id.clone()).await);
        match receiver.rates.look_up(&self.owner, receiver.engine.read(&key)).await? {
            Ok(found) if *found.task.origin == *generation.label() => Ok(()),
            Ok(_) | Err(EngineError::Store(StoreError::NotFound)) => Err(Capability::Tasks.missing()),
            Err(error) => Err(refusal::of_engine(&error)),
        }
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

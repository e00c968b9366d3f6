//! Names that say for themselves what they are the name of, so that a client can come back with one after a restart: the
//! ID of a question that a task asks, and what a stream was to answer. Sealed for one session of one owner.

use longhaul_task::{QuestionKey, TaskId};
use longhaul_wire::jsonrpc::RequestId;
use serde::{Deserialize, Serialize};

use super::channel::Reader;
use super::session::Session;
use crate::seal::bound;

/// What a stream was to answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Awaited {
    /// The client's request, as JSON.
    request: Box<str>,
    /// The task whose result that asks for; none for anything else.
    pub(super) task: Option<TaskId>,
}

impl Awaited {
    pub(super) fn new(request: &RequestId, task: Option<TaskId>) -> Self {
        Self { request: request.as_json().into(), task }
    }

    pub(super) fn request(&self) -> Option<RequestId> {
        RequestId::parse(serde_json::from_str(&self.request).ok()?)
    }
}

impl Session {
    /// A name for a request that asks a task's question.
    pub(super) fn question_id(&self, task: &TaskId, question: &str) -> RequestId {
        self.seal("question", &(task, question)).map_or_else(|| self.next_id(), |sealed| RequestId::from_text(&sealed))
    }

    /// Which question of which task a request of this session asked, whichever process sent it.
    pub(super) fn question_of(&self, id: &RequestId) -> Option<(TaskId, QuestionKey)> {
        let text: String = serde_json::from_str(id.as_json()).ok()?;
        let (task, question): (TaskId, String) = self.open("question", &text)?;
        Some((task, QuestionKey::from_text(&question)))
    }

    /// What a client can come back with, to whatever process, for what a stream was to answer.
    pub fn ticket(&self, reader: &Reader) -> Option<String> {
        reader.ticket(|awaited| self.seal("stream", awaited)).map(str::to_owned)
    }

    pub(super) fn awaited(&self, ticket: &str) -> Option<Awaited> {
        self.open("stream", ticket)
    }

    fn seal(&self, what: &str, plain: &impl Serialize) -> Option<String> {
        let plain = serde_json::to_vec(plain).ok()?;
        self.shared.session_seal.close(&self.place(what)?, &plain, &**self.shared.engine.chance())
    }

    fn open<T: for<'a> Deserialize<'a>>(&self, what: &str, text: &str) -> Option<T> {
        serde_json::from_slice(&self.shared.session_seal.open(&self.place(what)?, text)?).ok()
    }

    /// What only this session has; nothing for one that ends with its connection.
    fn place(&self, what: &str) -> Option<Vec<u8>> {
        let mut place = bound(&[what, self.owner.as_str()]);
        place.extend(self.id?);
        Some(place)
    }
}

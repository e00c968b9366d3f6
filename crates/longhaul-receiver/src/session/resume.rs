//! Sealed names that a client can return after a restart of the server: the ID of a request that asks a task's question,
//! and the part of an event ID that names what the stream answers. Each is sealed for one session of one owner.

use std::sync::Arc;

use longhaul_task::{QuestionKey, TaskId};
use longhaul_wire::jsonrpc::{self, RequestId};
use longhaul_wire::{Generation, Operation, refusal as wire_refusal};
use serde::{Deserialize, Serialize};

use super::Session;
use crate::operation::{CallWait, OperationResult, call_answer, task_result};
use crate::seal::binding_of;
use crate::stream::{Resumption, StreamKind, StreamReader};
use crate::ticket;

/// What a stream answers.
#[derive(Debug, Serialize, Deserialize)]
struct PendingAnswer {
    /// The ID of the client's request, as JSON.
    request: Box<str>,
    /// The method of the request.
    method: Box<str>,
    /// The task whose result the request waits for; `None` for every other request.
    task: Option<TaskId>,
    /// How long the request waits, if it is the call that created the task.
    #[serde(default)]
    call: Option<CallWait>,
    /// The label of the request's generation.
    generation: Box<str>,
}

impl PendingAnswer {
    fn request_id(&self) -> Option<RequestId> {
        RequestId::parse(serde_json::from_str(&self.request).ok()?)
    }
}

impl Session {
    /// The ID of a request that asks a question of a task.
    pub(super) fn question_request_id(&self, task: &TaskId, question: &str, generation: Generation) -> RequestId {
        let sealed = self.seal("question", &(task, question, generation.label()));
        sealed.map_or_else(|| self.next_request_id(), |sealed| RequestId::from_text(&sealed))
    }

    /// The question that a request of this session asked, also if an earlier process sent it.
    pub(super) fn question_of(&self, id: &RequestId) -> Option<(TaskId, QuestionKey, Generation)> {
        let text: String = serde_json::from_str(id.as_json()).ok()?;
        let (task, question, label): (TaskId, String, String) = self.open("question", &text)?;
        Some((task, QuestionKey::from_text(&question), Generation::of_label(&label)?))
    }

    /// Gives a reader the event IDs by which the client can resume its stream.
    pub(crate) fn resumable(&self, reader: StreamReader) -> StreamReader {
        let pending_answer = reader.pending_answer(|kind| {
            let StreamKind::SessionRequest { request, method, generation, task, call } = kind else { return None };
            let (request, generation) = (request.as_json().into(), generation.label().into());
            let (method, task) = ((*method).into(), task.clone());
            self.seal("stream", &PendingAnswer { request, method, task, call: *call, generation })
        });
        reader.resumable(Resumption { pending_answer, takes_primer: self.peer.revision.has_tasks() })
    }

    /// A new stream for what a lost stream was to answer: the stream was in another process, or has been dropped. The
    /// wait for a task's result continues; for any other request the client gets an error that says it is lost.
    pub(crate) async fn resume_lost(self: &Arc<Self>, pending_answer: &str) -> Option<StreamReader> {
        let pending: PendingAnswer = self.open("stream", pending_answer)?;
        let id = pending.request_id()?;
        let generation = Generation::of_label(&pending.generation)?;
        let method = Operation::METHODS.iter().find(|known| **known == &*pending.method)?;
        if self.requests.lock().contains_key(&id) {
            return None;
        }
        let answer = match &pending.task {
            None => jsonrpc::error(Some(&id), &wire_refusal::lost()),
            Some(task) => {
                let exchange = self.exchange(id.clone(), generation, false, method);
                let key = self.key(task.clone());
                let continued = match pending.call {
                    Some(CallWait::UntilEnd) => call_answer::resume(&exchange, key).await,
                    Some(CallWait::Patience) => ticket::resume(&exchange, key).await,
                    None => task_result::of(&exchange, key).await,
                };
                match continued {
                    Ok(OperationResult::Ready(answer)) => answer,
                    Ok(OperationResult::Work(work)) => return self.carry_out(work, None).ok()?.stream_after(0),
                    Err(error) => jsonrpc::error(Some(&id), &error),
                }
            }
        };
        let stream = self.add_stream(StreamKind::SessionRequest {
            request: id,
            method,
            generation,
            task: pending.task,
            call: pending.call,
        });
        stream.respond(Some(&answer));
        let reader = stream.stream_after(0);
        // Not kept: the client can send the same event ID again.
        let session = Arc::clone(self);
        self.receiver.tracker.spawn(async move {
            stream.read_to_end().await;
            session.drop_stream(&stream);
        });
        reader
    }

    fn seal(&self, purpose: &str, plain: &impl Serialize) -> Option<String> {
        let plain = serde_json::to_vec(plain).ok()?;
        self.receiver.session_seal.close(&self.binding(purpose)?, &plain, &**self.receiver.engine.random())
    }

    fn open<T: for<'a> Deserialize<'a>>(&self, purpose: &str, text: &str) -> Option<T> {
        serde_json::from_slice(&self.receiver.session_seal.open(&self.binding(purpose)?, text)?).ok()
    }

    /// Binds a seal to this session; `None` for a session that ends with its connection.
    fn binding(&self, purpose: &str) -> Option<Vec<u8>> {
        let mut binding = binding_of(&[purpose, self.owner.as_str()]);
        binding.extend(self.id?);
        Some(binding)
    }
}

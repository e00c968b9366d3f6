//! The wait for the end of a task: of a request for its result, and of the call that created it.

use std::sync::Arc;

use longhaul_engine::audit;
use longhaul_store::Watch;
use longhaul_task::{Task, TaskKey};
use longhaul_wire::jsonrpc::RpcError;

use crate::exchange::Exchange;
use crate::loaded_task::LoadedTask;
use crate::refusal;
use crate::stream::MessageStream;

/// A wait for the end of a task.
pub(super) struct EndWait {
    pub(super) exchange: Exchange,
    pub(super) key: TaskKey,
    /// Made before the task was read, so that no change is missed.
    watch: Watch,
    has_questions: bool,
}

impl EndWait {
    /// `watch` was made before `task` was read.
    pub(super) fn new(exchange: Exchange, task: &Task, watch: Watch) -> Self {
        let has_questions = task.phase.questions().is_some();
        Self { exchange, key: task.key.clone(), watch, has_questions }
    }

    /// Waits until `answer` finds one in the task. Meanwhile the client hears of the task on this stream. Returns
    /// `None` if the server stops first.
    pub(super) async fn until<T>(
        self,
        stream: &Arc<MessageStream>,
        answer: impl Fn(&Exchange, &LoadedTask) -> Option<T>,
    ) -> Result<Option<T>, RpcError> {
        let Self { exchange, key, mut watch, mut has_questions } = self;
        let receiver = &exchange.receiver;
        let _marks_stream = exchange.session.as_ref().map(|session| session.wait_for_result(&key.id, stream));
        let stopped = receiver.response_time_over();
        tokio::pin!(stopped);
        loop {
            // Without a reader nothing is read: the waits that clients have abandoned keep no copy of the result.
            let changed = async {
                watch.changed().await;
                stream.reader().await;
            };
            tokio::select! {
                () = changed => {}
                () = &mut stopped => return Ok(None),
                // With the endpoint closed, the questions cannot be answered.
                () = receiver.closing.cancelled(), if has_questions => return Ok(None),
            }
            let task = LoadedTask::read(receiver, &key, exchange.session.as_deref()).await;
            let task = task.map_err(|error| refusal::of_engine(&error))?;
            if let Some(answer) = answer(&exchange, &task) {
                if let Some(session) = &exchange.session {
                    session.send_log(&task.snapshot.task, stream);
                }
                audit::read(exchange.source(), &task.snapshot.task);
                return Ok(Some(answer));
            }
            exchange.follow(&task.snapshot.task, true);
            has_questions = task.snapshot.task.phase.questions().is_some();
        }
    }
}

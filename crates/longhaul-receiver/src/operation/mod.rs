//! The operations that a client can ask for: one file each, written once for all generations and both eras.

pub(crate) mod call_answer;
mod call_client;
mod call_function;
mod call_tool;
mod cancel_task;
mod checked_call;
mod complete;
mod create_task;
mod delete_task;
mod discover;
mod end_wait;
mod get_prompt;
mod get_task;
mod list_prompts;
mod list_resource_templates;
mod list_resources;
pub(crate) mod list_tasks;
mod list_tools;
mod read_resource;
mod subscribe;
mod subscribe_resource;
pub(crate) mod task_result;
mod unsubscribe_resource;
mod update_task;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use longhaul_task::{TaskId, TaskKey};
use longhaul_wire::jsonrpc::RpcError;
use longhaul_wire::{Headers, Operation, RoutedRequest, acknowledge, refusal as wire_refusal};
use serde::{Deserialize, Serialize};

use crate::exchange::Exchange;
use crate::session::LastNotified;
use crate::stream::MessageStream;

/// What an operation leads to.
pub(crate) enum OperationResult {
    /// The JSON-RPC response.
    Ready(String),
    /// The response takes time, and other messages may precede it on a stream.
    Work(StreamWork),
}

/// A request that is answered on a stream.
pub(crate) struct StreamWork {
    pub(crate) exchange: Exchange,
    /// The task whose result is waited for.
    pub(crate) task: Option<TaskId>,
    /// The task that a cancellation of the request cancels. The work itself can name it later, when it has created the task.
    pub(crate) creation: Option<TaskKey>,
    /// How long it waits, if it is the call that creates that task.
    pub(crate) call: Option<CallWait>,
    /// The tool that is called.
    pub(crate) tool: Option<Arc<str>>,
    pub(crate) run: WorkFuture,
}

/// How long a call waits for the task that it has created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum CallWait {
    UntilEnd,
    /// As long as a client without tasks should wait.
    Patience,
}

/// Does the work. The stream takes the messages that precede the response.
type WorkFuture = Box<dyn FnOnce(Arc<MessageStream>) -> BoxFuture<'static, Result<WorkResult, RpcError>> + Send>;

/// How a [`StreamWork`] ended.
pub(crate) struct WorkResult {
    /// `None` for a request that its client has cancelled.
    pub(crate) response: Option<String>,
    /// The task that the request created. The session follows it after the client has received the response.
    pub(crate) created: Option<LastNotified>,
}

impl From<String> for WorkResult {
    fn from(response: String) -> Self {
        Self { response: Some(response), created: None }
    }
}

/// Answers a request. `headers` are those of HTTP.
pub(crate) async fn perform(
    exchange: &Exchange,
    request: &RoutedRequest<'_>,
    headers: Option<&(dyn Headers + Sync)>,
) -> Result<OperationResult, RpcError> {
    if let (Some(generation), Operation::GetTask(id) | Operation::CancelTask(id)) =
        (request.only_made_by, &request.operation)
    {
        Box::pin(exchange.require_made_by(generation, id)).await?;
    }
    let with_verb = |error| wire_refusal::with_verb_of_method(error, request.method);
    // A future is as large as its largest branch, and hyper copies it for every request. So only polls are not boxed.
    let response = match &request.operation {
        Operation::GetTask(id) => get_task::perform(exchange, id.clone()).await?,
        Operation::CallTool(call) => return Box::pin(call_tool::perform(exchange, request, call, headers)).await,
        Operation::TaskResult(id) => return task_result::perform(exchange, id.clone()).await,
        Operation::UpdateTask(update) => Box::pin(update_task::perform(exchange, update)).await.map_err(with_verb)?,
        Operation::DeleteTask(id) => Box::pin(delete_task::perform(exchange, id.clone())).await.map_err(with_verb)?,
        Operation::CancelTask(id) => Box::pin(cancel_task::perform(exchange, id.clone())).await.map_err(with_verb)?,
        Operation::ListTasks { cursor } => list_tasks::perform(exchange, cursor.as_deref()).await?,
        Operation::ListTools { cursor } => list_tools::perform(exchange, cursor.as_deref())?,
        Operation::ListPrompts { cursor } => list_prompts::perform(exchange, cursor.as_deref())?,
        Operation::GetPrompt(get) => return Box::pin(get_prompt::perform(exchange, request, get)).await,
        Operation::ListResources { cursor } => list_resources::perform(exchange, cursor.as_deref())?,
        Operation::ListResourceTemplates { cursor } => list_resource_templates::perform(exchange, cursor.as_deref())?,
        Operation::ReadResource(read) => return Box::pin(read_resource::perform(exchange, request, read)).await,
        Operation::SubscribeResource { uri } => subscribe_resource::perform(exchange, uri)?,
        Operation::UnsubscribeResource { uri } => unsubscribe_resource::perform(exchange, uri)?,
        Operation::Complete(complete) => return Box::pin(complete::perform(exchange, request, complete)).await,
        Operation::Subscribe(filter) => return subscribe::perform(exchange, filter).await,
        Operation::Discover => discover::perform(exchange),
        Operation::SetLogLevel(level) => {
            if let Some(session) = &exchange.session {
                session.set_log_level(*level);
            }
            acknowledge(&exchange.reply_to())
        }
        Operation::Ping => acknowledge(&exchange.reply_to()),
    };
    Ok(OperationResult::Ready(response))
}

//! Clients without tasks. Their calls of a tool that can run as a task create one and wait for it: up to the patience that
//! the operator sets, then the call is answered with a ticket, and the client's model goes on with ordinary tools, one file
//! each. The sentences and the forms are in `longhaul_wire::ticket`.

mod answer;
mod call;
mod cancel;
mod list;
mod result;
mod status;
mod wait;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use longhaul_task::{Json, TaskId};
use longhaul_wire::content::ToolResult;
use longhaul_wire::jsonrpc::{RequestId, RpcError};
use longhaul_wire::ticket::{TicketNames, TicketTool};
use longhaul_wire::tool::{TaskSupport, ToolDeclaration};
use longhaul_wire::{Capability, call_result};
use parking_lot::Mutex;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

pub use self::call::CallRules;
pub(crate) use self::call::{RelayedCall, WaitingCall, resume};
use crate::Catalogue;
use crate::exchange::Exchange;
use crate::operation::{OperationResult, StreamWork};
use crate::stream::MessageStream;

/// The longest time for which a call of a client without tasks waits by default. Published clients give up after 60 s.
const PATIENCE_DEFAULT: Duration = Duration::from_secs(45);

/// The time after which a client that waits is told that the work goes on, if the handler says nothing.
const HEARTBEAT_DEFAULT: Duration = Duration::from_secs(5);

/// What the server does for clients without tasks.
#[derive(Debug, Clone)]
pub struct TicketOptions {
    /// How long a call waits for its task, and a request for a task's status at most, before it is answered with a ticket.
    pub patience: Duration,
    /// How often a client that waits gets a sign of life, if it sent a progress token and the handler says nothing.
    pub heartbeat: Duration,
    /// The names of the tools. One that a tool of the server has is replaced by `longhaul_` and the name.
    pub names: TicketNames,
}

impl Default for TicketOptions {
    fn default() -> Self {
        Self { patience: PATIENCE_DEFAULT, heartbeat: HEARTBEAT_DEFAULT, names: TicketNames::default() }
    }
}

/// The tools for clients without tasks, under names that no other tool has.
#[derive(Debug)]
pub(crate) struct Tickets {
    pub(crate) patience: Duration,
    pub(crate) heartbeat: Duration,
    pub(crate) names: TicketNames,
    tools: Vec<(TicketTool, ToolDeclaration)>,
    /// Whether a tool of the server can run as a task. Without one they are not listed, but a client that has a ticket
    /// from before can still use them.
    is_listed: bool,
}

impl Tickets {
    pub(crate) fn new(options: &TicketOptions, catalogue: &Catalogue) -> Self {
        let is_task = |support| support != TaskSupport::Forbidden;
        let is_listed = catalogue.tools.iter().any(|tool| is_task(tool.declaration.task_support()));
        let mut taken = HashSet::new();
        let mut free = |wanted: &str| {
            let mut name = wanted.to_owned();
            while catalogue.tools.find(&name).is_some() || !taken.insert(name.clone()) {
                name = format!("longhaul_{name}");
            }
            name
        };
        let TicketNames { status, result, answer, cancel, list } = &options.names;
        let names = TicketNames {
            status: free(status),
            result: free(result),
            answer: free(answer),
            cancel: free(cancel),
            list: free(list),
        };
        let mut tools = Vec::new();
        for tool in TicketTool::ALL {
            match tool.declare(&names) {
                Ok(declaration) => tools.push((tool, declaration)),
                Err(error) => tracing::warn!(%error, "a tool for clients without tasks is not offered"),
            }
        }
        Self { patience: options.patience, heartbeat: options.heartbeat, names, tools, is_listed }
    }

    /// The tools that this client is offered. Every session is: at no revision does a client declare there that it takes tasks.
    pub(crate) fn offered_to(&self, exchange: &Exchange) -> impl Iterator<Item = &(TicketTool, ToolDeclaration)> {
        self.usable_by(exchange).filter(|_| self.is_listed)
    }

    fn usable_by(&self, exchange: &Exchange) -> impl Iterator<Item = &(TicketTool, ToolDeclaration)> {
        let (is_offered, is_identified) = (is_for(exchange), exchange.is_identified);
        self.tools.iter().filter(move |(tool, _)| is_offered && (is_identified || *tool != TicketTool::List))
    }

    fn find(&self, exchange: &Exchange, name: &str) -> Option<&(TicketTool, ToolDeclaration)> {
        self.usable_by(exchange).find(|(_, declaration)| declaration.name() == name)
    }
}

/// The tools for clients without tasks, made anew when the server offers something else.
pub(crate) struct TicketCache {
    options: Option<TicketOptions>,
    made: Mutex<Option<MadeTickets>>,
}

/// The tools that were made last, and the catalogue that they were made for.
struct MadeTickets {
    catalogue: Arc<Catalogue>,
    tickets: Arc<Tickets>,
}

impl TicketCache {
    pub(crate) fn new(options: Option<TicketOptions>) -> Self {
        Self { options, made: Mutex::default() }
    }

    /// The tools beside those of this catalogue.
    pub(crate) fn current(&self, catalogue: &Arc<Catalogue>) -> Option<Arc<Tickets>> {
        let options = self.options.as_ref()?;
        let mut made = self.made.lock();
        Some(match &*made {
            Some(made) if Arc::ptr_eq(&made.catalogue, catalogue) => Arc::clone(&made.tickets),
            _ => {
                let tickets = Arc::new(Tickets::new(options, catalogue));
                *made = Some(MadeTickets { catalogue: Arc::clone(catalogue), tickets: Arc::clone(&tickets) });
                tickets
            }
        })
    }
}

/// Whether the client of this request may get a ticket.
pub(crate) fn is_for(exchange: &Exchange) -> bool {
    exchange.session.is_some() || !exchange.peer.capabilities.has(Capability::Tasks)
}

/// Answers a call of one of these tools; `None` if the name is not one of theirs.
pub(crate) async fn perform(
    exchange: &Exchange,
    name: &str,
    arguments: &RawValue,
    progress_token: Option<&RequestId>,
) -> Option<Result<OperationResult, RpcError>> {
    let tickets = exchange.receiver.tickets()?;
    let (tool, declaration) = tickets.find(exchange, name)?;
    if let Err(wrong) = declaration.check_arguments(arguments) {
        return Some(Ok(OperationResult::Ready(call_result::complete(&exchange.reply_to(), &wrong.to_result()))));
    }
    if exchange.session.is_none() && progress_token.is_none() {
        return Some(run(*tool, exchange, arguments, None, None).await.map(OperationResult::Ready));
    }
    let (tool, arguments, calling) = (*tool, arguments.to_owned(), exchange.clone());
    let token = progress_token.cloned();
    Some(Ok(OperationResult::Work(StreamWork {
        exchange: exchange.clone(),
        task: None,
        creation: None,
        call: None,
        tool: Some(declaration.name().into()),
        run: Box::new(move |stream| {
            Box::pin(async move { Ok(run(tool, &calling, &arguments, token, Some(stream)).await?.into()) })
        }),
    })))
}

/// The arguments of the tools that name a task.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TaskArguments {
    task_id: String,
}

/// Why a tool has no result: the sentence is for the model.
struct NoResult(String);

async fn run(
    tool: TicketTool,
    exchange: &Exchange,
    arguments: &RawValue,
    token: Option<RequestId>,
    stream: Option<Arc<MessageStream>>,
) -> Result<String, RpcError> {
    let result = match tool {
        TicketTool::Status => status::perform(exchange, arguments, token, stream).await,
        TicketTool::Result => result::perform(exchange, arguments).await,
        TicketTool::Answer => answer::perform(exchange, arguments).await,
        TicketTool::Cancel => cancel::perform(exchange, arguments).await,
        TicketTool::List => list::perform(exchange, arguments).await,
    };
    let body = result.unwrap_or_else(|NoResult(why)| ToolResult::error(&why).into_json());
    Ok(call_result::complete(&exchange.reply_to(), &body))
}

impl From<RpcError> for NoResult {
    fn from(error: RpcError) -> Self {
        Self(error.message.into_owned())
    }
}

fn read<A: DeserializeOwned>(arguments: &RawValue) -> Result<A, NoResult> {
    // The arguments were checked against the tool's schema, which says what is wrong.
    serde_json::from_str(arguments.get()).map_err(|_| NoResult("The arguments cannot be read.".to_owned()))
}

fn task_id(text: &str) -> Result<TaskId, NoResult> {
    TaskId::parse(text).map_err(|error| NoResult(format!("the task ID cannot be used: {error}")))
}

/// The names, which exist where the tools do.
fn names(exchange: &Exchange) -> TicketNames {
    exchange.receiver.tickets().map(|tickets| tickets.names.clone()).unwrap_or_default()
}

type TicketResult = Result<Json, NoResult>;

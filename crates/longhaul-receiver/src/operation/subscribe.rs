//! A stream of changes: of tasks, of lists and of resources. A message about a task carries the whole task: a client that
//! missed some is up to date again with the next one.

use std::collections::HashSet;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use longhaul_engine::audit;
use longhaul_store::Watch;
use longhaul_task::{Progress, TaskKey};
use longhaul_wire::jsonrpc::RpcError;
use longhaul_wire::subscription::{SubscriptionFilter, acknowledged, closed};
use longhaul_wire::{list, resource};

use super::{OperationResult, StreamWork, WorkResult};
use crate::catalogue::{CatalogueChange, CatalogueChanges};
use crate::exchange::Exchange;
use crate::loaded_task::LoadedTask;
use crate::stream::MessageStream;

pub(super) async fn perform(exchange: &Exchange, filter: &SubscriptionFilter) -> Result<OperationResult, RpcError> {
    let receiver = &exchange.receiver;
    let mut accepted = Vec::new();
    let mut tasks = Vec::new();
    let mut seen = HashSet::new();
    for id in filter.task_ids.iter().flatten().filter(|id| seen.insert(*id)) {
        let key = exchange.key(id.clone());
        // The watch comes first, so that no change is missed.
        let watch = receiver.engine.watch(&key);
        // Unknown IDs and those of other owners are left out without a word, so that they cannot be told apart.
        if let Ok(found) = receiver.rates.look_up(&exchange.owner, receiver.engine.read(&key)).await? {
            audit::read(exchange.source(), &found.task);
            accepted.push(id.clone());
            tasks.push(SubscribedTask { key, watch, sent: None });
        }
    }
    let changes = receiver.catalogue.changes();
    let catalogue = receiver.catalogue.current();
    let features = catalogue.features();
    let has_resource = |uri: &&String| catalogue.find_resource(uri).is_some();
    let resources = filter.resources.as_ref().filter(|_| features.resources);
    let accepted = SubscriptionFilter {
        task_ids: filter.task_ids.is_some().then_some(accepted),
        tools_list_changed: filter.tools_list_changed,
        prompts_list_changed: filter.prompts_list_changed && features.prompts,
        resources_list_changed: filter.resources_list_changed && features.resources,
        resources: resources.map(|uris| uris.iter().filter(has_resource).cloned().collect()),
    };
    let subscriber = exchange.clone();
    Ok(OperationResult::Work(StreamWork {
        exchange: exchange.clone(),
        task: None,
        creation: None,
        call: None,
        tool: None,
        run: Box::new(move |stream| Box::pin(run(subscriber, accepted, tasks, changes, stream))),
    }))
}

async fn run(
    exchange: Exchange,
    accepted: SubscriptionFilter,
    tasks: Vec<SubscribedTask>,
    mut catalogue: CatalogueChanges,
    stream: Arc<MessageStream>,
) -> Result<WorkResult, RpcError> {
    stream.send(acknowledged(&exchange.id, &accepted)).await;
    let mut changes: FuturesUnordered<BoxFuture<'static, SubscribedTask>> = FuturesUnordered::new();
    for task in tasks {
        // The first message about a task is its present state.
        changes.push(Box::pin(std::future::ready(task)));
    }
    loop {
        tokio::select! {
            Some(task) = changes.next() => {
                if let Some(task) = task.send_change(&exchange, &stream).await {
                    changes.push(Box::pin(task.changed()));
                }
            }
            change = catalogue.next() => send_catalogue_change(&exchange, &accepted, change, &stream).await,
            () = exchange.receiver.closing.cancelled() => return Ok(closed(&exchange.reply_to()).into()),
        }
    }
}

/// Sends what the client has asked for of a change.
async fn send_catalogue_change(
    exchange: &Exchange,
    accepted: &SubscriptionFilter,
    change: CatalogueChange,
    stream: &MessageStream,
) {
    let subscription = Some(&exchange.id);
    match change {
        CatalogueChange::Lists(lists) => {
            for list in lists.into_iter().filter(|list| accepted.has_list(*list)) {
                stream.send(list::changed(list, subscription)).await;
            }
        }
        CatalogueChange::Resource(changed) => {
            if accepted.resources.iter().flatten().any(|uri| **uri == *changed) {
                stream.send(resource::updated(&changed, subscription)).await;
            }
        }
        CatalogueChange::AnyResource => {
            for uri in accepted.resources.iter().flatten() {
                stream.send(resource::updated(uri, subscription)).await;
            }
        }
    }
}

struct SubscribedTask {
    key: TaskKey,
    watch: Watch,
    /// The revision and the progress that were sent last.
    sent: Option<(u64, Option<Arc<Progress>>)>,
}

impl SubscribedTask {
    async fn changed(mut self) -> Self {
        self.watch.changed().await;
        self
    }

    /// Sends the task if it has changed. Returns it unless it has ended or is gone.
    async fn send_change(mut self, exchange: &Exchange, stream: &MessageStream) -> Option<Self> {
        let task = LoadedTask::read(&exchange.receiver, &self.key, exchange.session.as_deref()).await.ok()?;
        let current = Some((task.snapshot.task.revision, task.snapshot.progress.clone()));
        if self.sent != current {
            if let Some(changed) = exchange.generation.changed(Some(&exchange.id), &task.view()) {
                stream.send(changed).await;
            }
            self.sent = current;
        }
        (!task.snapshot.task.is_settled()).then_some(self)
    }
}

//! `subscriptions/listen`: pushes carry state, not a log. Subscribe, take a snapshot, follow by revision.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use longhaul_engine::audit::read;
use longhaul_store::Watch;
use longhaul_task::{Owner, Progress, TaskKey};
use longhaul_wire::ext2026::subscriptions_listen::{Filter, acknowledged, closed, task_changed};
use longhaul_wire::jsonrpc::{RequestId, RpcError};

use crate::receiver::Shared;
use crate::shown::Shown;
use crate::{Messages, Reply, audit};

pub(super) async fn receive(
    shared: &Arc<Shared>,
    owner: &Owner,
    id: &RequestId,
    asked: Filter,
) -> Result<Reply, RpcError> {
    let mut listening = Listening {
        shared: Arc::clone(shared),
        id: id.clone(),
        ready: VecDeque::new(),
        following: FuturesUnordered::new(),
        is_open: true,
    };
    // Somebody else's tasks and unknown ones are left out in silence: the caller cannot tell which is which.
    let mut honoured = Vec::new();
    let mut named = HashSet::new();
    for task_id in asked.task_ids.iter().flatten().filter(|id| named.insert(*id)) {
        let key = TaskKey { owner: owner.clone(), id: task_id.clone() };
        let watch = shared.engine.watch(&key);
        if let Ok(found) = shared.rates.look_up(owner, shared.engine.read(&key)).await? {
            read(audit::stateless(owner, "subscriptions/listen"), &found.task);
            honoured.push(task_id.clone());
            let followed = Followed { key, watch, told: None };
            listening.following.push(Box::pin(std::future::ready(followed)));
        }
    }
    let filter = Filter { task_ids: asked.task_ids.is_some().then_some(honoured), tools_list_changed: false };
    listening.ready.push_back(acknowledged(id, &filter));
    Ok(Reply::Stream(Box::new(listening)))
}

struct Listening {
    shared: Arc<Shared>,
    id: RequestId,
    ready: VecDeque<String>,
    following: FuturesUnordered<BoxFuture<'static, Followed>>,
    is_open: bool,
}

/// One task that is followed.
struct Followed {
    key: TaskKey,
    watch: Watch,
    /// What the client knows: the revision, and how far it was.
    told: Option<(u64, Option<Arc<Progress>>)>,
}

impl Followed {
    async fn changed(mut self) -> Self {
        self.watch.changed().await;
        self
    }
}

#[async_trait]
impl Messages for Listening {
    async fn next(&mut self) -> Option<String> {
        if !self.is_open {
            return None;
        }
        loop {
            if let Some(message) = self.ready.pop_front() {
                return Some(message);
            }
            let changed = if self.following.is_empty() {
                self.shared.closing.cancelled().await;
                None
            } else {
                tokio::select! {
                    changed = self.following.next() => changed,
                    () = self.shared.closing.cancelled() => None,
                }
            };
            let Some(followed) = changed else {
                self.is_open = false;
                return Some(closed(&self.id, &self.shared.server));
            };
            self.tell(followed).await;
        }
    }
}

impl Listening {
    /// Shows a task that may have changed, and follows it on unless it has ended.
    async fn tell(&mut self, mut followed: Followed) {
        // A task that is gone has nothing more to say.
        let Ok(shown) = Shown::read(&self.shared, &followed.key).await else { return };
        let task = &shown.snapshot.task;
        let now_told = Some((task.revision, shown.snapshot.progress.clone()));
        if followed.told != now_told {
            self.ready.push_back(task_changed(&self.id, &shown.view(&self.shared)));
            followed.told = now_told;
        }
        if !task.is_settled() {
            self.following.push(Box::pin(followed.changed()));
        }
    }
}

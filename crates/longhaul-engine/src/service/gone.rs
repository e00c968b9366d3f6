//! Fails queued tasks whose tool nobody serves any more.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use longhaul_store::{ClaimNext, StoreError};
use longhaul_task::transition::Settle;
use longhaul_task::{Event, Fault, Outcome, Task, Timestamp, ToolRef};

use crate::shell::Shared;

/// How many are failed at once.
const BATCH: usize = 100;

/// What the service remembers from one pass to the next.
#[derive(Default)]
struct Gone {
    missing_since: HashMap<ToolRef, Timestamp>,
    /// Tasks that it has taken and not failed yet: this node holds them, so nobody else will.
    claimed: VecDeque<Arc<Task>>,
}

pub(crate) async fn run(shared: Arc<Shared>) {
    let mut gone = Gone::default();
    // Often enough that the documented wait is kept to within a tenth.
    let pause = Duration::from_millis((shared.limits.tool_gone_ms / 10).max(1));
    loop {
        if let Err(error) = pass(&shared, &mut gone).await {
            tracing::warn!(%error, "could not fail the tasks without a tool; trying again");
        }
        tokio::time::sleep(pause).await;
    }
}

async fn pass(shared: &Arc<Shared>, gone: &mut Gone) -> Result<(), StoreError> {
    fail_claimed(shared, &mut gone.claimed).await?;
    let now = shared.store.now().await?;
    let missing = shared.store.unserved().await?;
    gone.missing_since.retain(|tool, _| missing.contains(tool));
    for tool in missing {
        let since = *gone.missing_since.entry(tool.clone()).or_insert(now);
        if now.ms_since(since) >= shared.limits.tool_gone_ms {
            fail_queued(shared, tool, &mut gone.claimed).await?;
        }
    }
    Ok(())
}

async fn fail_queued(shared: &Arc<Shared>, tool: ToolRef, claimed: &mut VecDeque<Arc<Task>>) -> Result<(), StoreError> {
    loop {
        let claim = ClaimNext { node: shared.node, wants: vec![(tool.clone(), BATCH)] };
        claimed.extend(shared.store.claim(claim).await?.into_iter().map(|claimed| claimed.task));
        let count = claimed.len();
        fail_claimed(shared, claimed).await?;
        if count < BATCH {
            return Ok(());
        }
    }
}

async fn fail_claimed(shared: &Arc<Shared>, claimed: &mut VecDeque<Arc<Task>>) -> Result<(), StoreError> {
    while let Some(task) = claimed.front() {
        let outcome = Outcome::Refusal(Fault::tool_gone(&task.tool));
        match shared.apply(&task.key, Event::Settle(Settle { fence: task.fence, outcome })).await {
            // Whoever was quicker has ended it.
            Ok(_) | Err(StoreError::NotFound | StoreError::Refused(_)) => claimed.pop_front(),
            Err(error) => return Err(error),
        };
    }
    Ok(())
}

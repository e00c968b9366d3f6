//! Fails queued tasks whose tool nobody serves any more.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use longhaul_store::{ClaimNext, StoreError};
use longhaul_task::transition::Settle;
use longhaul_task::{Event, Fault, Outcome, PhaseName, Timestamp, ToolRef};

use crate::engine::Shared;

/// How many are failed at once.
const BATCH: usize = 100;

pub(crate) async fn run(shared: Arc<Shared>) {
    let mut missing_since: HashMap<ToolRef, Timestamp> = HashMap::new();
    // Often enough that the documented wait is kept to within a tenth.
    let pause = Duration::from_millis((shared.limits.tool_gone_ms / 10).max(1));
    loop {
        if let Err(error) = pass(&shared, &mut missing_since).await {
            tracing::warn!(%error, "could not look for tasks without a tool");
        }
        tokio::time::sleep(pause).await;
    }
}

async fn pass(shared: &Arc<Shared>, missing_since: &mut HashMap<ToolRef, Timestamp>) -> Result<(), StoreError> {
    let now = shared.store.now().await?;
    let counts = shared.store.census().await?;
    let queued = counts.into_iter().filter(|count| count.phase == PhaseName::Queued).map(|count| count.tool);
    let missing: Vec<ToolRef> = queued.filter(|tool| !shared.core.lock().serves(tool)).collect();
    missing_since.retain(|tool, _| missing.contains(tool));
    for tool in missing {
        let since = *missing_since.entry(tool.clone()).or_insert(now);
        if now.ms_since(since) >= shared.limits.tool_gone_ms {
            fail_all(shared, &tool).await?;
        }
    }
    Ok(())
}

async fn fail_all(shared: &Arc<Shared>, tool: &ToolRef) -> Result<(), StoreError> {
    loop {
        let claim = ClaimNext { node: shared.node, tool: tool.clone(), limit: BATCH };
        let claimed = shared.store.claim(claim).await?;
        let count = claimed.len();
        for task in claimed.into_iter().map(|claimed| claimed.task) {
            let outcome = Outcome::Refusal(Fault::tool_gone(tool));
            let settled = shared.apply(&task.key, Event::Settle(Settle { fence: task.fence, outcome })).await;
            if let Err(error) = settled {
                tracing::warn!(task = %task.key.id, %error, "could not fail a task without a tool");
            }
        }
        if count < BATCH {
            return Ok(());
        }
    }
}

//! Tells the core of tools that no node serves any more: it fails their queued tasks.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use longhaul_store::StoreError;
use longhaul_task::{Timestamp, ToolRef};

use crate::core::Input;
use crate::shell::EngineInner;

pub(crate) async fn run(engine: Arc<EngineInner>) {
    let mut missing_since = HashMap::new();
    // Often enough that the documented wait is kept to within a tenth.
    let pause = Duration::from_millis((engine.limits.tool_gone_ms / 10).max(1));
    loop {
        if let Err(error) = pass(&engine, &mut missing_since).await {
            tracing::debug!(%error, "could not look for tasks without a tool; trying again");
        }
        tokio::time::sleep(pause).await;
    }
}

async fn pass(engine: &Arc<EngineInner>, missing_since: &mut HashMap<ToolRef, Timestamp>) -> Result<(), StoreError> {
    let now = engine.store.now().await?;
    let missing = engine.store.unserved().await?;
    missing_since.retain(|tool, _| missing.contains(tool));
    for tool in missing {
        let since = missing_since.entry(tool.clone()).or_insert(now);
        // If the clock was set back, the wait begins again.
        *since = now.min(*since);
        if now.ms_since(*since) >= engine.limits.tool_gone_ms {
            engine.step(Input::ToolGone { tool });
        }
    }
    Ok(())
}

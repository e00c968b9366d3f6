//! The operator's view of the store.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use crate::kit::longhaul;

#[derive(Debug, Clone, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Listed {
    task_id: String,
    pub(crate) status: String,
}

/// `longhaul task list --json`, all of it.
pub(crate) fn list(file: &Path) -> HashMap<String, Listed> {
    let store = format!("sqlite:{}", file.display());
    let mut command = Command::new(longhaul());
    command.args(["task", "list", "--json", "--limit", "10000000", "--store", &store]);
    let output = command.output().expect("the program starts");
    assert!(output.status.success(), "task list: {}", String::from_utf8_lossy(&output.stderr));
    let listed = serde_json::Deserializer::from_slice(&output.stdout).into_iter::<Listed>();
    listed.map(|task| task.expect("a task on each line")).map(|task| (task.task_id.clone(), task)).collect()
}

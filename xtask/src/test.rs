//! `cargo xtask test`: all tests.

use xshell::Shell;

use crate::step::{self, Step};
use crate::{checks, conformance, ext_tasks, machine, peers, readme, simulator};

const STEPS: &[Step] = &[
    ("machine", machine::prepare),
    ("format", checks::format),
    ("lints", checks::lints),
    ("documentation", checks::documentation),
    ("tests", checks::tests),
    ("simulator", simulator::run),
    ("mutations", simulator::mutations),
    ("conformance", conformance::run),
    ("conformance-2025", conformance::stateful),
    ("ext-tasks", ext_tasks::run),
    ("ext-tasks-2025", peers::ext_tasks_stateful),
    ("sdk", peers::sdk),
    ("mcpdo", peers::mcpdo),
    ("python", peers::python),
    ("rmcp", peers::rmcp),
    ("config", peers::config),
    ("browser", peers::browser),
    ("readme", readme::run),
];

pub(crate) fn run(shell: &Shell, only: Option<&str>) -> anyhow::Result<()> {
    step::run(shell, STEPS, only)?;
    println!("\nAll steps passed.");
    Ok(())
}

//! `cargo xtask test`: everything there is.

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
    ("ext-tasks", ext_tasks::run),
    ("readme", readme::run),
];

/// Whether the server speaks the stateful era. Until it does, the parts of `STATEFUL` run only where `--only` has their name.
const ERA_2025: bool = false;

/// Parts that need the stateful era, or that test both.
const STATEFUL: &[Step] = &[
    ("conformance-2025", conformance::stateful),
    ("sdk", peers::sdk),
    ("ext-tasks-2025", peers::ext_tasks_stateful),
    ("mcpdo", peers::mcpdo),
    ("python", peers::python),
    ("rmcp", peers::rmcp),
];

pub(crate) fn run(shell: &Shell, only: Option<&str>) -> anyhow::Result<()> {
    let stateful = STATEFUL.iter().filter(|(name, _)| ERA_2025 || only == Some(name));
    let steps: Vec<Step> = STEPS.iter().chain(stateful).copied().collect();
    step::run(shell, &steps, only)?;
    println!("\nEverything passed.");
    Ok(())
}

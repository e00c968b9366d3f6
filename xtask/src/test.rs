//! `cargo xtask test`: everything there is.

use xshell::Shell;

use crate::step::{self, Step};
use crate::{checks, conformance, ext_tasks, machine, readme, simulator};

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

pub(crate) fn run(shell: &Shell, only: Option<&str>) -> anyhow::Result<()> {
    step::run(shell, STEPS, only)?;
    println!("\nEverything passed.");
    Ok(())
}

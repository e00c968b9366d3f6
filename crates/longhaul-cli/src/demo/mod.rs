//! The tools of `serve --demo`, which show what a durable task can do.

mod deploy;
mod generate_report;
mod import_orders;
mod keep_watch;
mod nightly_backup;

use longhaul::Tool;

/// What the demo server tells models about itself.
pub const INSTRUCTIONS: &str = "A demonstration of long-running tasks. `generate_report` takes some seconds, \
reports its progress, and continues after a crash where it was; `deploy` asks for approval; `import_orders` fails; \
`nightly_backup` is started again after a crash; `keep_watch` runs until it is cancelled.";

pub fn tools() -> Vec<Tool> {
    vec![generate_report::tool(), deploy::tool(), import_orders::tool(), nightly_backup::tool(), keep_watch::tool()]
}

//! The official conformance suite, scenario by scenario, against the `conformance` example.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use serde::Deserialize;
use xshell::{Shell, cmd};

use crate::server::Server;

/// A line of `interop/conformance.json` or `interop/conformance-2025.json`.
#[derive(Deserialize)]
struct Scenario {
    #[serde(rename = "scenario")]
    name: String,
    args: Vec<String>,
    /// The number of checks that must succeed.
    checks: usize,
    /// Checks that are known to fail because the server does not have the feature yet.
    #[serde(default)]
    failing: Vec<String>,
}

#[derive(Deserialize)]
struct Check {
    id: String,
    status: String,
}

pub(crate) fn run(shell: &Shell) -> anyhow::Result<()> {
    run_list(shell, "interop/conformance.json")
}

/// The scenarios of 2025-11-25 for a server with tools.
pub(crate) fn stateful(shell: &Shell) -> anyhow::Result<()> {
    run_list(shell, "interop/conformance-2025.json")
}

fn run_list(shell: &Shell, list: &str) -> anyhow::Result<()> {
    let scenarios: Vec<Scenario> = serde_json::from_str(&shell.read_file(list)?)?;
    let server = Server::start(shell)?;
    let mut failures = Vec::new();
    let mut passed = 0;
    for scenario in &scenarios {
        match check(shell, server.url(), scenario) {
            Ok(()) => {
                passed += scenario.checks;
                eprintln!("  {:2} checks  {}", scenario.checks, scenario.name);
            }
            Err(error) => failures.push(format!("{}: {error:#}", scenario.name)),
        }
    }
    anyhow::ensure!(
        failures.is_empty(),
        "{} of {} scenarios failed:\n{}",
        failures.len(),
        scenarios.len(),
        failures.join("\n")
    );
    println!("conformance: {passed} passed, 0 failed in {} scenarios", scenarios.len());
    Ok(())
}

fn check(shell: &Shell, url: &str, scenario: &Scenario) -> anyhow::Result<()> {
    let results = tempfile::tempdir()?;
    let (name, args, directory) = (&scenario.name, &scenario.args, results.path());
    let node = "interop/node_modules/node/bin/node";
    let suite = "interop/node_modules/@modelcontextprotocol/conformance/dist/index.js";
    let output = cmd!(shell, "{node} {suite} server --url {url} --scenario {name} --output-dir {directory} {args...}")
        .quiet()
        .ignore_status()
        .ignore_stderr()
        .read()?;
    let mut by_status: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for check in read_checks(results.path())? {
        by_status.entry(check.status).or_default().push(check.id);
    }
    let count = |status: &str| by_status.get(status).map_or(0, Vec::len);
    let failed: Vec<&String> = ["FAILURE", "WARNING"].iter().filter_map(|bad| by_status.get(*bad)).flatten().collect();
    let unexpected: Vec<_> = failed.into_iter().filter(|id| !scenario.failing.contains(id)).collect();
    anyhow::ensure!(unexpected.is_empty(), "failed checks {unexpected:?}\n{output}");
    let succeeded = count("SUCCESS");
    anyhow::ensure!(
        succeeded == scenario.checks,
        "{succeeded} checks succeeded instead of {}\n{output}",
        scenario.checks
    );
    Ok(())
}

/// The results that the suite has written. There are none for a scenario that it skips.
fn read_checks(directory: &Path) -> anyhow::Result<Vec<Check>> {
    let mut checks = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            checks.extend(read_checks(&path)?);
        } else if path.file_name().is_some_and(|name| name == "checks.json") {
            let text = std::fs::read_to_string(&path)?;
            checks.extend(serde_json::from_str::<Vec<Check>>(&text).with_context(|| path.display().to_string())?);
        }
    }
    Ok(checks)
}

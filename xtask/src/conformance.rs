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

const NODE: &str = "interop/node_modules/node/bin/node";
const SUITE: &str = "interop/node_modules/@modelcontextprotocol/conformance/dist/index.js";

pub(crate) fn run(shell: &Shell) -> anyhow::Result<()> {
    run_list(shell, "interop/conformance.json", "2026-07-28")
}

/// The scenarios of 2025-11-25.
pub(crate) fn stateful(shell: &Shell) -> anyhow::Result<()> {
    run_list(shell, "interop/conformance-2025.json", "2025-11-25")
}

fn run_list(shell: &Shell, list: &str, revision: &str) -> anyhow::Result<()> {
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
    requirements(shell, server.url(), revision, &scenarios)
}

/// Everything that the suite requires of this revision, and what it runs beside that without scoring it. The list must have
/// every one of these scenarios, so that none is new and not noticed.
fn requirements(shell: &Shell, url: &str, revision: &str, scenarios: &[Scenario]) -> anyhow::Result<()> {
    let results = tempfile::tempdir()?;
    let directory = results.path();
    let output = cmd!(shell, "{NODE} {SUITE} server --url {url} --requirements {revision} --output-dir {directory}")
        .quiet()
        .ignore_status()
        .ignore_stderr()
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    anyhow::ensure!(output.status.success(), "a requirement of {revision} is not met\n{text}");
    let known: Vec<&String> = scenarios.iter().flat_map(|scenario| &scenario.failing).collect();
    let failed: Vec<String> =
        read_checks(directory)?.into_iter().filter(|check| check.status == "FAILURE").map(|check| check.id).collect();
    let unexplained: Vec<_> = failed.iter().filter(|id| !known.contains(id)).collect();
    anyhow::ensure!(unexplained.is_empty(), "failed checks, scored or not: {unexplained:?}\n{text}");
    for entry in std::fs::read_dir(directory)? {
        // `server-<scenario>-<time>`
        let name = entry?.file_name().to_string_lossy().into_owned();
        let is_listed = scenarios.iter().any(|scenario| {
            let rest = name.strip_prefix("server-").and_then(|rest| rest.strip_prefix(&*scenario.name));
            rest.and_then(|rest| rest.strip_prefix("-20")).is_some_and(|time| time.contains('T'))
        });
        anyhow::ensure!(is_listed, "the list of {revision} has no scenario for {name}");
    }
    let total = text.lines().find(|line| line.starts_with("Total: ")).unwrap_or_default();
    println!("conformance: --requirements {revision}: {total}");
    Ok(())
}

fn check(shell: &Shell, url: &str, scenario: &Scenario) -> anyhow::Result<()> {
    let results = tempfile::tempdir()?;
    let (name, args, directory) = (&scenario.name, &scenario.args, results.path());
    let output = cmd!(shell, "{NODE} {SUITE} server --url {url} --scenario {name} --output-dir {directory} {args...}")
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

//! Runs named steps and prints the time of each.

use std::time::Instant;

use anyhow::Context as _;
use xshell::Shell;

pub(crate) type Step = (&'static str, fn(&Shell) -> anyhow::Result<()>);

/// Runs the steps in order until one fails. `only` selects the step with this name or, if there is none, all steps
/// whose name contains it.
pub(crate) fn run(shell: &Shell, steps: &[Step], only: Option<&str>) -> anyhow::Result<()> {
    let is_exact = steps.iter().any(|(name, _)| only == Some(name));
    let is_chosen = |name: &str| only.is_none_or(|only| if is_exact { name == only } else { name.contains(only) });
    let chosen: Vec<&Step> = steps.iter().filter(|(name, _)| is_chosen(name)).collect();
    anyhow::ensure!(!chosen.is_empty(), "there is no step with the name {:?}", only.unwrap_or_default());
    let mut times = Vec::new();
    for (index, (name, step)) in chosen.iter().enumerate() {
        eprintln!("\n=== {}/{} {name}", index + 1, chosen.len());
        let started = Instant::now();
        step(shell).with_context(|| format!("{name} failed"))?;
        times.push((name, started.elapsed()));
    }
    eprintln!();
    for (name, time) in times {
        eprintln!("{:>6.1} s  {name}", time.as_secs_f64());
    }
    Ok(())
}

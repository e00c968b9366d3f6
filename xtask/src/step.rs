//! Parts of a long run, each with its headline and its time.

use std::time::Instant;

use anyhow::Context as _;
use xshell::Shell;

/// One part of a run.
pub(crate) type Step = (&'static str, fn(&Shell) -> anyhow::Result<()>);

/// Runs the parts in order and ends with the first that fails. `only` is one of them, or what the names of some have.
pub(crate) fn run(shell: &Shell, steps: &[Step], only: Option<&str>) -> anyhow::Result<()> {
    let is_one = steps.iter().any(|(name, _)| only == Some(name));
    let is_chosen = |name: &str| only.is_none_or(|part| if is_one { name == part } else { name.contains(part) });
    let chosen: Vec<&Step> = steps.iter().filter(|(name, _)| is_chosen(name)).collect();
    anyhow::ensure!(!chosen.is_empty(), "no part is named {:?}", only.unwrap_or_default());
    let mut times = Vec::new();
    for (place, (name, step)) in chosen.iter().enumerate() {
        eprintln!("\n=== {}/{} {name}", place + 1, chosen.len());
        let begun = Instant::now();
        step(shell).with_context(|| format!("{name} failed"))?;
        times.push((name, begun.elapsed()));
    }
    eprintln!();
    for (name, time) in times {
        eprintln!("{:>6.1} s  {name}", time.as_secs_f64());
    }
    Ok(())
}

//! Prints medians, ratios and targets.

use super::contestant::Contestant::{self, Bare, Ours, Rmcp, Sqlite};
use super::contestant::RATE_LIMIT;
use super::list::{FEW, Lists, Turn};
use super::machine::Measurement;
use super::round::{MEMORY_TASKS, Retained, Round};

/// A measurement during which other processes used more processor cores than this is unreliable.
const OTHER_CORES_MAX: f64 = 0.1;

pub(crate) fn print(rounds: &[Round], retained: Option<&Retained>, lists: Option<&Lists>) {
    if !rounds.is_empty() {
        print_rounds(rounds);
    }
    println!();
    let round_targets = if rounds.is_empty() { Vec::new() } else { targets(rounds) };
    let retained = retained.map(retained_targets).into_iter().flatten();
    let lists = lists.map(list_targets).into_iter().flatten();
    for target in round_targets.into_iter().chain(retained).chain(lists) {
        let verdict = if target.is_met() { "reached" } else { "MISSED " };
        println!("{verdict}  {:60} {:8.2}  (target {})", target.what, target.value, target.bound());
    }
}

fn print_rounds(rounds: &[Round]) {
    println!(
        "\n{:14} {:8} {:>10} {:>10} {:>10} {:>14}",
        "measured", "who", "per s", "p50 µs", "p99 µs", "CPU µs/request"
    );
    for key in rounds.iter().flat_map(Round::keys).collect::<std::collections::BTreeSet<_>>() {
        let [rate, p50, p99, cpu] = [
            median(rounds, *key, |measured| measured.rate_per_s),
            median(rounds, *key, |measured| measured.p50_us),
            median(rounds, *key, |measured| measured.p99_us),
            median(rounds, *key, |measured| measured.server_cpu_us_per_request),
        ];
        println!("{:14} {:8} {rate:>10.0} {p50:>10.0} {p99:>10.0} {cpu:>14.1}", key.0, format!("{:?}", key.1));
    }
    println!(
        "\nLonghaul ran with a rate limit of {RATE_LIMIT} requests per second, because one owner sends all requests."
    );
    // A sync is the kernel's work, which counts as another process.
    let others = rounds.iter().flatten().filter(|((what, _), _)| *what != "fsync");
    let disturbed = others.filter(|(_, measured)| measured.other_cores > OTHER_CORES_MAX).count();
    if disturbed > 0 {
        println!(
            "\nOther processes were busy during {disturbed} measurements; run this again when the machine is idle."
        );
    }
}

/// A value with a lower or an upper bound.
struct Target {
    what: String,
    value: f64,
    at_least: Option<f64>,
    at_most: Option<f64>,
}

impl Target {
    fn at_least(what: &str, value: f64, bound: f64) -> Self {
        Self { what: what.into(), value, at_least: Some(bound), at_most: None }
    }

    fn at_most(what: &str, value: f64, bound: f64) -> Self {
        Self { what: what.into(), value, at_least: None, at_most: Some(bound) }
    }

    fn is_met(&self) -> bool {
        self.at_least.is_none_or(|bound| self.value >= bound) && self.at_most.is_none_or(|bound| self.value <= bound)
    }

    fn bound(&self) -> String {
        match (self.at_least, self.at_most) {
            (Some(bound), _) => format!("at least {bound}"),
            (_, Some(bound)) => {
                if bound < 10.0 {
                    format!("at most {bound}")
                } else {
                    format!("at most {bound:.0}")
                }
            }
            (None, None) => String::new(),
        }
    }
}

fn targets(rounds: &[Round]) -> Vec<Target> {
    let rate = |what, who| median(rounds, (what, who), |measured| measured.rate_per_s);
    let cpu = |what, who| median(rounds, (what, who), |measured| measured.server_cpu_us_per_request);
    let two_fsyncs_us = 2.0 * median(rounds, ("fsync", Ours), |measured| measured.p50_us);
    let memory = median(rounds, ("memory", Ours), |measured| measured.rss_bytes);
    vec![
        Target::at_least("get: rate over the bare endpoint's", rate("get", Ours) / rate("get", Bare), 0.8),
        Target::at_most("get: processor time over the bare endpoint's", cpu("get", Ours) / cpu("get", Bare), 1.4),
        Target::at_least("create: rate over rusqlite alone", rate("create", Ours) / rate("create", Sqlite), 0.7),
        Target::at_least(
            "100 steps, one task: rate over rusqlite alone",
            rate("steps 1", Ours) / rate("steps 1", Sqlite),
            0.7,
        ),
        Target::at_least(
            "100 steps, 100 tasks: rate over rusqlite alone",
            rate("steps 100", Ours) / rate("steps 100", Sqlite),
            0.7,
        ),
        Target::at_least("create: rate over rmcp in memory", rate("create", Ours) / rate("create", Rmcp), 5.0),
        Target::at_most(
            "create to completed, one connection: p50 µs",
            median(rounds, ("complete 1", Ours), |measured| measured.p50_us),
            two_fsyncs_us + 1_000.0,
        ),
        Target::at_least(
            "create to completed, 32 connections: rate over rusqlite alone",
            rate("complete 32", Ours) / rate("complete 32", Sqlite),
            0.7,
        ),
        Target::at_most(&format!("memory: MB added by {MEMORY_TASKS} settled tasks"), memory / 1e6, 10.0),
    ]
}

fn retained_targets(retained: &Retained) -> Vec<Target> {
    let ratio = |(few, many): &(Measurement, Measurement)| many.rate_per_s / few.rate_per_s;
    let tasks = retained.tasks;
    vec![
        Target::at_least(&format!("get: rate with {tasks} retained tasks over few"), ratio(&retained.get), 0.8),
        Target::at_least(
            &format!("create: the same, over the ceiling's own ratio ({:.2})", ratio(&retained.ceiling_create)),
            ratio(&retained.create) / ratio(&retained.ceiling_create),
            0.8,
        ),
    ]
}

/// The processor time for a page with many tasks, divided by that with few.
fn list_targets(lists: &Lists) -> Vec<Target> {
    let cpu = |select: fn(&Turn) -> &Measurement| {
        middle(lists.turns.iter().map(|turn| select(turn).server_cpu_us_per_request))
    };
    let tasks = lists.tasks;
    let target = |what: &str, few: f64, many: f64| {
        let what = format!("list: {what} page with {tasks} tasks over {FEW} ({many:.0} and {few:.0} µs)");
        Target::at_most(&what, many / few, 1.25)
    };
    vec![
        target("first", cpu(|turn| &turn.first.0), cpu(|turn| &turn.first.1)),
        target("deep", cpu(|turn| &turn.deep.0), cpu(|turn| &turn.deep.1)),
    ]
}

fn median(rounds: &[Round], key: (&'static str, Contestant), value: impl Fn(&Measurement) -> f64) -> f64 {
    middle(rounds.iter().filter_map(|round| round.get(&key)).map(value))
}

fn middle(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

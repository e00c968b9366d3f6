//! `cargo xtask bench`: measures Longhaul, the ceilings and the peer, in turns, on one machine.
//!
//! - `machine`: the programs and the disk.
//! - `contestant`: the servers that are measured.
//! - `round`: one measurement of every server.
//! - `list`: pages of the list, with few and with many tasks.
//! - `report`: medians, ratios, targets.

mod contestant;
mod list;
mod machine;
mod report;
mod round;

use xshell::Shell;

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Bench {
    /// Number of rounds; the report shows medians
    #[arg(long, default_value_t = 5)]
    rounds: usize,

    /// Duration of each measurement in seconds
    #[arg(long, default_value_t = 5)]
    seconds: u32,

    /// Number of tasks that counts as many when few and many retained tasks are compared; 0 skips the comparison
    #[arg(long, default_value_t = 1_000_000)]
    retained: usize,

    /// Number of tasks in the long list when a short and a long list are compared; 0 skips the comparison
    #[arg(long, default_value_t = 1_000_000)]
    listed: usize,

    /// Run only this part
    #[arg(long, value_name = "PART")]
    only: Option<Part>,
}

/// A part that can be run alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// The rounds, in which all servers are measured in turns
    Rounds,
    /// Rates with few and with many retained tasks
    Retained,
    /// Pages of the list with few and with many tasks
    List,
}

impl Bench {
    pub(crate) fn run(&self, shell: &Shell) -> anyhow::Result<()> {
        let has = |part| self.only.is_none_or(|only| only == part);
        let machine = machine::Machine::prepare(shell, self.only != Some(Part::List))?;
        let mut rounds = Vec::new();
        for number in 1..=if has(Part::Rounds) { self.rounds } else { 0 } {
            eprintln!("=== round {number} of {}", self.rounds);
            rounds.push(round::run(&machine, self.seconds)?);
        }
        let retained = match self.retained {
            tasks if tasks > 0 && has(Part::Retained) => Some(round::retained(&machine, self.seconds, tasks)?),
            _ => None,
        };
        let lists = match self.listed {
            tasks if tasks > 0 && has(Part::List) => Some(list::run(&machine, self.rounds, self.seconds, tasks)?),
            _ => None,
        };
        report::print(&rounds, retained.as_ref(), lists.as_ref());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    /// The statements of a schema without comments.
    fn statements(schema: &str) -> Vec<String> {
        let lines = schema.lines().map(|line| line.split("--").next().unwrap_or_default());
        let text = lines.collect::<Vec<_>>().join(" ").replace("IF NOT EXISTS ", "");
        let statements = text.split(';').map(|statement| statement.split_whitespace().collect::<Vec<_>>().join(" "));
        statements.filter(|statement| !statement.is_empty()).collect()
    }

    #[test]
    fn the_ceiling_has_the_tables_and_indexes_of_the_product() {
        let product = concat!(
            include_str!("../../../crates/longhaul-store-sqlite/src/schema/0001_tasks.sql"),
            include_str!("../../../crates/longhaul-store-sqlite/src/schema/0002_small_texts.sql"),
            include_str!("../../../crates/longhaul-store-sqlite/src/schema/0003_turns.sql"),
            include_str!("../../../crates/longhaul-store-sqlite/src/schema/0004_checksums.sql"),
            include_str!("../../../crates/longhaul-store-sqlite/src/schema/0005_journal.sql"),
        );
        let ceiling = include_str!("../../../bench/ceiling/src/sqlite/schema.sql");
        let mut product = statements(product);
        // The ceiling has no secrets. It does not have the later migrations (idempotency keys, `began_at`) either.
        product.retain(|statement| !statement.starts_with("CREATE TABLE secret"));
        assert_eq!(statements(ceiling), product);
    }
}

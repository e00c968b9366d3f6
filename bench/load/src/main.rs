//! `load SCENARIO …` runs one scenario and prints one JSON line. The exit code is 1 if any response is not a task.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use load::scenario::{complete, create, fill, fsync, get, list, rss, steps, walk};
use serde_json::{Value, json};

#[derive(Parser)]
#[command(about = "Load and measurements for the benchmark; one JSON line per run")]
struct Cli {
    #[command(subcommand)]
    scenario: Scenario,
}

#[derive(Subcommand)]
enum Scenario {
    /// Create echo tasks as fast as the server acknowledges them.
    Create(create::Args),
    /// Read tasks, uniformly over all IDs of a file.
    Get(get::Args),
    /// Create a task, then `tasks/get` back to back until it is completed.
    Complete(complete::Args),
    /// Create a task of recorded steps, then poll it with `tasks/get` until it is completed.
    Steps(steps::Args),
    /// Create a given number of tasks, for runs with many retained ones.
    Fill(fill::Args),
    /// Read pages of the list of tasks.
    List(list::Args),
    /// Read the whole list once, and save its cursors.
    Walk(walk::Args),
    /// Measure the time of a durable write in a directory.
    Fsync(fsync::Args),
    /// Print the resident memory of a process.
    Rss(rss::Args),
}

impl Scenario {
    fn run(&self) -> (&'static str, anyhow::Result<Value>) {
        match self {
            Self::Create(args) => ("create", create::run(args)),
            Self::Get(args) => ("get", get::run(args)),
            Self::Complete(args) => ("complete", complete::run(args)),
            Self::Steps(args) => ("steps", steps::run(args)),
            Self::Fill(args) => ("fill", fill::run(args)),
            Self::List(args) => ("list", list::run(args)),
            Self::Walk(args) => ("walk", walk::run(args)),
            Self::Fsync(args) => ("fsync", fsync::run(args)),
            Self::Rss(args) => ("rss", rss::run(args)),
        }
    }
}

fn main() -> ExitCode {
    let (scenario, outcome) = Cli::parse().scenario.run();
    let (mut line, code) = match outcome {
        Ok(figures) => (figures, ExitCode::SUCCESS),
        Err(error) => (json!({ "errors": 1, "error": format!("{error:#}") }), ExitCode::FAILURE),
    };
    line["scenario"] = scenario.into();
    println!("{line}");
    code
}

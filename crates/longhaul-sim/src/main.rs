//! `longhaul-sim`: plays histories, or one again.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use longhaul_sim::{HistoryResult, mutation, play, play_twice, run};

/// Plays seeded histories of the engine and its store under crashes, and checks each against the laws.
#[derive(Debug, Parser)]
struct Args {
    /// How many histories.
    #[arg(long, default_value_t = 100_000)]
    histories: u64,
    /// The seed of the first history; each further one has the next seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Threads; as many as there are processors when left out.
    #[arg(long)]
    threads: Option<usize>,
    /// Plays this one history again.
    #[arg(long, value_name = "SEED")]
    replay: Option<u64>,
    /// Prints the whole ledger of a replayed history, not only of a broken one.
    #[arg(long)]
    verbose: bool,
    #[command(subcommand)]
    command: Option<SimCommand>,
}

#[derive(Debug, Subcommand)]
enum SimCommand {
    /// Plays histories twice and compares them.
    Twice,
    /// Puts faults into a copy of the code, one after the other, and checks that each is found.
    Mutations {
        /// The root of the workspace.
        #[arg(long, default_value = ".")]
        workspace: PathBuf,
        /// Where the copy and its build go.
        #[arg(long, default_value = "target/mutations")]
        scratch: PathBuf,
        /// Tries only the mutations with these names.
        #[arg(long, value_name = "NAME")]
        only: Vec<String>,
    },
}

fn main() -> ExitCode {
    let args = Args::parse();
    match (&args.command, args.replay) {
        (Some(SimCommand::Mutations { workspace, scratch, only }), _) => mutations(&args, workspace, scratch, only),
        (Some(SimCommand::Twice), _) => twice(&args),
        (None, Some(seed)) => replay(seed, args.verbose),
        (None, None) => histories(&args),
    }
}

fn mutations(args: &Args, workspace: &Path, scratch: &Path, only: &[String]) -> ExitCode {
    println!("seed {}, up to {} histories for each mutation", args.seed, args.histories);
    let tell = |result: &mutation::MutationResult| match &result.found {
        Some(found) => println!("{:<36}{:>8}  {}", result.mutation.name, found.histories, found.broken),
        None => println!("{:<36}       -  not found", result.mutation.name),
    };
    let results = std::path::absolute(scratch)
        .map_err(mutation::MutationError::from)
        .and_then(|scratch| mutation::run(workspace, &scratch, only, args.seed, args.histories, tell));
    match results {
        Ok(results) if results.iter().all(|result| result.found.is_some()) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn twice(args: &Args) -> ExitCode {
    for seed in args.seed..args.seed.saturating_add(args.histories) {
        if let Err(differs) = play_twice(seed) {
            println!("{differs}");
            return ExitCode::FAILURE;
        }
    }
    println!("{} histories are the same when they are played again", args.histories);
    ExitCode::SUCCESS
}

fn replay(seed: u64, verbose: bool) -> ExitCode {
    let played = play(seed);
    if verbose || played.broken.is_some() {
        trace(&played);
    }
    if played.broken.is_some() {
        return ExitCode::FAILURE;
    }
    println!("seed {seed}: every law holds over {} lines", played.ledger.len());
    ExitCode::SUCCESS
}

fn histories(args: &Args) -> ExitCode {
    println!("seed {}, {} histories", args.seed, args.histories);
    let threads = args.threads.or_else(|| std::thread::available_parallelism().ok().map(usize::from)).unwrap_or(1);
    let run = run::run(args.seed, args.histories, threads);
    if let Some(broken) = &run.broken {
        trace(broken);
        println!("found after {} histories", run.played);
        return ExitCode::FAILURE;
    }
    let seconds = run.took.as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    let rate = run.played as f64 / seconds;
    println!("{}", run.coverage);
    println!("{} histories in {seconds:.1} s: {rate:.0} a second on {threads} threads", run.played);
    let gaps = run.coverage.gaps();
    for gap in &gaps {
        println!("not covered: {gap}");
    }
    if gaps.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn trace(played: &HistoryResult) {
    for (line, entry) in played.ledger.iter().enumerate() {
        println!("{line:>5} {entry}");
    }
    if let Some(broken) = &played.broken {
        println!("\nseed {} breaks a law: {broken}", played.seed);
        println!("play it again with --replay {}", played.seed);
    }
}

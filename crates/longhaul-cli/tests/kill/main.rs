//! Acknowledged changes are durable: the server is killed at random moments under load and started again on the same
//! file, and everything that it acknowledged must be there.
//!
//! `LONGHAUL_KILLS` sets the number of kills (20). `LONGHAUL_SEED` repeats the random choices of a run, but not its
//! scheduling.

mod job;
mod ledger;
mod load;
mod operator;
mod verify;

#[path = "../kit/mod.rs"]
mod kit;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use longhaul_testkit::in_time;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::kit::{Launch, ServerProcess};
use crate::ledger::Ledger;

/// The number of clients.
const CONNECTIONS: u64 = 32;

/// The most responses before a kill.
const ANSWERS_MAX: u64 = 400;

/// The longest random delay between the last of these responses and the kill.
const JITTER: Duration = Duration::from_millis(5);

/// One of this many kills comes during the start of the server.
const EARLY_ONE_IN: u32 = 4;

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_survives_every_kill() {
    let (kills, seed) = (from_environment("LONGHAUL_KILLS", 20_u32), from_environment("LONGHAUL_SEED", rand::random()));
    say(&format!("kill: {kills} kills, LONGHAUL_SEED={seed}"));
    // Not deleted if the test fails.
    let directory = tempfile::Builder::new().prefix("longhaul-kill-").disable_cleanup(true).tempdir().unwrap();
    say(&format!("kill: the store is in {}", directory.path().display()));
    let mut run = KillRun {
        file: directory.path().join("tasks.db"),
        ledger: Arc::new(Ledger::new(directory.path())),
        rng: StdRng::seed_from_u64(seed),
        start: Duration::from_millis(100),
        early: 0,
    };
    for _ in 0..kills {
        if run.rng.random_ratio(1, EARLY_ONE_IN) {
            run.kill_while_it_starts().await;
        } else {
            run.kill_under_load().await;
        }
        run.look_at_the_dead();
    }
    run.let_everything_end().await;
    say(&format!("kill: {kills} kills, {} of them while it started; {}", run.early, run.ledger.counts()));
    std::fs::remove_dir_all(directory.path()).unwrap();
}

struct KillRun {
    file: PathBuf,
    ledger: Arc<Ledger>,
    rng: StdRng,
    /// The duration of the last start, for kills during a start.
    start: Duration,
    early: u32,
}

impl KillRun {
    /// All clients are one owner, so the rates must not limit it.
    fn launch(&self) -> Launch {
        Launch::conformance().store(&self.file).arg("--rate-limit").arg("1000000")
    }

    async fn start(&mut self) -> ServerProcess {
        let began = Instant::now();
        let server = self.launch().start().await;
        self.start = began.elapsed();
        server
    }

    async fn kill_while_it_starts(&mut self) {
        self.early += 1;
        let starting = self.launch().spawn();
        let moment = self.rng.random_range(Duration::ZERO..self.start.mul_f64(1.3));
        tokio::time::sleep(moment).await;
        starting.kill().await;
    }

    async fn kill_under_load(&mut self) {
        let server = self.start().await;
        verify::after_start(&self.ledger, &self.file, server.address()).await;
        let killed = Arc::new(AtomicBool::new(false));
        let clients: Vec<_> = (0..CONNECTIONS)
            .map(|_| {
                let client = load::Worker::new(Arc::clone(&self.ledger), self.rng.random(), Arc::clone(&killed));
                tokio::spawn(client.run(server.address()))
            })
            .collect();
        let answers = self.rng.random_range(0..=ANSWERS_MAX);
        in_time("answers under load", self.ledger.answers(answers)).await;
        tokio::time::sleep(self.rng.random_range(Duration::ZERO..JITTER)).await;
        killed.store(true, Ordering::SeqCst);
        server.kill().await;
        for client in clients {
            client.await.expect("what a client saw was right");
        }
    }

    /// The state in the store after a kill, read from a copy so that the file does not change.
    fn look_at_the_dead(&mut self) {
        if self.ledger.is_empty() {
            return;
        }
        let copy = copy_of(&self.file);
        self.ledger.died(&operator::list(&copy));
    }

    async fn let_everything_end(&mut self) {
        let server = self.start().await;
        verify::after_start(&self.ledger, &self.file, server.address()).await;
        verify::let_everything_end(&self.ledger, server.address()).await;
        verify::settled(&self.ledger, &self.file);
        assert!(server.stop().await, "the server ends well when it is asked to");
    }
}

/// The database and its log, without the shared memory, which a crash of the machine would lose.
fn copy_of(file: &Path) -> PathBuf {
    let directory = file.with_file_name("dead");
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir(&directory).unwrap();
    for name in ["tasks.db", "tasks.db-wal"] {
        let from = file.with_file_name(name);
        if from.exists() {
            std::fs::copy(from, directory.join(name)).unwrap();
        }
    }
    directory.join("tasks.db")
}

fn from_environment<T: FromStr>(name: &str, otherwise: T) -> T {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is a number, not {text:?}")),
        Err(_) => otherwise,
    }
}

/// Not with `println!`: the test harness hides the output of a passing test.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

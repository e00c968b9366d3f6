//! Acknowledged changes are durable: the server is killed at random moments under load and started again on the same
//! file, and everything that it acknowledged must be there.
//!
//! A second test also has accidents between the kills: the clock jumps, the disk is full, files of the store are moved or
//! removed.
//!
//! `LONGHAUL_KILLS` sets the number of kills (20, and 10 with accidents). `LONGHAUL_SEED` repeats the random choices of a run,
//! but not its scheduling.

#[cfg(target_os = "linux")]
mod accident;
mod idempotency;
mod job;
mod ledger;
mod load;
mod operator;
mod sep1686;
mod verify;

#[path = "../kit/mod.rs"]
mod kit;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use longhaul_testkit::{in_time, number_from_environment};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::task::JoinHandle;

use crate::kit::{Launch, ServerProcess};
use crate::ledger::Ledger;
use crate::load::{Situation, Worker};

/// The number of clients.
const CONNECTIONS: u64 = 32;

/// The most responses before a kill.
const ANSWERS_MAX: u64 = 400;

/// The longest random delay between the last of these responses and the kill.
const JITTER: Duration = Duration::from_millis(5);

/// The most kills of one store. All of its tasks are checked after each kill, and must not expire before the last.
const KILLS_OF_A_STORE_MAX: u32 = 25;

/// One of this many kills comes during the start of the server.
const EARLY_ONE_IN: u32 = 4;

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_survives_every_kill() {
    for (kills, mut run) in kill_runs("kill", 20) {
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
        std::fs::remove_dir_all(&run.directory).unwrap();
    }
}

/// Runs without tasks, each with its number of kills and a store of its own.
fn kill_runs(name: &str, kills: u32) -> impl Iterator<Item = (u32, KillRun)> {
    let kills = number_from_environment("LONGHAUL_KILLS", kills);
    let seed: u64 = number_from_environment("LONGHAUL_SEED", rand::random());
    let before = (0..kills).step_by(KILLS_OF_A_STORE_MAX as usize);
    before.zip(0..).map(move |(before, number)| {
        let kills = (kills - before).min(KILLS_OF_A_STORE_MAX);
        (kills, KillRun::new(name, kills, seed.wrapping_add(number)))
    })
}

struct KillRun {
    directory: PathBuf,
    file: PathBuf,
    ledger: Arc<Ledger>,
    rng: StdRng,
    /// The duration of the last start, for kills during a start.
    start: Duration,
    early: u32,
    /// The program under which the server runs, if there is one.
    wrapper: Vec<String>,
}

impl KillRun {
    fn new(name: &str, kills: u32, seed: u64) -> Self {
        // Not deleted if the test fails.
        let directory =
            tempfile::Builder::new().prefix("longhaul-kill-").disable_cleanup(true).tempdir().unwrap().keep();
        say(&format!("{name}: {kills} kills, LONGHAUL_SEED={seed}, the store is in {}", directory.display()));
        Self {
            file: directory.join("tasks.db"),
            ledger: Arc::new(Ledger::new(&directory)),
            rng: StdRng::seed_from_u64(seed),
            start: Duration::from_millis(100),
            early: 0,
            wrapper: Vec::new(),
            directory,
        }
    }

    /// All clients are one owner, so the rates must not limit it.
    fn launch(&self) -> Launch {
        Launch::conformance().store(&self.file).arg("--rate-limit").arg("1000000").under(&self.wrapper)
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
        self.start_under_load().await.kill(&mut self.rng).await;
    }

    /// A server on the file, whose tasks are checked, with clients that have got some responses.
    async fn start_under_load(&mut self) -> ServerUnderLoad {
        let server = self.start().await;
        verify::after_start(&self.ledger, &self.file, server.address()).await;
        let situation = Arc::new(Situation::default());
        let clients = (0..CONNECTIONS)
            .map(|_| {
                let client = Worker::new(Arc::clone(&self.ledger), self.rng.random(), Arc::clone(&situation));
                tokio::spawn(client.run(server.address()))
            })
            .collect();
        let answers = self.rng.random_range(0..=ANSWERS_MAX);
        in_time("answers under load", self.ledger.answers(answers)).await;
        ServerUnderLoad { server, situation, clients }
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

struct ServerUnderLoad {
    server: ServerProcess,
    situation: Arc<Situation>,
    clients: Vec<JoinHandle<()>>,
}

impl ServerUnderLoad {
    async fn kill(self, rng: &mut StdRng) {
        tokio::time::sleep(rng.random_range(Duration::ZERO..JITTER)).await;
        self.situation.ends.store(true, Ordering::SeqCst);
        self.server.kill().await;
        clients_end(self.clients).await;
    }
}

async fn clients_end(clients: Vec<JoinHandle<()>>) {
    for client in clients {
        client.await.expect("what a client saw was right");
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

/// Not with `println!`: the test harness hides the output of a passing test.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

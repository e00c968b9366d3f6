//! Accidents between the kills.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use jiff::Timestamp;
use longhaul_testkit::{StatelessClient, in_time};
use rand::RngExt;
use serde_json::json;

use crate::kit::IGNORE_FILE_LIMIT;
use crate::{KillRun, ServerUnderLoad, clients_end, kill_runs, say};

/// The furthest that the clock is from the time of the system, in seconds. Tasks of anonymous callers are kept for an hour, so
/// a run of half an hour loses none.
const CLOCK_SECONDS_MAX: i64 = 600;

/// The size of files on a full disk: that of a page, so that nothing is committed, and files of handlers can be written.
const FULL_BYTES: u64 = 4_096;

/// How often each accident happened.
#[derive(Debug, Default)]
struct Accidents {
    clock_jumps: u32,
    full_disks: u32,
    moved_stores: u32,
    removed_files: u32,
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_survives_every_kill_and_every_accident() {
    for (kills, run) in kill_runs("accidents", 10) {
        kill_with_accidents(kills, run).await;
    }
}

async fn kill_with_accidents(kills: u32, mut run: KillRun) {
    let clock = Clock::new(&run.directory);
    run.wrapper.extend(clock.iter().flat_map(Clock::wrapper));
    run.wrapper.extend(IGNORE_FILE_LIMIT.map(str::to_owned));
    let mut accidents = Accidents::default();
    for kill in 0..kills {
        match kill % 5 {
            0 => run.kill_while_it_starts().await,
            1 => {
                accidents.full_disks += 1;
                run.fill_the_disk().await;
            }
            2 if run.rng.random() => {
                accidents.moved_stores += 1;
                run.move_the_store().await;
                run.look_at_the_dead();
                run.kill_under_load().await;
            }
            2 => {
                accidents.removed_files += 1;
                run.remove_a_file().await;
                run.look_at_the_dead();
                run.kill_under_load().await;
            }
            _ => {
                if let Some(clock) = &clock {
                    accidents.clock_jumps += run.let_the_clock_jump(clock).await;
                } else {
                    run.kill_under_load().await;
                }
            }
        }
        run.look_at_the_dead();
    }
    if let Some(clock) = &clock {
        clock.set(0);
    }
    run.let_everything_end().await;
    say(&format!("accidents: {kills} kills, {accidents:?}; {}", run.ledger.counts()));
    std::fs::remove_dir_all(&run.directory).unwrap();
}

impl KillRun {
    /// The clock jumps under load, and before the next start.
    async fn let_the_clock_jump(&mut self, clock: &Clock) -> u32 {
        let loaded = self.start_under_load().await;
        let jumps = self.rng.random_range(1..=3);
        for _ in 0..jumps {
            let ahead = self.rng.random_range(-CLOCK_SECONDS_MAX..=CLOCK_SECONDS_MAX);
            clock.set(ahead);
            in_time("answers after a jump", self.ledger.answers(100)).await;
            assert!(is_clock_ahead(&loaded, ahead).await, "the server does not use the clock of the test");
        }
        loaded.kill(&mut self.rng).await;
        clock.set(0);
        jumps + 1
    }

    /// The disk is full for a while, or until the kill.
    async fn fill_the_disk(&mut self) {
        let loaded = self.start_under_load().await;
        self.ledger.disk_full(true);
        loaded.situation.refuses.store(true, Ordering::SeqCst);
        loaded.server.limit_files(Some(FULL_BYTES));
        in_time("refusals on a full disk", loaded.situation.refusals(50)).await;
        if self.rng.random_ratio(2, 3) {
            loaded.server.limit_files(None);
            in_time("tasks when there is room again", self.ledger.creations(20)).await;
        }
        loaded.kill(&mut self.rng).await;
        self.ledger.disk_full(false);
    }

    /// The database and its log are moved away, and back when the server has ended: nothing is lost.
    async fn move_the_store(&mut self) {
        let loaded = self.start_under_load().await;
        let away = self.directory.join("away");
        std::fs::create_dir_all(&away).unwrap();
        let files = [file_of(&self.file, ""), file_of(&self.file, "-wal")].map(|file| {
            let moved = away.join(file.file_name().unwrap());
            (file, moved)
        });
        loaded.situation.expect_end();
        for (file, moved) in &files {
            std::fs::rename(file, moved).unwrap();
        }
        loaded.ends_because_of(&files.each_ref().map(|(file, _)| file.as_path())).await;
        for (file, moved) in &files {
            std::fs::rename(moved, file).unwrap();
        }
    }

    /// A file of the store is removed. What was only in this file is lost, as the server says.
    async fn remove_a_file(&mut self) {
        let endings = ["", "-wal", "-shm", ".lock"];
        let ending = endings[self.rng.random_range(0..endings.len())];
        let loaded = self.start_under_load().await;
        let file = file_of(&self.file, ending);
        loaded.situation.expect_end();
        std::fs::remove_file(&file).unwrap();
        loaded.ends_because_of(&[&file]).await;
        if matches!(ending, "" | "-wal") {
            self.ledger.file_removed();
            for ending in endings {
                // Some were removed above or by the server.
                let _ = std::fs::remove_file(file_of(&self.file, ending));
            }
        }
    }
}

/// Whether a new task of the server was created by a clock that is about this many seconds ahead of the system's.
async fn is_clock_ahead(loaded: &ServerUnderLoad, seconds: i64) -> bool {
    let mut client = StatelessClient::connect(loaded.server.address()).await.expect("a server that listens");
    let id = client.create("echo", json!({ "text": "what time is it" })).await.expect("a task");
    let task = client.get(&id).await.expect("a task");
    let created: Timestamp = task.value["createdAt"].as_str().and_then(|text| text.parse().ok()).expect("a time");
    (created.as_second() - Timestamp::now().as_second() - seconds).abs() < CLOCK_SECONDS_MAX / 10
}

fn file_of(store: &Path, ending: &str) -> PathBuf {
    format!("{}{ending}", store.display()).into()
}

impl crate::load::Situation {
    /// The server is about to lose a file: it refuses requests, and ends.
    fn expect_end(&self) {
        self.refuses.store(true, Ordering::SeqCst);
        self.ends.store(true, Ordering::SeqCst);
    }
}

impl ServerUnderLoad {
    /// Waits until the server has named one of the lost files and ended. No task is acknowledged meanwhile.
    async fn ends_because_of(self, lost: &[&Path]) {
        self.situation.has_lost_file.store(true, Ordering::SeqCst);
        self.server.says("[STORE_STOPPED]").await;
        let log = self.server.log();
        let is_named = |file: &&Path| log.contains(&format!("{} was removed or moved", file.display()));
        assert!(lost.iter().any(is_named), "none of {lost:?} is named in\n{log}");
        assert_eq!(self.server.exit_code().await, Some(4));
        clients_end(self.clients).await;
    }
}

/// A clock that the test sets while the server runs, by way of libfaketime.
struct Clock {
    library: PathBuf,
    file: PathBuf,
}

impl Clock {
    /// `None` if libfaketime is not installed.
    fn new(directory: &Path) -> Option<Self> {
        let architecture = std::env::consts::ARCH;
        let library = PathBuf::from(format!("/usr/lib/{architecture}-linux-gnu/faketime/libfaketimeMT.so.1"));
        if !library.exists() {
            say("SKIPPED: jumps of the clock; install libfaketime");
            return None;
        }
        let clock = Self { library, file: directory.join("clock") };
        clock.set(0);
        Some(clock)
    }

    fn wrapper(&self) -> impl Iterator<Item = String> {
        [
            "env".to_owned(),
            format!("LD_PRELOAD={}", self.library.display()),
            format!("FAKETIME_TIMESTAMP_FILE={}", self.file.display()),
            // The file is read at each look at the clock.
            "FAKETIME_NO_CACHE=1".to_owned(),
            "FAKETIME_DONT_FAKE_MONOTONIC=1".to_owned(),
        ]
        .into_iter()
    }

    /// Removes the shared memory that libfaketime leaves behind when its process is killed.
    fn remove_shared_memory() {
        for entry in std::fs::read_dir("/dev/shm").into_iter().flatten().flatten() {
            let name = entry.file_name();
            let process =
                ["faketime_shm_", "sem.faketime_sem_"].iter().find_map(|prefix| name.to_str()?.strip_prefix(prefix));
            if process.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
                // Another run may have removed it.
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }

    /// Sets the clock this many seconds ahead of the system's.
    fn set(&self, seconds: i64) {
        let new = self.file.with_extension("new");
        std::fs::write(&new, format!("{seconds:+}")).unwrap();
        std::fs::rename(new, &self.file).unwrap();
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        Self::remove_shared_memory();
    }
}

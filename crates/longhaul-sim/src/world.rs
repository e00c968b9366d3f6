//! The state that survives a process: the disk, the clock, the ledger, the random source, and what clients know.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use longhaul_store::Clock;
use longhaul_task::{JournalPosition, NodeId, QuestionKey, TaskKey, Timestamp};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::client::KeyedRequest;
use crate::coverage::Coverage;
use crate::disk::SimDisk;
use crate::fault::{CrashPoint, Fault, FaultRates};
use crate::ledger::{Entry, Fact};
use crate::random::SeededRandom;
use crate::setup::{Script, Setup};
use crate::store::at_once;
use crate::time::StoreTime;
use crate::writer::SimWriter;

/// The most calls of the store without time passing in between. More count as an endless loop.
const CALLS_AT_ONCE_MAX: usize = 3_000;

/// The most calls of the store after the last request. More count as an endless loop.
const CALLS_LEFT_ALONE_MAX: usize = 5_000;

/// A handle on the world of one history.
#[derive(Debug, Clone)]
pub(crate) struct World(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    disk: SimDisk,
    time: StoreTime,
    setup: Setup,
    state: Mutex<WorldState>,
    /// The writer of the running process.
    writer: Mutex<Option<Arc<SimWriter>>>,
    dead: Notify,
    calm: Notify,
}

#[derive(Debug)]
pub(crate) struct WorldState {
    pub(crate) random: SeededRandom,
    pub(crate) ledger: Vec<Entry>,
    pub(crate) coverage: Coverage,
    pub(crate) fault_rates: FaultRates,
    /// The calm phase: no more faults, and handlers do not hang.
    pub(crate) is_calm: bool,
    /// Every retention is over.
    pub(crate) all_expires: bool,
    /// Actions of clients before the calm phase.
    pub(crate) actions_left: u64,
    pub(crate) stage: ProcessStage,
    pub(crate) crashed: Option<CrashPoint>,
    /// Describes the endless loop, if one was found.
    pub(crate) endless: Option<&'static str>,
    /// The nodes of the process.
    pub(crate) nodes: Vec<NodeId>,
    /// Durable events whose callers have no response yet.
    pub(crate) unanswered: BTreeMap<u64, &'static str>,
    pub(crate) calls: u64,
    calls_at: Option<Instant>,
    calls_at_once: usize,
    calls_left_alone: usize,
    /// Handlers in memory.
    pub(crate) handlers: usize,
    /// Handlers at work, by engine and tool.
    pub(crate) working: BTreeMap<(usize, usize), usize>,
    /// Tasks that clients know of.
    pub(crate) known: Vec<TaskKey>,
    /// Questions that clients have seen.
    pub(crate) asked: Vec<(TaskKey, QuestionKey)>,
    /// Attempts that the previous process held when it crashed.
    pub(crate) held: Vec<(TaskKey, u64)>,
    /// Attempts that have lost their task.
    pub(crate) outdated_attempts: Vec<(TaskKey, u64)>,
    /// All IDs that clients have chosen.
    pub(crate) chosen: BTreeSet<TaskKey>,
    pub(crate) own_ids: usize,
    /// The requests that clients have sent under idempotency keys.
    pub(crate) requests: Vec<KeyedRequest>,
    pub(crate) scripts: Vec<Arc<Script>>,
    /// How often the work of each step was done, as the outside world knows it. By task, epoch and position.
    pub(crate) tries: BTreeMap<(TaskKey, u32, JournalPosition), u32>,
    /// The attempt and the process in which each sleep began. By task, epoch and position.
    pub(crate) sleep_starts: BTreeMap<(TaskKey, u32, JournalPosition), (u32, u64)>,
    /// The number of processes so far.
    pub(crate) processes: u64,
}

/// The stage of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProcessStage {
    Starting,
    Serving,
    ShuttingDown,
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = SeededRandom::new(seed);
        let setup = Setup::choose(&mut random);
        let fault_rates = FaultRates::choose(&mut random);
        let actions_left = random.between(10, 70);
        let rules = Fact::Rules(setup.rules());
        let state = WorldState {
            random,
            ledger: Vec::with_capacity(512),
            coverage: Coverage { histories: 1, ..Coverage::default() },
            fault_rates,
            is_calm: false,
            all_expires: false,
            actions_left,
            stage: ProcessStage::Starting,
            crashed: None,
            endless: None,
            nodes: Vec::new(),
            unanswered: BTreeMap::new(),
            calls: 0,
            calls_at: None,
            calls_at_once: 0,
            calls_left_alone: 0,
            handlers: 0,
            working: BTreeMap::new(),
            known: Vec::new(),
            asked: Vec::new(),
            held: Vec::new(),
            outdated_attempts: Vec::new(),
            chosen: BTreeSet::new(),
            own_ids: 0,
            requests: Vec::new(),
            scripts: Vec::new(),
            tries: BTreeMap::new(),
            sleep_starts: BTreeMap::new(),
            processes: 0,
        };
        let world = Self(Arc::new(Inner {
            disk: SimDisk::default(),
            time: StoreTime::start(),
            setup,
            state: Mutex::new(state),
            writer: Mutex::default(),
            dead: Notify::new(),
            calm: Notify::new(),
        }));
        world.note(rules);
        world
    }

    pub(crate) fn disk(&self) -> &SimDisk {
        &self.0.disk
    }

    pub(crate) fn time(&self) -> &StoreTime {
        &self.0.time
    }

    pub(crate) fn setup(&self) -> &Setup {
        &self.0.setup
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, WorldState> {
        self.0.state.lock()
    }

    pub(crate) fn random<T>(&self, draw: impl FnOnce(&mut SeededRandom) -> T) -> T {
        draw(&mut self.state().random)
    }

    /// Adds a fact to the ledger, unless the process has crashed.
    pub(crate) fn note(&self, fact: Fact) {
        let at = self.0.time.now();
        let mut state = self.state();
        if state.crashed.is_none() {
            state.ledger.push(Entry { at, fact });
        }
    }

    /// The length of the ledger.
    pub(crate) fn line(&self) -> usize {
        self.state().ledger.len()
    }

    pub(crate) fn count_fault(&self, fault: Fault) {
        self.state().coverage.count_fault(fault);
    }

    pub(crate) fn count_other(&self, what: &'static str) {
        self.state().coverage.count_other(what);
    }

    pub(crate) fn is_calm(&self) -> bool {
        self.state().is_calm
    }

    pub(crate) fn calm_down(&self) {
        let mut state = self.state();
        state.is_calm = true;
        state.fault_rates = FaultRates::CALM;
        state.calls_left_alone = 0;
        drop(state);
        self.0.calm.notify_waiters();
    }

    pub(crate) async fn calm(&self) {
        let calm = self.0.calm.notified();
        if !self.is_calm() {
            calm.await;
        }
    }

    pub(crate) fn writer(&self) -> Option<Arc<SimWriter>> {
        self.0.writer.lock().clone()
    }

    /// Called when a process starts.
    pub(crate) fn boot(&self, writer: Arc<SimWriter>) {
        *self.0.writer.lock() = Some(writer);
        self.state().processes += 1;
    }

    /// Called when a process has ended.
    pub(crate) fn halt(&self) {
        let writer = self.0.writer.lock().take();
        drop(writer);
        self.0.disk.restart();
        // Removes the notification of the crash if it was not received.
        at_once(self.0.dead.notified());
        let held = self.0.disk.held();
        let mut state = self.state();
        state.crashed = None;
        state.stage = ProcessStage::Starting;
        state.nodes.clear();
        state.unanswered.clear();
        state.handlers = 0;
        state.working.clear();
        state.held = held;
        state.calls_left_alone = 0;
    }

    /// Crashes the process: from here on its actions have no effect.
    pub(crate) fn crash(&self, point: CrashPoint) {
        let mut state = self.state();
        if state.crashed.is_some() {
            return;
        }
        let point = match (state.stage, point) {
            (_, CrashPoint::Untrusted) => point,
            (ProcessStage::Starting, _) => CrashPoint::InRecovery,
            (ProcessStage::ShuttingDown, _) => CrashPoint::InShutdown,
            (ProcessStage::Serving, CrashPoint::Idle) if !state.unanswered.is_empty() => CrashPoint::BetweenAnswers,
            (ProcessStage::Serving, _) => point,
        };
        *state.coverage.crashes.entry(point).or_default() += 1;
        for event in std::mem::take(&mut state.unanswered).into_values() {
            state.coverage.crash_after(event);
        }
        drop(state);
        self.note(Fact::Crashed(point));
        self.state().crashed = Some(point);
        self.0.dead.notify_one();
    }

    /// Sets the clock to the right time if it is ahead.
    pub(crate) fn correct_clock(&self) {
        let from = self.time().now();
        if self.time().correct() {
            self.note(Fact::ClockSetBack { from });
            self.count_fault(Fault::ClockCorrected);
        }
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.state().crashed.is_some()
    }

    /// Resolves when the process has crashed.
    pub(crate) async fn death(&self) {
        self.0.dead.notified().await;
    }

    /// Ends the history because of an endless loop.
    pub(crate) fn endless(&self, what: &'static str) {
        self.state().endless.get_or_insert(what);
        self.crash(CrashPoint::Idle);
    }

    /// Called for each call of the store and each response. Returns the delay.
    pub(crate) fn call(&self) -> u64 {
        let now = Instant::now();
        let mut state = self.state();
        state.calls += 1;
        if state.calls_at == Some(now) {
            state.calls_at_once += 1;
        } else {
            state.calls_at = Some(now);
            state.calls_at_once = 1;
        }
        state.calls_left_alone += 1;
        let endless = match () {
            () if state.calls_at_once > CALLS_AT_ONCE_MAX => Some("the store is called without end"),
            () if state.is_calm && state.calls_left_alone > CALLS_LEFT_ALONE_MAX => Some("its timers ring without end"),
            () => None,
        };
        let delay_ms = state.delay_ms();
        drop(state);
        if let Some(what) = endless {
            self.endless(what);
        }
        delay_ms
    }

    /// Called when no more requests follow.
    pub(crate) fn leave_alone(&self) {
        self.state().calls_left_alone = 0;
    }

    pub(crate) fn script(&self, number: usize) -> Arc<Script> {
        Arc::clone(&self.state().scripts[number])
    }
}

impl Clock for World {
    fn now(&self) -> Timestamp {
        self.0.time.now()
    }
}

impl longhaul_engine::RandomSource for World {
    fn bits(&self) -> [u8; 16] {
        self.random(SeededRandom::bits)
    }
}

impl WorldState {
    /// A random task that clients know, more often a recent one.
    pub(crate) fn pick_known(&mut self) -> Option<TaskKey> {
        let from = if self.random.below(2) == 0 { self.known.len().saturating_sub(5) } else { 0 };
        self.random.pick(&self.known[from..]).cloned()
    }

    /// The delay of a call in one direction.
    fn delay_ms(&mut self) -> u64 {
        if !self.random.permille(self.fault_rates.delay) {
            return 0;
        }
        self.coverage.count_fault(Fault::Delay);
        match self.random.below(20) {
            0 => self.random.between(50, 500),
            1..=6 => self.random.between(5, 60),
            _ => self.random.between(1, 4),
        }
    }

    /// How long the writer waits for more requests before a batch.
    pub(crate) fn write_ms(&mut self) -> u64 {
        if self.is_calm { 0 } else { self.random.between(0, 4) }
    }
}

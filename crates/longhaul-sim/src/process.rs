//! One process, from its start to a crash or a shutdown: the store, its engines and their clients.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use longhaul_engine::Engine;
use longhaul_store::embedded::{EmbeddedLimits, Hashing, Reader};
use longhaul_store::{Clock, Embedded, Store};
use longhaul_task::TaskKey;
use parking_lot::Mutex;
use tokio::task::AbortHandle;

use crate::client::SimClient;
use crate::fault::{CrashPoint, Fault};
use crate::handler;
use crate::ledger::{EndStage, Fact, IdleCounts};
use crate::setup::{LIFE_MS_MAX, RUNNING_MS_MAX};
use crate::store::SimStore;
use crate::world::{ProcessStage, World};
use crate::writer::SimWriter;

/// The first wait without requests. It is longer than every backoff, grace period and pause of a service, the wait for a missing
/// tool and the sleeps of a whole family, and much shorter than the time after which a task is overdue.
const ALONE: Duration = Duration::from_secs(120);

/// The wait after a round of answers: longer than every backoff, grace period, pause and sleep.
const AFTER_ANSWERS: Duration = Duration::from_secs(60);

/// The wait until a new process has handled the due tasks.
const AFTER_START: Duration = Duration::from_secs(3);

/// Rounds of answers at the end. After them, tasks that still ask are cancelled.
const ROUNDS: usize = 3;

/// How many tasks clients follow at once.
const FOLLOWED_MAX: usize = 6;

/// What follows the end of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    Process,
    /// The history is over.
    Nothing,
}

pub(crate) struct SimProcess {
    world: World,
    store: Arc<dyn Store>,
    engines: Vec<Engine>,
    followed: Mutex<Vec<TaskFollower>>,
}

struct TaskFollower {
    key: TaskKey,
    /// Every revision that was read; `None` where the task did not exist.
    revisions: Arc<Mutex<Vec<Option<u64>>>>,
    task: AbortHandle,
}

impl SimProcess {
    /// Opens the store and starts the engines. `None` if one of them could not start.
    pub(crate) async fn start(world: &World) -> Option<Self> {
        let setup = world.setup();
        let limits = EmbeddedLimits {
            cache_bytes_max: setup.cache_bytes,
            batch_max: setup.batch_max,
            ..EmbeddedLimits::default()
        };
        let (disk, reader) = (world.disk().clone(), world.disk().reader(world));
        let (inner, writer) = Embedded::with_writer_loop(disk, reader.clone(), world.clone(), &limits, Hashing::Fixed);
        let writer = Arc::new(SimWriter::new(world, inner.clone(), writer));
        world.boot(Arc::clone(&writer));
        let store: Arc<dyn Store> = Arc::new(SimStore::new(world, inner.clone(), Arc::clone(&writer)));
        tokio::spawn(async move { writer.run().await });
        tokio::spawn(die_with_the_store(world.clone(), Arc::clone(&store)));

        let count = if world.is_calm() { 1 } else { setup.engines };
        if count > 1 {
            world.count_fault(Fault::SeveralEngines);
        }
        let mut engines = Vec::new();
        for engine in 0..count {
            let has_gone_tool = world.is_calm() || world.random(|random| random.below(3) > 0);
            let served = (0..setup.tools.len()).filter(|index| has_gone_tool || !setup.tools[*index].may_be_gone);
            let tools = served.map(|index| handler::tool(world, &inner, engine, index)).collect();
            let started = Engine::start(Arc::clone(&store), tools, setup.limits.clone(), Arc::new(world.clone())).await;
            let Ok(engine) = started else {
                world.count_fault(Fault::StartFailed);
                return None;
            };
            engines.push(engine);
            let held = reader.held(None, usize::MAX).unwrap_or_default();
            let nodes = world.state().nodes.clone();
            world.note(Fact::Recovered { nodes, held });
        }
        let mut state = world.state();
        state.stage = ProcessStage::Serving;
        let held = std::mem::take(&mut state.held);
        state.outdated_attempts.extend(held);
        drop(state);
        Some(Self { world: world.clone(), store, engines, followed: Mutex::default() })
    }

    /// Runs clients until the process ends, or until they have no actions left; then the calm phase follows.
    pub(crate) async fn live(&self) -> Next {
        loop {
            if self.world.state().all_expires {
                self.leave_alone(AFTER_START).await;
                self.record_idle(EndStage::Expired);
                return Next::Nothing;
            }
            if self.world.is_calm() {
                self.calm().await;
                return Next::Process;
            }
            if self.step().await {
                return Next::Process;
            }
        }
    }

    /// Starts one action of a client, or a fault of the process. Returns true if the process has ended.
    async fn step(&self) -> bool {
        let (pause_ms, crashes, shuts_down, jumps, is_last) = {
            let state = &mut *self.world.state();
            let fault_rates = state.fault_rates;
            state.actions_left = state.actions_left.saturating_sub(1);
            let pause_ms = match state.random.below(20) {
                0..=7 => 0,
                8..=16 => state.random.between(1, 60),
                17 | 18 => state.random.between(1, 1_000),
                _ => state.random.between(1_000, 8_000),
            };
            let mut permille = |times| state.random.permille(times);
            (
                pause_ms,
                permille(fault_rates.idle_crash),
                permille(fault_rates.shutdown),
                permille(fault_rates.clock_jump),
                state.actions_left == 0,
            )
        };
        if pause_ms > 0 {
            tokio::time::sleep(Duration::from_millis(pause_ms)).await;
        } else {
            tokio::task::yield_now().await;
        }
        if crashes {
            self.world.crash(CrashPoint::Idle);
            std::future::pending::<()>().await;
        }
        if jumps {
            self.jump();
        }
        if is_last {
            self.world.calm_down();
            // The final counts are checked for one engine, and engines do not know each other's counts.
            if self.engines.len() > 1 || self.world.random(|random| random.below(6) == 0) {
                self.shut_down().await;
                return true;
            }
            return false;
        }
        let client = self.client();
        if self.world.random(|random| random.permille(40)) {
            self.follow(client);
        } else {
            tokio::spawn(client.act());
        }
        if shuts_down {
            self.shut_down().await;
        }
        shuts_down
    }

    fn client(&self) -> SimClient {
        let engine = self.world.random(|random| random.below(self.engines.len()));
        SimClient { world: self.world.clone(), engine: self.engines[engine].clone() }
    }

    /// Sets the store's clock forward or back.
    fn jump(&self) {
        if self.world.random(|random| random.below(8) == 0) {
            return self.world.correct_clock();
        }
        let (back, ms) = self.world.random(|random| match random.below(8) {
            0..=3 => (true, random.between(1, 500)),
            4..=6 => (false, random.between(1, 100_000)),
            _ => (false, random.between(1, 2 * RUNNING_MS_MAX)),
        });
        if back {
            let from = self.world.now();
            self.world.time().jump_back(ms);
            self.world.note(Fact::ClockSetBack { from });
            self.world.count_fault(Fault::ClockBack);
        } else {
            self.world.time().jump_forward(ms);
            self.world.count_fault(Fault::ClockForward);
        }
    }

    fn follow(&self, client: SimClient) {
        let Some(key) = self.world.state().pick_known() else { return };
        let mut followed = self.followed.lock();
        if followed.len() == FOLLOWED_MAX {
            let index = self.world.random(|random| random.below(FOLLOWED_MAX));
            followed.swap_remove(index).task.abort();
        }
        let revisions = Arc::<Mutex<Vec<Option<u64>>>>::default();
        let log = Arc::clone(&revisions);
        let task = tokio::spawn(client.follow(key.clone(), move |revision| log.lock().push(revision)));
        followed.push(TaskFollower { key, revisions, task: task.abort_handle() });
    }

    async fn shut_down(&self) {
        self.world.state().stage = ProcessStage::ShuttingDown;
        self.world.count_fault(Fault::Shutdown);
        let hangs_up = self.world.random(|random| random.below(2) == 0);
        if hangs_up {
            self.world.count_fault(Fault::HangUp);
            join_all(self.engines.iter().map(Engine::give_up_waiting_tasks)).await;
        }
        join_all(self.engines.iter().map(Engine::shut_down)).await;
        self.store.close().await;
        self.world.note(Fact::ShutDown);
    }

    /// Lets all tasks end in stages, and records the counts after each stage.
    async fn calm(&self) {
        self.leave_alone(ALONE).await;
        self.record_idle(EndStage::LeftAlone);
        for round in 0..=ROUNDS {
            let open = self.world.disk().open();
            if open.is_empty() {
                break;
            }
            for (key, questions) in open {
                if round == ROUNDS || questions.is_empty() {
                    self.client().cancel(&key).await;
                } else if self.world.random(|random| random.below(4) > 0) {
                    for question in questions {
                        self.client().answer(&key, question).await;
                    }
                }
            }
            self.leave_alone(AFTER_ANSWERS).await;
        }
        self.record_idle(EndStage::Settled);
        self.shut_down().await;
        // For the next process every retention is over when it starts.
        self.world.time().jump_past_all(2 * LIFE_MS_MAX);
        self.world.state().all_expires = true;
    }

    async fn leave_alone(&self, time: Duration) {
        self.world.leave_alone();
        tokio::time::sleep(time).await;
    }

    fn record_idle(&self, stage: EndStage) {
        for followed in &*self.followed.lock() {
            if let Some(seen) = followed.revisions.lock().last() {
                self.world.note(Fact::Followed { key: followed.key.clone(), seen: *seen });
            }
        }
        let Some(engine) = self.engines.first() else { return };
        let (attempts, running) = engine.attempts();
        let owners = &self.world.setup().owners;
        let open: BTreeMap<_, _> = owners.iter().map(|owner| (owner.clone(), engine.open(owner))).collect();
        let handlers = self.world.state().handlers;
        let open = open.into_iter().collect();
        let places = engine.budgets().iter().find(|budget| budget.resource == "attempts").map_or(0, |it| it.used);
        let quiet = IdleCounts { stage, load: engine.load(), open, attempts, places, running, handlers };
        self.world.note(Fact::Quiet(quiet));
    }
}

/// Crashes the process soon after its store has stopped.
async fn die_with_the_store(world: World, store: Arc<dyn Store>) {
    store.stopped().await;
    let ms = world.random(|random| random.between(0, 200));
    tokio::time::sleep(Duration::from_millis(ms)).await;
    world.crash(CrashPoint::Untrusted);
}

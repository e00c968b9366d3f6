//! Drives the store's writer, which has its own thread in production.

use std::time::Duration;

use longhaul_store::embedded::{WriteRequest, WriterLoop};
use longhaul_store::{Clock, Embedded};
use longhaul_task::TaskKey;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::disk::{BatchJob, MidBatchRead, SimDisk};
use crate::fault::{CrashPoint, Fault, Kind, TransactionPlan};
use crate::ledger::Fact;
use crate::world::World;

/// Events that occur in few histories.
const RARE: [&str; 7] = ["renew", "wake", "overdue", "expire", "abandon", "time out", "release"];

pub(crate) struct SimWriter {
    world: World,
    store: Embedded,
    writer: Mutex<Option<WriterLoop<SimDisk>>>,
    /// Wakes the writer's task.
    pub(crate) requests: Notify,
}

impl SimWriter {
    pub(crate) fn new(world: &World, store: Embedded, writer: WriterLoop<SimDisk>) -> Self {
        Self { world: world.clone(), store, writer: Mutex::new(Some(writer)), requests: Notify::new() }
    }

    /// The writer's task.
    pub(crate) async fn run(&self) {
        loop {
            self.requests.notified().await;
            let pause_ms = self.world.state().write_ms();
            if pause_ms > 0 {
                tokio::time::sleep(Duration::from_millis(pause_ms)).await;
            }
            while self.turn() {}
        }
    }

    /// Writes one batch if requests wait and the writer is not busy. A reader calls this, too, at points where the
    /// writer's thread could run in production.
    pub(crate) fn turn(&self) -> bool {
        let Some(mut guard) = self.writer.try_lock() else { return false };
        let Some(writer) = guard.as_mut() else { return false };
        if self.world.is_dead() {
            return false;
        }
        let Some(batch) = writer.try_batch() else {
            if writer.is_closed() {
                guard.take().into_iter().for_each(WriterLoop::close);
            }
            return false;
        };
        let plan = self.expect(batch.requests());
        writer.carry_out(batch);
        self.done(plan);
        true
    }

    fn expect(&self, requests: &[WriteRequest]) -> TransactionPlan {
        let now = self.world.now();
        let events: Vec<_> = requests.iter().filter_map(event_of).collect();
        let rare = events.iter().any(|(_, event)| RARE.contains(event));
        let mut state = self.world.state();
        let fault_rates = state.fault_rates;
        let plan = fault_rates.plan(&mut state.random, rare);
        // Sometimes a client reads in the middle of a transaction.
        let mid_batch_read = if !state.known.is_empty() && !state.is_calm && state.random.permille(150) {
            let keys = (0..2).filter_map(|_| state.pick_known()).collect();
            let at = state.random.below(12);
            Some(MidBatchRead { at, keys, store: self.store.clone(), began: state.ledger.len() })
        } else {
            None
        };
        drop(state);
        self.world.disk().expect(BatchJob { plan, now, events, mid_batch_read });
        plan
    }

    fn done(&self, plan: TransactionPlan) {
        let done = self.world.disk().done();
        let mut committed = Vec::new();
        for fact in done.facts {
            if let Fact::Committed(commit) = &fact {
                committed.extend(commit.written.iter().map(|written| written.event));
                committed.extend(commit.recorded.iter().map(|recorded| recorded.entry.kind.as_str()));
            }
            self.world.note(fact);
        }
        let mut state = self.world.state();
        for event in &committed {
            state.coverage.committed(event);
        }
        if done.failed {
            match plan {
                TransactionPlan::FailAt(_, Kind::Full) | TransactionPlan::FailCommit(Kind::Full) => {
                    state.coverage.count_fault(Fault::Full);
                }
                TransactionPlan::FailAt(_, Kind::Failed) | TransactionPlan::FailCommit(Kind::Failed) => {
                    state.coverage.count_fault(Fault::Unavailable);
                }
                TransactionPlan::Untrusted { .. } => state.coverage.count_fault(Fault::Untrusted),
                TransactionPlan::Well
                | TransactionPlan::CrashAt(_)
                | TransactionPlan::CrashBeforeCommit
                | TransactionPlan::CrashInCommit { .. } => {}
            }
        }
        // The batch is durable and in the cache, and the process crashes before the first answer.
        let permille = state.fault_rates.crash / 4;
        let dies_now = done.crashed.is_none() && state.random.permille(permille);
        let crashed = if dies_now { Some(CrashPoint::BeforeAnswers) } else { done.crashed };
        if crashed.is_some() {
            for event in done.lost {
                state.coverage.crash_before(event);
            }
            for event in committed {
                state.coverage.crash_after(event);
            }
        }
        drop(state);
        if let Some(point) = crashed {
            self.world.crash(point);
        }
    }
}

impl std::fmt::Debug for SimWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SimWriter").finish_non_exhaustive()
    }
}

fn event_of(request: &WriteRequest) -> Option<(TaskKey, &'static str)> {
    match request {
        WriteRequest::Apply(key, event) => Some((key.clone(), event.name())),
        WriteRequest::Create(_)
        | WriteRequest::Claim(_)
        | WriteRequest::Record(..)
        | WriteRequest::Secret(..)
        | WriteRequest::Check
        | WriteRequest::Verify => None,
    }
}

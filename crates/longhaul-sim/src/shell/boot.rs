//! A process comes up on what is on the disk.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use longhaul_engine::core::Core;
use longhaul_store::embedded::{Published, Reader, Request, Writer, orphans};
use longhaul_store::{StoreError, Watchers};
use longhaul_task::transition::Lose;
use longhaul_task::{Event, NodeId, Timestamp};

use super::service::{Due, Gone, Queue};
use super::{Process, Timer};
use crate::disk::SimDisk;
use crate::fault::CrashPoint;
use crate::ledger::Fact;
use crate::outside::Outside;

/// How many orphans recovery writes at once, at most.
const RECOVERY_BATCH: usize = 3;

/// How a process comes up, or does not.
pub(crate) enum Boot {
    Up(Box<Process>),
    Failed,
    Crashed(CrashPoint),
}

impl Process {
    /// Starts a process on what is on the disk: recovery first, then it serves.
    pub(crate) fn boot(disk: &SimDisk, out: &mut Outside) -> Boot {
        disk.restart();
        let node = NodeId::mint(out.chance.bits());
        out.note(Fact::Booted(node));
        let published = Arc::new(Published::new(out.setup.cache_bytes));
        let watchers = Arc::new(Watchers::default());
        let mut core = Core::new(node, out.setup.limits.clone());
        let mut served = Vec::new();
        for (place, setup) in out.setup.tools.iter().enumerate() {
            if !setup.may_be_gone || out.chance.below(2) == 0 {
                core.register(setup.tool.clone(), setup.limits.clone());
                served.push(place);
            }
        }
        let mut process = Self {
            node,
            core,
            writer: Writer::new(disk.clone(), Arc::clone(&published), Arc::clone(&watchers)),
            reader: disk.reader(),
            disk: disk.clone(),
            published,
            watchers,
            served,
            inbox: VecDeque::new(),
            answers: Vec::new(),
            running: BTreeMap::new(),
            replaced: BTreeSet::new(),
            timers: BTreeMap::new(),
            timers_set: 0,
            due: Due::default(),
            queue: Queue::default(),
            gone: Gone::default(),
            unsaved_progress: HashMap::new(),
            progress_saved_at: Timestamp::ZERO,
            draining: false,
            giving_up: None,
        };
        match process.recover(out) {
            Ok(true) => {
                process.after(out, 0, Timer::Due);
                process.after(out, 0, Timer::Gone);
                Boot::Up(Box::new(process))
            }
            Ok(false) => Boot::Failed,
            Err(_) => Boot::Crashed(CrashPoint::InRecovery),
        }
    }

    /// Deals with what a dead process left behind. `false` when the store did not let it.
    fn recover(&mut self, out: &mut Outside) -> Result<bool, CrashPoint> {
        loop {
            let alive = |node: &NodeId| *node == self.node;
            let Ok(lost) = orphans(&self.reader, alive, 1_000) else { return Ok(false) };
            if lost.is_empty() {
                break;
            }
            for group in lost.chunks(RECOVERY_BATCH) {
                let request = |orphan: &longhaul_store::Orphan| {
                    Request::Apply(orphan.key.clone(), Event::Lose(Lose { node: orphan.node, fence: orphan.fence }))
                };
                for answer in self.batch(out, group.iter().map(request).collect())? {
                    match answer {
                        Ok(_) | Err(StoreError::NotFound | StoreError::Refused(_)) => {}
                        Err(_) => return Ok(false),
                    }
                }
            }
        }
        let held = self.reader.held(None, usize::MAX).unwrap_or_default();
        out.note(Fact::Recovered { node: self.node, held });
        for count in self.reader.census().unwrap_or_default() {
            let size = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
            self.core.count(count.owner, &count.tool, size(count.tasks), size(count.queued));
        }
        Ok(true)
    }
}

//! What runs beside the requests: the due tasks, the queue, the tools that are gone, the end of a process.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use longhaul_engine::core::{Alarm, Input, due_event, look_at_queue};
use longhaul_store::embedded::{Reader, Request, Response};
use longhaul_store::{ClaimNext, Snapshot, StoreError};
use longhaul_task::transition::{Lose, Settle};
use longhaul_task::{Event, Fault, Outcome, Refused, Task, Timestamp, ToolRef};

use super::{Answered, Process, Timer, Waits};
use crate::outside::Outside;

/// The shell's own times.
pub(super) const WRITE_RETRY_MS_MIN: u64 = 50;
pub(super) const WRITE_RETRY_MS_MAX: u64 = 5_000;
const DUE_BATCH: usize = 256;
const DUE_SLEEP_MS_MAX: u64 = 60_000;
const DUE_RETRY_MS: u64 = 1_000;

/// The service that ends what is overdue, wakes what has slept, deletes what is expired.
#[derive(Debug, Default)]
pub(super) struct Due {
    /// When it has to look, at the latest.
    alarm: Alarm,
    notified: bool,
    /// It waits for so many answers of the store.
    waits: usize,
    /// One of them was that the store could not do it.
    failed: bool,
    /// It paused because the store could not be asked.
    paused: bool,
}

impl Due {
    /// The sleeper wakes at this moment or before.
    pub(super) fn at_latest(&mut self, at: Option<Timestamp>) {
        self.notified |= self.alarm.set(at);
    }
}

/// The service that wakes the core when something may be claimed.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) notified: bool,
    paused: bool,
}

impl Default for Queue {
    fn default() -> Self {
        Self { notified: true, paused: false }
    }
}

/// The service that fails tasks whose tool nobody serves.
#[derive(Debug, Default)]
pub(super) struct Gone {
    missing_since: HashMap<ToolRef, Timestamp>,
    /// Taken and not failed yet.
    claimed: VecDeque<Arc<Task>>,
    waits: bool,
}

impl Process {
    /// Lets one service do something; says whether any could.
    pub(crate) fn serve(&mut self, out: &mut Outside) -> bool {
        if self.draining {
            return false;
        }
        let queue_first = out.chance.below(2) == 0;
        (queue_first && self.serve_queue(out)) || self.serve_due(out) || self.serve_queue(out)
    }

    fn serve_due(&mut self, out: &mut Outside) -> bool {
        if self.due.waits > 0 || self.due.paused || !self.due.notified {
            return false;
        }
        self.due.notified = false;
        self.look_for_due(out);
        true
    }

    fn look_for_due(&mut self, out: &mut Outside) {
        self.due.alarm.reset();
        let now = out.time.wall();
        let Ok((keys, next)) = self.reader.due(now, DUE_BATCH) else { return };
        self.due.alarm.set(next);
        for key in keys {
            let Some(Snapshot { task, .. }) = self.read(&key) else { continue };
            match due_event(&task, now) {
                Some(event) => {
                    self.due.waits += 1;
                    self.send(Request::Apply(task.key.clone(), event), Waits::Due { due_at: task.due_at() });
                }
                None => drop(self.due.alarm.set(task.due_at())),
            }
        }
        if self.due.waits == 0 {
            self.due_sleep(out);
        }
    }

    fn due_sleep(&mut self, out: &mut Outside) {
        let wait_ms =
            self.due.alarm.at().map_or(DUE_SLEEP_MS_MAX, |at| at.ms_since(out.time.wall()).min(DUE_SLEEP_MS_MAX));
        self.after(out, wait_ms, Timer::Due);
    }

    pub(super) fn due_answered(&mut self, out: &mut Outside, due_at: Option<Timestamp>, answer: Answered) {
        self.due.waits -= 1;
        match answer {
            Ok(Response::Applied(applied)) => self.applied(out, &applied),
            Err(StoreError::Refused(Refused::TooEarly)) => {
                self.due.alarm.set(due_at);
            }
            Ok(_) | Err(StoreError::NotFound | StoreError::Refused(_)) => {}
            Err(_) => self.due.failed = true,
        }
        if self.due.waits > 0 {
            return;
        }
        if std::mem::take(&mut self.due.failed) {
            self.due.paused = true;
            self.after(out, DUE_RETRY_MS, Timer::Due);
        } else {
            self.due_sleep(out);
        }
    }

    fn serve_queue(&mut self, out: &mut Outside) -> bool {
        if self.queue.paused || !std::mem::take(&mut self.queue.notified) {
            return false;
        }
        let served: Vec<ToolRef> = self.served.iter().map(|place| out.setup.tools[*place].tool.clone()).collect();
        let queued = self.reader.queued_tools().unwrap_or_default().into_iter();
        let next = queued.filter(|(tool, _)| served.contains(tool)).map(|(_, not_before)| not_before).min();
        let look = look_at_queue(out.time.wall(), next);
        if look.offer {
            for tool in served {
                self.step(out, Input::MaybeQueued { tool });
            }
        }
        self.timers.retain(|_, timer| !matches!(timer, Timer::Queue));
        self.queue.paused = look.pause_ms > 0;
        if self.queue.paused {
            self.after(out, look.pause_ms, Timer::QueuePause);
        }
        self.after(out, look.pause_ms + look.sleep_ms, Timer::Queue);
        true
    }

    /// When the next timer rings.
    pub(crate) fn next_timer(&self) -> Option<u64> {
        self.timers.keys().next().map(|(at, _)| *at)
    }

    /// Whether an attempt is on its way out, and only time can end it.
    pub(crate) fn winds_up(&self) -> bool {
        self.timers.values().any(|timer| matches!(timer, Timer::Grace(..) | Timer::Retry { .. }))
    }

    /// Rings every timer whose time has come.
    pub(crate) fn ring(&mut self, out: &mut Outside) {
        while let Some(first) = self.timers.first_entry().filter(|first| first.key().0 <= out.time.steady()) {
            match first.remove() {
                Timer::Grace(key, fence) => {
                    self.step(out, Input::Dropped { key: key.clone(), fence });
                    self.forget(&key, fence);
                }
                Timer::Retry { key, fence, event, wait_ms } => {
                    if self.waits_for_end(&key, fence) {
                        self.write_end(key, fence, event, wait_ms);
                    }
                }
                Timer::Due => {
                    self.due.paused = false;
                    self.due.notified = true;
                }
                Timer::Queue => self.queue.notified = true,
                Timer::QueuePause => self.queue.paused = false,
                Timer::Gone => self.look_for_gone(out),
                Timer::DrainEnd => self.give_up(),
            }
        }
    }

    fn look_for_gone(&mut self, out: &mut Outside) {
        self.after(out, (out.setup.limits.tool_gone_ms / 10).max(1), Timer::Gone);
        if self.gone.waits {
            return;
        }
        // First what it took and could not fail, then what is queued.
        if !self.gone.claimed.is_empty() {
            return self.fail_claimed();
        }
        let now = out.time.wall();
        let queued = self.reader.queued_tools().unwrap_or_default().into_iter().map(|(tool, _)| tool);
        let missing: Vec<ToolRef> = queued.filter(|tool| !self.core.serves(tool)).collect();
        self.gone.missing_since.retain(|tool, _| missing.contains(tool));
        for tool in missing {
            let since = *self.gone.missing_since.entry(tool.clone()).or_insert(now);
            if now.ms_since(since) >= out.setup.limits.tool_gone_ms && !self.gone.waits {
                self.gone.waits = true;
                out.coverage.also("tool gone");
                let claim = ClaimNext { node: self.node, wants: vec![(tool, 100)] };
                self.send(Request::Claim(claim), Waits::GoneClaim);
            }
        }
    }

    pub(super) fn gone_claimed(&mut self, answer: Answered) {
        if let Ok(Response::Claimed(claimed)) = answer {
            self.gone.claimed.extend(claimed.into_iter().map(|claimed| claimed.task));
        }
        self.fail_claimed();
    }

    fn fail_claimed(&mut self) {
        self.gone.waits = false;
        if let Some(task) = self.gone.claimed.front() {
            self.gone.waits = true;
            let outcome = Outcome::Refusal(Fault::tool_gone(&task.tool));
            let event = Event::Settle(Settle { fence: task.fence, outcome });
            self.send(Request::Apply(task.key.clone(), event), Waits::GoneSettle);
        }
    }

    pub(super) fn gone_settled(&mut self, out: &mut Outside, answer: Answered) {
        match answer {
            Ok(Response::Applied(applied)) => self.applied(out, &applied),
            Ok(_) | Err(StoreError::NotFound | StoreError::Refused(_)) => {}
            // The next pass tries again.
            Err(_) => {
                self.gone.waits = false;
                return;
            }
        }
        self.gone.claimed.pop_front();
        self.fail_claimed();
    }

    /// Takes nothing new, and ends when its handlers have.
    pub(crate) fn shut_down(&mut self, out: &mut Outside) {
        self.draining = true;
        self.step(out, Input::Drain);
        self.timers.retain(|_, timer| matches!(timer, Timer::Grace(..) | Timer::Retry { .. }));
        self.after(out, out.setup.limits.drain_ms, Timer::DrainEnd);
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining
    }

    /// Whether a process that is going down has nothing left to wait for.
    pub(crate) fn is_drained(&self) -> bool {
        match self.giving_up {
            Some(unanswered) => unanswered == 0,
            None => self.draining && self.is_quiet() && self.running.is_empty(),
        }
    }

    /// What is left ends as it would after a crash, but at once. The process waits for these answers and for nothing
    /// else.
    fn give_up(&mut self) {
        let node = self.node;
        self.giving_up = Some(self.running.len());
        for (key, running) in std::mem::take(&mut self.running) {
            let lose = Event::Lose(Lose { node, fence: running.fence });
            self.send(Request::Apply(key, lose), Waits::Shutdown);
        }
    }

    pub(super) fn given_up(&mut self) {
        self.giving_up = self.giving_up.map(|unanswered| unanswered.saturating_sub(1));
    }
}

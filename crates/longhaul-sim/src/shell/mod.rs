//! The engine's shell, played step by step: the same duties as the async one, in an order that the seed chooses.
//!
//! A [`Process`] is everything that a crash loses: the core, the writer with its working state, the published cache,
//! the watchers, the handlers, the timers, the requests and answers on their way.

mod attempt;
mod boot;
mod deliver;
mod handler;
mod service;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use longhaul_engine::core::{Action, Commit, Core, Input};
use longhaul_store::embedded::{Published, Reader, Request, Response, Writer};
use longhaul_store::{Applied, ClaimNext, Snapshot, StoreError, Watchers};
use longhaul_task::{Event, NodeId, Place, Progress, TaskKey, Timestamp, ToolRef};

pub(crate) use self::boot::Boot;
pub(crate) use self::handler::heard;
use self::handler::{At, Running};
use self::service::{Due, Gone, Queue};
use crate::disk::{Job, Look, SimDisk, SimReader};
use crate::fault::{CrashPoint, Plan};
use crate::ledger::{Ack, Fact};
use crate::outside::Outside;

/// Progress is written at most this often.
const PROGRESS_MS_MIN: u64 = 1_000;

/// Events that few histories meet.
const RARE: [&str; 4] = ["wake", "overdue", "expire", "park"];

/// One process, from its start to its end.
pub(crate) struct Process {
    pub(crate) node: NodeId,
    pub(crate) core: Core,
    pub(crate) published: Arc<Published>,
    pub(crate) watchers: Arc<Watchers>,
    pub(crate) reader: SimReader,
    disk: SimDisk,
    writer: Writer<SimDisk>,
    /// The tools that it serves, by their place in the setup.
    served: Vec<usize>,
    /// Requests on their way to the writer.
    inbox: VecDeque<(Request, Waits)>,
    /// Answers on their way back.
    answers: Vec<(Waits, Result<Response, StoreError>)>,
    running: BTreeMap<TaskKey, Running>,
    /// Attempts that have ended and wait for the answer to that, while their key is another's already.
    replaced: BTreeSet<(TaskKey, u64)>,
    timers: BTreeMap<(u64, u64), Timer>,
    timers_set: u64,
    due: Due,
    queue: Queue,
    gone: Gone,
    unsaved_progress: HashMap<TaskKey, (u32, Arc<Progress>)>,
    progress_saved_at: Timestamp,
    draining: bool,
    /// Tasks that it gives up on its way out and has no answer for yet.
    giving_up: Option<usize>,
}

/// Who waits for an answer of the store, and what for.
#[derive(Debug)]
pub(crate) enum Waits {
    Creation {
        key: TaskKey,
        tool: ToolRef,
        claimed: bool,
        commit: Commit,
    },
    /// A client, who asked when the ledger was that long.
    Client {
        key: TaskKey,
        event: &'static str,
        ack: Ack,
        began: usize,
    },
    /// An attempt that has lost its task.
    Late {
        key: TaskKey,
        fence: u64,
        event: &'static str,
    },
    Claim {
        tool: ToolRef,
        limit: usize,
        commit: Commit,
    },
    /// The end of an attempt, with the wait before it is tried again.
    End {
        key: TaskKey,
        fence: u64,
        event: Event,
        wait_ms: u64,
    },
    /// A branch of an attempt.
    Branch {
        key: TaskKey,
        fence: u64,
        branch: usize,
        does: Does,
    },
    Due {
        due_at: Option<Timestamp>,
    },
    GoneClaim,
    GoneSettle,
    Shutdown,
}

/// What a branch has asked the store for.
#[derive(Debug)]
pub(crate) enum Does {
    Report,
    Ask(Place),
    Step(Place),
    Sleep(Place),
    /// Gives up its memory to sleep, and waits for that.
    Park,
    /// Gives up its memory while all of it waits, and goes on waiting.
    LetGo,
    Release,
    Spawn {
        child: TaskKey,
        tool: ToolRef,
        claimed: bool,
        commit: Commit,
    },
}

#[derive(Debug)]
enum Timer {
    /// A stopped handler's time is up.
    Grace(TaskKey, u64),
    /// The end of an attempt is written again.
    Retry {
        key: TaskKey,
        fence: u64,
        event: Event,
        wait_ms: u64,
    },
    Due,
    Queue,
    QueuePause,
    Gone,
    /// Handlers had their time to end by themselves.
    DrainEnd,
}

impl Process {
    /// The writer carries out the first requests that wait.
    pub(crate) fn write(&mut self, out: &mut Outside) -> Result<bool, CrashPoint> {
        let waiting = self.inbox.len().min(out.setup.batch_max);
        if waiting == 0 {
            return Ok(false);
        }
        // Mostly all that waits, as the writer takes it; less when it was quick.
        let count = if out.chance.below(3) == 0 { 1 + out.chance.below(waiting) } else { waiting };
        let (requests, waits): (Vec<_>, Vec<_>) = self.inbox.drain(..count).unzip();
        let answers = self.batch(out, requests)?;
        self.answers.extend(waits.into_iter().zip(answers));
        Ok(true)
    }

    fn batch(&mut self, out: &mut Outside, requests: Vec<Request>) -> Result<Vec<Answered>, CrashPoint> {
        let now = out.time.wall();
        let events: Vec<_> = requests.iter().filter_map(event_of).collect();
        let rare = events.iter().any(|(_, event)| RARE.contains(event));
        let plan = out.weather.plan(&mut out.chance, rare);
        let job = Job { plan, now, events, look: self.look(out) };
        let progress = self.progress_to_save(now);
        self.disk.expect(job);
        let answers = self.writer.batch(requests, &progress, now);
        let done = self.disk.done();
        let mut committed = Vec::new();
        for fact in done.facts {
            if let Fact::Committed(commit) = &fact {
                committed.extend(commit.written.iter().map(|written| written.event));
            }
            out.note(fact);
        }
        for event in &committed {
            out.coverage.committed(event);
        }
        if !matches!(plan, Plan::Well) && done.crashed.is_none() && answers.iter().all(Result::is_err) {
            out.coverage.also("failed transaction");
        }
        // Everything is durable and shown, and the process dies before it says so.
        let before_answers = done.crashed.is_none() && out.chance.permille(out.weather.crash / 4);
        let crashed = if before_answers { Some(CrashPoint::BeforeAnswers) } else { done.crashed };
        match crashed {
            None => Ok(answers),
            Some(point) => {
                for event in done.lost {
                    out.coverage.crash_before(event);
                }
                for event in committed {
                    out.coverage.crash_after(event);
                }
                Err(point)
            }
        }
    }

    /// Sometimes somebody reads in the middle of a transaction.
    fn look(&self, out: &mut Outside) -> Option<Look> {
        if out.known.is_empty() || !out.chance.permille(150) {
            return None;
        }
        let keys = (0..2).filter_map(|_| out.chance.pick(&out.known).cloned()).collect();
        let at = out.chance.below(12);
        Some(Look { at, keys, published: Arc::clone(&self.published), began: out.ledger.len() })
    }

    fn progress_to_save(&mut self, now: Timestamp) -> HashMap<TaskKey, (u32, Arc<Progress>)> {
        if now.ms_since(self.progress_saved_at) < PROGRESS_MS_MIN {
            return HashMap::new();
        }
        self.progress_saved_at = now;
        std::mem::take(&mut self.unsaved_progress)
    }

    pub(crate) fn send(&mut self, request: Request, waits: Waits) {
        self.inbox.push_back((request, waits));
    }

    /// The store can promise nothing any more; the process has to go.
    pub(crate) fn must_stop(&self) -> bool {
        self.writer.stopped().is_some()
    }

    /// Where a crash at this moment would fall.
    pub(crate) fn crash_point(&self) -> CrashPoint {
        match () {
            () if self.must_stop() => CrashPoint::Untrusted,
            () if self.draining => CrashPoint::InShutdown,
            () if !self.answers.is_empty() => CrashPoint::BetweenAnswers,
            () => CrashPoint::Idle,
        }
    }

    /// The events that are durable and whose askers were not told.
    pub(crate) fn untold(&self) -> Vec<&'static str> {
        self.answers.iter().filter(|(_, answer)| answer.is_ok()).filter_map(|(waits, _)| waits.event()).collect()
    }

    /// A read as clients and services do it: what is published, or else what is on the disk.
    pub(crate) fn read(&self, key: &TaskKey) -> Option<Snapshot> {
        if let Some(snapshot) = self.published.get(key) {
            return Some(snapshot);
        }
        let deletions = self.published.deletions();
        let snapshot = self.reader.read(key).ok().flatten()?;
        self.published.remember(&snapshot, deletions);
        Some(snapshot)
    }

    /// Tells the core what happened and does what it says.
    pub(crate) fn step(&mut self, out: &mut Outside, input: Input) {
        for action in self.core.step(input) {
            self.perform(out, action);
        }
    }

    fn perform(&mut self, out: &mut Outside, action: Action) {
        match action {
            Action::Start { key, fence } => self.start(out, &key, fence),
            Action::Forget { key, fence } => self.forget(&key, fence),
            Action::Claim { tool, limit, commit } => {
                let claim = ClaimNext { node: self.node, wants: vec![(tool.clone(), limit)] };
                self.send(Request::Claim(claim), Waits::Claim { tool, limit, commit });
            }
            Action::LookAtQueue => self.queue.notified = true,
            Action::Write { key, fence, event } => self.write_end(key, fence, event, service::WRITE_RETRY_MS_MIN),
            Action::Resume { key, fence } => {
                let Some(running) = self.running.get_mut(&key).filter(|running| running.fence == fence) else { return };
                for branch in &mut running.branches {
                    if let At::WantsWorker { answer } = &mut branch.at {
                        branch.at = At::Resumed { answer: answer.take() };
                    }
                }
                self.count_workers(out);
            }
            Action::Stop { key, fence, grace_ms } => {
                let Some(running) = self.running.get_mut(&key).filter(|running| running.fence == fence) else { return };
                running.stopped = true;
                self.after(out, grace_ms, Timer::Grace(key, fence));
            }
        }
    }

    fn write_end(&mut self, key: TaskKey, fence: u64, event: Event, wait_ms: u64) {
        let request = Request::Apply(key.clone(), event.clone());
        self.send(request, Waits::End { key, fence, event, wait_ms });
    }

    /// Something was committed that did not come from the end of an attempt.
    fn applied(&mut self, out: &mut Outside, applied: &Applied) {
        self.due.at_latest(applied.task.due_at());
        if !applied.effects.is_empty() {
            self.step(out, Input::Applied { effects: applied.effects.clone() });
        }
    }

    fn after(&mut self, out: &Outside, ms: u64, timer: Timer) {
        self.timers_set += 1;
        self.timers.insert((out.time.steady() + ms, self.timers_set), timer);
    }

    /// Whether nothing but time can make it do anything.
    pub(crate) fn is_quiet(&self) -> bool {
        self.inbox.is_empty() && self.answers.is_empty()
    }

    /// What becomes of its attempts when it dies.
    pub(crate) fn void(&self) -> impl Iterator<Item = (TaskKey, u64)> {
        self.running.iter().map(|(key, running)| (key.clone(), running.fence))
    }

    /// The attempts that it holds.
    pub(crate) fn held(&self) -> usize {
        self.running.len()
    }
}

type Answered = Result<Response, StoreError>;

fn event_of(request: &Request) -> Option<(TaskKey, &'static str)> {
    match request {
        Request::Apply(key, event) => Some((key.clone(), event.name())),
        Request::Create(_) | Request::Claim(_) | Request::Record(..) | Request::Secret(..) | Request::Check => None,
    }
}

impl Waits {
    /// The transition that it waits for.
    fn event(&self) -> Option<&'static str> {
        Some(match self {
            Self::Creation { .. } => "create",
            Self::Client { event, .. } | Self::Late { event, .. } => event,
            Self::Claim { .. } => "claim",
            Self::End { event, .. } => event.name(),
            Self::GoneSettle => "settle",
            Self::Shutdown => "lose",
            Self::Branch { does, .. } => match does {
                Does::Report => "report",
                Does::Ask(_) => "ask",
                Does::Park | Does::LetGo => "park",
                Does::Release => "release",
                Does::Spawn { .. } => "spawn",
                Does::Step(_) | Does::Sleep(_) => return None,
            },
            Self::Due { .. } | Self::GoneClaim => return None,
        })
    }
}

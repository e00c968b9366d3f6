//! One history, from its seed to its end.

use longhaul_task::TaskKey;

use crate::check::{Broken, check};
use crate::client::{self, Clients};
use crate::coverage::Coverage;
use crate::disk::SimDisk;
use crate::fault::{CrashPoint, Weather};
use crate::ledger::{Entry, Fact, Quiet, Stage};
use crate::outside::Outside;
use crate::setup::{LIFE_MS_MAX, RUNNING_MS_MAX};
use crate::shell::{Boot, Process};

/// Steps that may follow each other without time passing before that is a fault of its own.
const BUSY_STEPS_MAX: usize = 3_000;

/// Timers that may ring while everything is left alone.
const RINGS_MAX: usize = 2_000;

/// How long everything is left alone: past every backoff, grace and pause, and well before anything is overdue.
const ALONE_MS: u64 = 30_000;

/// How often questions are answered at the end before what still asks is called off.
const ROUNDS: usize = 4;

/// How a history went.
#[derive(Debug)]
pub struct Played {
    /// Its seed.
    pub seed: u64,
    /// What it met.
    pub coverage: Coverage,
    /// Everything that happened.
    pub ledger: Vec<Entry>,
    /// The law that it broke, if it did.
    pub broken: Option<Broken>,
}

/// Plays one history and holds it against the laws.
pub fn play(seed: u64) -> Played {
    let mut world = World { out: Outside::new(seed), disk: SimDisk::default(), up: None, clients: Clients::default() };
    let busy = world.play().err();
    let Outside { coverage, ledger, .. } = world.out;
    let broken = check(&ledger).err().or_else(|| {
        let what = busy?;
        Some(Broken { law: "nothing is stuck and nothing leaks", what, line: ledger.len() })
    });
    Played { seed, coverage, ledger, broken }
}

struct World {
    out: Outside,
    disk: SimDisk,
    up: Option<Box<Process>>,
    clients: Clients,
}

#[derive(Clone, Copy)]
enum Step {
    Client,
    Write,
    Deliver,
    Handle,
    Serve,
    Time,
}

const STEPS: [(u32, Step); 6] =
    [(14, Step::Client), (24, Step::Write), (26, Step::Deliver), (26, Step::Handle), (8, Step::Serve), (6, Step::Time)];

impl World {
    /// Chance first, then calm. An error says what went on without end.
    fn play(&mut self) -> Result<(), String> {
        for _ in 0..self.out.chance.between(30, 500) {
            self.step();
        }
        self.out.weather = Weather::CALM;
        self.out.calm = true;
        self.settle_down(ALONE_MS)?;
        self.quiet(Stage::LeftAlone);
        self.finish()?;
        self.quiet(Stage::Settled);
        // One leap instead of an hour of looking at nothing.
        self.out.time.pass(2 * LIFE_MS_MAX);
        self.settle_down(1_000)?;
        self.quiet(Stage::Expired);
        Ok(())
    }

    fn step(&mut self) {
        let Some(process) = &mut self.up else { return self.boot() };
        let out = &mut self.out;
        if process.is_drained() {
            return self.ended();
        }
        // A process that can promise nothing does not live long.
        let doomed = process.must_stop() && out.chance.below(4) == 0;
        if doomed || out.chance.permille(out.weather.idle_crash) {
            let point = process.crash_point();
            process.untold().into_iter().for_each(|event| out.coverage.crash_after(event));
            return self.crashed(point);
        }
        if !process.is_draining() && out.chance.permille(out.weather.shutdown) {
            return process.shut_down(out);
        }
        let crashed = match out.chance.weighted(&STEPS).unwrap_or(Step::Time) {
            Step::Client => {
                self.clients.act(process, out);
                None
            }
            Step::Write => process.write(out).err(),
            Step::Deliver => {
                process.deliver(out);
                None
            }
            Step::Handle => {
                process.handle(out);
                None
            }
            Step::Serve => {
                process.serve(out);
                None
            }
            Step::Time => {
                pass(process, out);
                None
            }
        };
        if let Some(point) = crashed {
            self.crashed(point);
        }
    }

    fn boot(&mut self) {
        match Process::boot(&self.disk, &mut self.out) {
            Boot::Up(process) => self.up = Some(process),
            Boot::Failed => self.out.coverage.also("start failed"),
            Boot::Crashed(point) => self.crashed(point),
        }
    }

    fn crashed(&mut self, point: CrashPoint) {
        let point =
            if self.up.as_ref().is_some_and(|process| process.is_draining()) { CrashPoint::InShutdown } else { point };
        *self.out.coverage.crashes.entry(point).or_default() += 1;
        self.out.note(Fact::Crashed(point));
        self.gone();
    }

    fn ended(&mut self) {
        self.out.note(Fact::ShutDown);
        self.out.coverage.also("graceful shutdown");
        self.gone();
    }

    fn gone(&mut self) {
        self.clients.disconnected();
        self.out.void.extend(self.up.iter().flat_map(|process| process.void()));
        self.up = None;
    }

    /// Lets everything go on by itself, for that long.
    fn settle_down(&mut self, ms: u64) -> Result<(), String> {
        let mut until = self.out.time.steady() + ms;
        let (mut busy, mut rung) = (0, 0);
        loop {
            let Some(process) = &mut self.up else {
                self.boot();
                continue;
            };
            if process.is_drained() || process.must_stop() {
                self.ended();
                continue;
            }
            let out = &mut self.out;
            let wrote = process.write(out).unwrap_or(false);
            if process.deliver(out) || process.handle(out) || process.serve(out) || wrote {
                busy += 1;
                if busy > BUSY_STEPS_MAX {
                    return Err("it is busy without end".into());
                }
                continue;
            }
            busy = 0;
            match process.next_timer() {
                Some(at) if at <= until => {
                    out.time.pass(at.saturating_sub(out.time.steady()));
                    process.ring(out);
                    // Rings that lead to nothing but the next one are work without end, too.
                    rung += 1;
                    if rung > RINGS_MAX {
                        return Err("its timers ring without end".into());
                    }
                }
                // Something ended just now, and has its grace period.
                Some(at) if process.winds_up() => until = at,
                _ => {
                    out.time.pass(until - out.time.steady());
                    return Ok(());
                }
            }
        }
    }

    /// Answers what is asked, and calls off what goes on asking.
    fn finish(&mut self) -> Result<(), String> {
        for round in 0..=ROUNDS {
            let Some(process) = &mut self.up else { return Ok(()) };
            let waiting: Vec<TaskKey> = process.reader.all_open();
            if waiting.is_empty() {
                break;
            }
            for key in waiting {
                let questions = process.questions(&key);
                if round == ROUNDS || questions.is_empty() {
                    client::cancel(process, &self.out, key);
                } else if self.out.chance.below(4) > 0 {
                    for question in questions {
                        client::answer(process, &self.out, key.clone(), question);
                    }
                }
            }
            self.settle_down(ALONE_MS)?;
        }
        Ok(())
    }

    fn quiet(&mut self, stage: Stage) {
        let Some(process) = &self.up else { return };
        self.clients.hear_all(process, &mut self.out);
        let mut load: Vec<_> = process.core.load().map(|(tool, busy, queued)| (tool.clone(), busy, queued)).collect();
        load.sort();
        let open = self.out.setup.owners.iter().map(|owner| (owner.clone(), process.core.open(owner))).collect();
        let quiet = Quiet { stage, load, open, attempts: process.core.attempts(), running: process.held() };
        self.out.note(Fact::Quiet(quiet));
    }
}

/// Time passes: a moment, up to the next timer, or so much that something is overdue.
fn pass(process: &mut Process, out: &mut Outside) {
    match out.chance.below(20) {
        0..=9 => {
            let ms = out.chance.between(0, 300);
            out.time.pass(ms);
        }
        10..=14 => {
            let next = process.next_timer().unwrap_or(0).saturating_sub(out.time.steady());
            out.time.pass(next);
        }
        15 => {
            let ms = out.chance.between(0, 2_000);
            out.time.pass_unseen(ms);
        }
        16 | 17 => {
            let ms = out.chance.between(1, 500);
            out.time.set_back(ms);
        }
        18 => {
            let ms = out.chance.between(0, 100_000);
            out.time.pass(ms);
        }
        _ => {
            let ms = out.chance.between(0, 2 * RUNNING_MS_MAX);
            out.time.pass(ms);
        }
    }
    process.ring(out);
}

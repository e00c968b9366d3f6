//! Handlers do one thing after the other.

use std::sync::Arc;

use longhaul_engine::core::{Action, Input};
use longhaul_store::embedded::{Reader, Request};
use longhaul_task::transition::{Ask, Create, Park, Release, Report, Spawn};
use longhaul_task::{
    Event, Fault, Json, Outcome, Phase, Place, Progress, QuestionKey, QuestionKind, Record, TaskId, TaskKey, Timestamp,
};

use super::deliver::Stop;
use super::handler::{At, heard};
use super::{Does, Process, Waits, service};
use crate::ledger::Fact;
use crate::outside::Outside;
use crate::setup::{End, Op};

impl Process {
    pub(super) fn start(&mut self, out: &mut Outside, key: &TaskKey, fence: u64) {
        let Some(running) = self.running.get_mut(key).filter(|running| running.fence == fence) else { return };
        if !running.started {
            running.start();
            out.note(Fact::Started { key: key.clone(), fence });
            self.count_workers(out);
        }
    }

    /// Lets one branch of one handler do something; says whether any could.
    pub(crate) fn handle(&mut self, out: &mut Outside) -> bool {
        if self.end_after_children() {
            return true;
        }
        let branches: Vec<(TaskKey, u64, usize)> = self
            .running
            .iter()
            .filter(|(_, running)| !running.ended)
            .flat_map(|(key, running)| (0..running.branches.len()).map(|branch| (key.clone(), running.fence, branch)))
            .collect();
        let first = out.chance.below(branches.len());
        let (late, early) = branches.split_at(first.min(branches.len()));
        early.iter().chain(late).any(|(key, fence, branch)| self.branch(out, key, *fence, *branch))
    }

    fn at(&mut self, key: &TaskKey, fence: u64, branch: usize) -> Option<&mut At> {
        let running = self.running.get_mut(key).filter(|running| running.fence == fence && !running.ended)?;
        running.branches.get_mut(branch).map(|branch| &mut branch.at)
    }

    fn put(&mut self, key: &TaskKey, fence: u64, branch: usize, at: At) {
        if let Some(place) = self.at(key, fence, branch) {
            *place = at;
        }
    }

    /// One step of one branch; `false` when it can only wait.
    fn branch(&mut self, out: &mut Outside, key: &TaskKey, fence: u64, branch: usize) -> bool {
        let Some(running) = self.running.get(key) else { return false };
        let stopped = running.stopped;
        let stubborn = running.script.stubborn;
        // One that runs until it is cancelled ends in the calm, unless its task is not its own any more: then it waits
        // to be told.
        let returns = out.calm && self.read(key).is_some_and(|snapshot| snapshot.task.fence == fence);
        let Some(at) = self.at(key, fence, branch) else { return false };
        match at {
            At::Ready => {
                self.next(out, key, fence, branch);
                return true;
            }
            At::Working(0) => *at = At::Ready,
            At::Working(steps) => *steps -= 1,
            At::Hanging if returns => *at = At::Ready,
            At::Hanging if stopped && !stubborn => {
                self.fail(out, key, fence, branch, Stop::Cancelled);
                return true;
            }
            // Its context tells it, in the middle of waiting.
            At::Asking { .. } | At::Joining { .. } | At::WantsWorker { .. } if stopped => {
                self.fail(out, key, fence, branch, Stop::Cancelled);
                return true;
            }
            At::Asking { question, watch, looked, .. } => {
                if *looked && !heard(watch) {
                    return false;
                }
                *looked = true;
                let question = question.clone();
                self.look_for_answer(out, key, fence, branch, &question);
                return true;
            }
            At::Joining { watch, .. } => {
                if watch.as_mut().is_some_and(|watch| !heard(watch)) {
                    return false;
                }
                self.join(out, key, fence, branch);
                return true;
            }
            At::Resumed { answer } => {
                let answer = answer.take();
                let got = answer.is_none_or(|place| self.got(out, key, fence, &place));
                self.go_on(out, key, fence, branch, (!got).then_some(Stop::Cancelled));
                return true;
            }
            At::Hanging | At::Sent(_) | At::WantsWorker { .. } | At::Forked(_) | At::Over => return false,
        }
        true
    }

    /// The next operation of a branch.
    fn next(&mut self, out: &mut Outside, key: &TaskKey, fence: u64, index: usize) {
        let Some(running) = self.running.get_mut(key) else { return };
        let (stopped, attempt, epoch) = (running.stopped, running.attempt, running.epoch);
        let branch = &mut running.branches[index];
        let Some(op) = branch.ops.get(branch.next).cloned() else { return self.done(out, key, fence, index) };
        branch.next += 1;
        let number = branch.next;
        if stopped && !matches!(op, Op::Work(_) | Op::Hang) {
            return self.fail(out, key, fence, index, Stop::Cancelled);
        }
        match op {
            Op::Work(steps) => branch.at = At::Working(steps),
            Op::Hang => branch.at = At::Hanging,
            Op::Report => {
                let event = Event::Report(Report { fence, message: format!("at {number}").into() });
                self.ask_store(key, fence, index, event, Does::Report, None);
            }
            Op::Progress => self.progress(out, key, fence, attempt, number),
            Op::Step => {
                let place = branch.place();
                self.record(out, key, fence, index, epoch, &place, Does::Step, || format!("\"did {place:?}\""));
            }
            Op::Sleep(ms) => {
                let place = branch.place();
                let wake_at = out.time.wall().plus_ms(ms).as_ms();
                self.record(out, key, fence, index, epoch, &place, Does::Sleep, || wake_at.to_string());
            }
            Op::Ask => self.ask(key, fence, index),
            Op::Fork(left, right) => {
                branch.at = At::Forked(2);
                running.fork(index, &format!("{number}l"), &left);
                running.fork(index, &format!("{number}r"), &right);
            }
            Op::Spawn(tool) => self.spawn(out, key, fence, index, tool),
            Op::Join => {
                branch.at = At::Joining { watch: None, open: 0 };
                self.gate(out, key, fence);
            }
            Op::Release(wait_ms) => {
                if attempt == 1 {
                    let event = Event::Release(Release { fence, wait_ms });
                    self.ask_store(key, fence, index, event, Does::Release, None);
                }
            }
        }
    }

    fn ask_store(
        &mut self,
        key: &TaskKey,
        fence: u64,
        branch: usize,
        event: Event,
        does: Does,
        watch: Option<longhaul_store::Watch>,
    ) {
        self.put(key, fence, branch, At::Sent(watch));
        let waits = Waits::Branch { key: key.clone(), fence, branch, does };
        self.send(Request::Apply(key.clone(), event), waits);
    }

    fn progress(&mut self, out: &Outside, key: &TaskKey, fence: u64, attempt: u32, number: usize) {
        #[expect(clippy::cast_precision_loss, reason = "a handful of operations")]
        let done = number as f64;
        let message = Some(format!("attempt {attempt}").into());
        let progress = Arc::new(Progress { done, total: None, message, at: out.time.wall() });
        if let Some(attempt) = self.published.show_progress(key, fence, Arc::clone(&progress)) {
            self.unsaved_progress.insert(key.clone(), (attempt, progress));
            self.watchers.changed(key);
        }
    }

    /// Does something once: from the record if it is there, and onto it if not.
    #[expect(clippy::too_many_arguments, reason = "the place of a branch takes four")]
    fn record(
        &mut self,
        out: &mut Outside,
        key: &TaskKey,
        fence: u64,
        branch: usize,
        epoch: u32,
        place: &Place,
        does: fn(Place) -> Does,
        output: impl FnOnce() -> String,
    ) {
        if self.on_record(key, epoch, place).is_some() {
            self.got(out, key, fence, place);
            if matches!(does(place.clone()), Does::Sleep(_)) {
                self.sleep(out, key, fence, branch, place);
            }
            return;
        }
        let output = Some(Json::from_text(output()));
        let record = Record { place: place.clone(), key: "step".into(), digest: 0, output };
        self.put(key, fence, branch, At::Sent(None));
        let waits = Waits::Branch { key: key.clone(), fence, branch, does: does(place.clone()) };
        self.send(Request::Record(key.clone(), fence, record), waits);
    }

    fn on_record(&self, key: &TaskKey, epoch: u32, place: &Place) -> Option<Json> {
        let records = self.reader.records(key, epoch).unwrap_or_default();
        records.into_iter().find(|record| record.place == *place)?.output
    }

    /// Sleeps until the recorded moment, in nobody's memory.
    pub(super) fn sleep(&mut self, out: &mut Outside, key: &TaskKey, fence: u64, branch: usize, place: &Place) {
        let Some(running) = self.running.get(key).filter(|running| running.fence == fence) else { return };
        let on_record = self.on_record(key, running.epoch, place);
        let wake_at = on_record.and_then(|text| text.as_str().parse().ok()).map(Timestamp::from_ms);
        match wake_at {
            Some(wake_at) if out.time.wall() < wake_at => {
                let event = Event::Park(Park { fence, wake_at: Some(wake_at), open_children: 0, open_questions: 0 });
                self.ask_store(key, fence, branch, event, Does::Park, None);
            }
            _ => self.go_on(out, key, fence, branch, None),
        }
    }

    fn ask(&mut self, key: &TaskKey, fence: u64, index: usize) {
        let Some(running) = self.running.get_mut(key) else { return };
        let place = running.branches[index].place();
        // Subscribe before asking: an answer that comes at once is not missed.
        let watch = self.watchers.follow(key);
        let event = Event::Ask(Ask {
            fence,
            label: "q".into(),
            kind: QuestionKind::Elicitation,
            params: Json::from_text("{}"),
            place: place.clone(),
            digest: 0,
        });
        self.ask_store(key, fence, index, event, Does::Ask(place), Some(watch));
    }

    fn look_for_answer(&mut self, out: &mut Outside, key: &TaskKey, fence: u64, branch: usize, question: &QuestionKey) {
        let task = self.read(key).map(|snapshot| snapshot.task);
        let Some(task) = task.filter(|task| task.fence == fence && !task.is_settled()) else {
            return self.fail(out, key, fence, branch, Stop::Cancelled);
        };
        let open = task.phase.questions().is_some_and(|open| open.find(question).is_some());
        if open {
            return;
        }
        if let Some(at) = self.at(key, fence, branch)
            && let At::Asking { place, .. } = std::mem::replace(at, At::Over)
        {
            *at = At::WantsWorker { answer: Some(place) };
            self.step(out, Input::Busy { key: key.clone(), fence });
        }
    }

    fn spawn(&mut self, out: &mut Outside, key: &TaskKey, fence: u64, branch: usize, tool: usize) {
        // One that resumes finds the children that it has made. It makes them in order, so counting them is enough.
        let Some(running) = self.running.get(key) else { return };
        let made = self.reader.children(key).unwrap_or_default().len();
        let spawns = |op: &&Op| matches!(op, Op::Spawn(_));
        let this = running.branches[branch].ops[..running.branches[branch].next].iter().filter(spawns).count();
        if running.resumes && made >= this {
            return;
        }
        let setup = &out.setup.tools[tool];
        let Ok(admission) = self.core.admit(&key.owner, &setup.tool.name, 2) else {
            out.coverage.also("child not admitted");
            return;
        };
        let child = TaskKey { owner: key.owner.clone(), id: TaskId::mint(out.time.wall(), out.chance.bits()) };
        out.chosen.insert(child.clone());
        let setup = &out.setup.tools[tool];
        let create = Create {
            key: child.clone(),
            tool: setup.tool.clone(),
            origin: "sim".into(),
            policy: setup.policy.clone(),
            retention: setup.retention,
            claimed_by: admission.claimed.then_some(self.node),
            fences_from: 0,
        };
        let event = Event::Spawn(Box::new(Spawn { fence, child: create, input: Json::from_text("{}") }));
        let (claimed, commit) = (admission.claimed, admission.commit);
        let does = Does::Spawn { child, tool: admission.tool, claimed, commit };
        self.ask_store(key, fence, branch, event, does, None);
    }

    /// Waits for the first child that has not ended; goes on when there is none.
    fn join(&mut self, out: &mut Outside, key: &TaskKey, fence: u64, branch: usize) {
        if let (Some(watch), open) = self.open_children(key) {
            self.put(key, fence, branch, At::Joining { watch: Some(watch), open });
            self.gate(out, key, fence);
            return;
        }
        self.put(key, fence, branch, At::WantsWorker { answer: None });
        self.step(out, Input::Busy { key: key.clone(), fence });
    }

    /// A watch of the first child that has not ended, and how many have not.
    fn open_children(&self, key: &TaskKey) -> (Option<longhaul_store::Watch>, u32) {
        let (mut first, mut open) = (None, 0);
        for id in self.reader.children(key).unwrap_or_default() {
            let child = TaskKey { owner: key.owner.clone(), id };
            // Subscribe, then read.
            let watch = self.watchers.follow(&child);
            if self.read(&child).is_some_and(|snapshot| !snapshot.task.is_settled()) {
                open += 1;
                first.get_or_insert(watch);
            }
        }
        (first, open)
    }

    /// Writes the end of an attempt that had returned before its children, once they have ended.
    fn end_after_children(&mut self) -> bool {
        let waits = |running: &mut super::handler::Running| match &mut running.held_back {
            Some((_, Some(watch))) => heard(watch),
            Some((_, None)) => true,
            None => false,
        };
        let found = self.running.iter_mut().find_map(|(key, running)| waits(running).then(|| key.clone()));
        let Some(key) = found else { return false };
        let (watch, _) = self.open_children(&key);
        let Some(running) = self.running.get_mut(&key) else { return false };
        let fence = running.fence;
        match (watch, running.held_back.take()) {
            (Some(watch), Some((event, _))) => running.held_back = Some((event, Some(watch))),
            (None, Some((event, _))) => self.write_end(key, fence, event, service::WRITE_RETRY_MS_MIN),
            (_, None) => {}
        }
        true
    }

    /// A branch has what it waited for, or cannot have it.
    pub(super) fn go_on(&mut self, out: &mut Outside, key: &TaskKey, fence: u64, branch: usize, stop: Option<Stop>) {
        match stop {
            Some(stop) => self.fail(out, key, fence, branch, stop),
            None => self.put(key, fence, branch, At::Ready),
        }
        self.gate(out, key, fence);
        self.count_workers(out);
    }

    /// A context operation failed: the handler passes it up, or pays no heed.
    fn fail(&mut self, out: &mut Outside, key: &TaskKey, fence: u64, branch: usize, stop: Stop) {
        let Some(running) = self.running.get(key).filter(|running| running.fence == fence && !running.ended) else {
            return;
        };
        // A branch that was dropped with another's failure hears nothing any more.
        if branch >= running.branches.len() {
            return;
        }
        match stop {
            Stop::Cancelled if running.stopped && running.script.stubborn => {
                self.put(key, fence, branch, At::Hanging);
            }
            Stop::Cancelled => {
                let fault = Fault { code: Some(-32603), message: "it was stopped".into(), data: None };
                self.end(out, key, fence, Outcome::Refusal(fault));
            }
            // It has nothing left to do but to wait for its children: a parent ends after them.
            Stop::Failed => {
                if let Some(running) = self.running.get_mut(key) {
                    running.failed = true;
                    running.branches.truncate(1);
                    running.branches[0].next = usize::MAX;
                    running.branches[0].at = At::Ready;
                }
            }
        }
    }

    /// A branch came to the end of its script.
    fn done(&mut self, out: &mut Outside, key: &TaskKey, fence: u64, index: usize) {
        let Some(running) = self.running.get_mut(key) else { return };
        let branch = &mut running.branches[index];
        if let Some(parent) = branch.parent {
            branch.at = At::Over;
            if let At::Forked(left) = &mut running.branches[parent].at {
                *left -= 1;
                if *left == 0 {
                    running.branches[parent].at = At::Ready;
                }
            }
            self.gate(out, key, fence);
            return;
        }
        // A parent ends after its children: some wait for them, for the others the shell does.
        let waits = running.script.waits && !running.stopped;
        if waits && self.open_children(key).1 > 0 {
            self.put(key, fence, index, At::Joining { watch: None, open: 0 });
            self.gate(out, key, fence);
            return;
        }
        let Some(running) = self.running.get(key) else { return };
        let outcome = match running.script.end {
            _ if running.failed => {
                Outcome::Refusal(Fault { code: Some(-32000), message: "it failed".into(), data: None })
            }
            End::Answer => Outcome::Answer { body: Json::from_text(format!("\"{fence}\"")), is_error: false },
            End::ToolError => Outcome::Answer { body: Json::from_text("\"no\""), is_error: true },
            End::TooLarge => Outcome::Answer { body: Json::from_text("9".repeat(100)), is_error: false },
            End::Error => Outcome::Refusal(Fault { code: Some(-32000), message: "not today".into(), data: None }),
            End::Panic => Outcome::Refusal(Fault::panic("simulated")),
        };
        self.end(out, key, fence, outcome);
    }

    /// The handler returned.
    fn end(&mut self, out: &mut Outside, key: &TaskKey, fence: u64, outcome: Outcome) {
        if let Some(running) = self.running.get_mut(key) {
            running.ended = true;
            running.branches.clear();
        }
        let mut writes = false;
        for action in self.core.step(Input::Ended { key: key.clone(), fence, outcome }) {
            match action {
                Action::Write { key, fence, event } => {
                    writes = true;
                    self.write_end(key, fence, event, service::WRITE_RETRY_MS_MIN);
                }
                other => self.perform(out, other),
            }
        }
        if !writes {
            self.forget(key, fence);
        }
    }

    /// Gives the worker back when all of the handler has begun to wait, and its memory when it can.
    pub(super) fn gate(&mut self, out: &mut Outside, key: &TaskKey, fence: u64) {
        let Some(running) = self.running.get_mut(key).filter(|running| running.fence == fence && !running.ended) else {
            return;
        };
        let waits = running.all_wait();
        let began = waits && !running.waited;
        running.waited = waits;
        if !waits {
            return;
        }
        let open_questions = running.branches.iter().filter(|branch| matches!(branch.at, At::Asking { .. })).count();
        let joins = |branch: &super::handler::Branch| match branch.at {
            At::Joining { open, .. } => open,
            _ => 0,
        };
        let open_children = running.branches.iter().map(joins).max().unwrap_or(0);
        let looked = running.branches.iter().all(|branch| !matches!(branch.at, At::Joining { watch: None, .. }));
        let waits_for_others = running.all_wait_for_others() && looked;
        let parks = running.script.drops && waits_for_others && !running.parking && !running.stopped;
        let parks = parks && (began || open_children > 0);
        running.parking |= parks;
        self.step(out, Input::Idle { key: key.clone(), fence });
        if parks {
            // If what it waits for was quicker, it is refused, and goes on.
            let event = Event::Park(Park { fence, wake_at: None, open_children, open_questions });
            let waits = Waits::Branch { key: key.clone(), fence, branch: 0, does: Does::LetGo };
            self.send(Request::Apply(key.clone(), event), waits);
        }
    }

    /// Writes down how many handlers of each tool are at work.
    pub(super) fn count_workers(&self, out: &mut Outside) {
        for place in &self.served {
            let handlers = self.running.values().filter(|running| running.tool == *place && running.works()).count();
            if handlers > 1 {
                let tool = out.setup.tools[*place].tool.clone();
                out.note(Fact::Working { tool, handlers });
            }
        }
    }

    /// Open questions of a task, as a client would find them.
    pub(crate) fn questions(&self, key: &TaskKey) -> Vec<QuestionKey> {
        match self.read(key).map(|snapshot| snapshot.task.phase.clone()) {
            Some(Phase::Waiting { questions, .. }) => questions.iter().map(|question| question.key.clone()).collect(),
            _ => Vec::new(),
        }
    }
}

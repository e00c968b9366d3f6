//! Answers of the store come back to whoever waits for them.

use std::sync::Arc;

use longhaul_engine::core::{Commit, Input};
use longhaul_store::embedded::{Reader, Response};
use longhaul_store::{Applied, Claimed, StoreError};
use longhaul_task::{Effect, Json, OnCrash, Refused, Task, TaskKey, ToolRef};

use super::handler::{At, Running};
use super::{Answered, Does, Process, Timer, Waits, service};
use crate::ledger::{Ack, Fact};
use crate::outside::Outside;

/// Why a branch cannot go on.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stop {
    Cancelled,
    Failed,
}

impl Process {
    /// Hands over one of the answers that are on their way.
    pub(crate) fn deliver(&mut self, out: &mut Outside) -> bool {
        if self.answers.is_empty() {
            return false;
        }
        let (waits, answer) = self.answers.remove(out.chance.below(self.answers.len()));
        match waits {
            Waits::Creation { key, tool, claimed, commit } => self.created(out, key, tool, claimed, commit, answer),
            Waits::Client { key, event, ack, began } => match answer {
                Ok(Response::Applied(applied)) => {
                    self.applied(out, &applied);
                    out.note(Fact::Acknowledged { what: ack, key, revision: applied.task.revision });
                }
                other => out.note(Fact::Denied { began, key, what: event, error: error(other) }),
            },
            Waits::Late { key, fence, event } => {
                if let Ok(Response::Applied(_)) = answer {
                    out.note(Fact::WroteLate { key, fence, event });
                }
            }
            Waits::Claim { tool, limit, commit } => self.claimed(out, tool, limit, commit, answer),
            Waits::End { key, fence, event, wait_ms } => {
                // A handler that was dropped waits for nothing any more.
                if self.waits_for_end(&key, fence) {
                    self.end_written(out, key, fence, event, wait_ms, answer);
                }
            }
            Waits::Branch { key, fence, branch, does } => self.branch_answered(out, &key, fence, branch, does, answer),
            Waits::Due { due_at } => self.due_answered(out, due_at, answer),
            Waits::GoneClaim => self.gone_claimed(answer),
            Waits::GoneSettle => self.gone_settled(out, answer),
            Waits::Shutdown => self.given_up(),
        }
        true
    }

    fn created(
        &mut self,
        out: &mut Outside,
        key: TaskKey,
        tool: ToolRef,
        claimed: bool,
        commit: Commit,
        answer: Answered,
    ) {
        match answer {
            Ok(Response::Applied(Applied { task, .. })) => {
                self.due.at_latest(task.due_at());
                if claimed {
                    self.expect(out, &task);
                }
                out.known.push(key.clone());
                let fact = Fact::Acknowledged { what: Ack::Created, key: key.clone(), revision: task.revision };
                self.step(out, Input::Created { key, tool, claimed: claimed.then_some(task.fence), commit });
                out.note(fact);
            }
            other => {
                self.step(out, Input::NotCreated { owner: key.owner.clone(), tool, claimed, commit });
                let began = out.ledger.len();
                out.note(Fact::Denied { began, key, what: "create", error: error(other) });
            }
        }
    }

    fn claimed(&mut self, out: &mut Outside, tool: ToolRef, asked: usize, commit: Commit, answer: Answered) {
        let claimed = match answer {
            Ok(Response::Claimed(claimed)) => claimed,
            _ => Vec::new(),
        };
        let mut tasks = Vec::with_capacity(claimed.len());
        for Claimed { task, .. } in claimed {
            self.due.at_latest(task.due_at());
            tasks.push((task.key.clone(), task.fence));
            self.expect(out, &task);
        }
        self.step(out, Input::Claimed { tool, asked, tasks, commit });
    }

    /// Makes an attempt known before the core is told, so that a stop cannot miss it.
    fn expect(&mut self, out: &mut Outside, task: &Arc<Task>) {
        let Some((tool, _)) = out.setup.tool(&task.tool.name) else { return };
        let script = out.script(&task.key, tool);
        let before = self.running.insert(task.key.clone(), Running::new(tool, script, task));
        if let Some(before) = before.filter(|before| !before.stopped) {
            self.replaced.insert((task.key.clone(), before.fence));
        }
    }

    /// Whether somebody still waits for the answer to the end of that attempt.
    pub(super) fn waits_for_end(&self, key: &TaskKey, fence: u64) -> bool {
        let runs = self.running.get(key).is_some_and(|running| running.fence == fence);
        runs || self.replaced.contains(&(key.clone(), fence))
    }

    fn end_written(
        &mut self,
        out: &mut Outside,
        key: TaskKey,
        fence: u64,
        event: longhaul_task::Event,
        wait_ms: u64,
        answer: Answered,
    ) {
        let won = match answer {
            Ok(Response::Applied(applied)) => {
                self.due.at_latest(applied.task.due_at());
                let revision = applied.task.revision;
                out.note(Fact::Wrote { key: key.clone(), fence, event: event.name(), revision });
                // Its end may have woken its parent.
                let mut effects = applied.effects;
                effects.retain(|effect| matches!(effect, Effect::Queued { .. }));
                if !effects.is_empty() {
                    out.coverage.also("parent woken");
                    self.step(out, Input::Applied { effects });
                }
                true
            }
            // It returned before its children: its worker can serve them meanwhile.
            Err(StoreError::Refused(Refused::ChildrenOpen(_))) => {
                out.coverage.also("end held back for children");
                if let Some(running) = self.running.get_mut(&key).filter(|running| running.fence == fence) {
                    running.held_back = Some((event, None));
                }
                self.step(out, Input::Idle { key, fence });
                return;
            }
            Err(StoreError::Full(_) | StoreError::Unavailable(_)) => {
                let next_ms = (wait_ms * 2).min(service::WRITE_RETRY_MS_MAX);
                self.after(out, wait_ms, Timer::Retry { key, fence, event, wait_ms: next_ms });
                return;
            }
            _ => false,
        };
        self.step(out, Input::Written { key: key.clone(), fence, won });
        self.replaced.remove(&(key.clone(), fence));
        self.forget(&key, fence);
    }

    fn branch_answered(
        &mut self,
        out: &mut Outside,
        key: &TaskKey,
        fence: u64,
        branch: usize,
        does: Does,
        answer: Answered,
    ) {
        if let Ok(Response::Applied(applied)) = &answer {
            let event = match does {
                Does::Report => "report",
                Does::Ask(_) => "ask",
                Does::Park | Does::LetGo => "park",
                Does::Release => "release",
                Does::Spawn { .. } => "spawn",
                Does::Step(_) | Does::Sleep(_) => "record",
            };
            out.note(Fact::Wrote { key: key.clone(), fence, event, revision: applied.task.revision });
        }
        match does {
            // These move counts, so they are carried to their end whatever became of the handler.
            Does::Spawn { child, tool, claimed, commit } => {
                self.spawned(out, child, tool, claimed, commit, &answer);
                let stop = answer.err().as_ref().map(stop).filter(|stop| matches!(stop, Stop::Cancelled));
                self.go_on(out, key, fence, branch, stop);
            }
            Does::Park | Does::LetGo | Does::Release => self.handed_back(out, key, fence, branch, &does, answer),
            Does::Report => self.go_on(out, key, fence, branch, answer.err().as_ref().map(stop)),
            Does::Step(place) => {
                let stopped = answer.err().as_ref().map(stop);
                if stopped.is_none() {
                    self.got(out, key, fence, &place);
                }
                self.go_on(out, key, fence, branch, stopped);
            }
            Does::Sleep(place) => match answer {
                Ok(_) => self.sleep(out, key, fence, branch, &place),
                Err(error) => self.go_on(out, key, fence, branch, Some(stop(&error))),
            },
            Does::Ask(place) => self.asked(out, key, fence, branch, place, answer),
        }
    }

    fn asked(
        &mut self,
        out: &mut Outside,
        key: &TaskKey,
        fence: u64,
        branch: usize,
        place: longhaul_task::Place,
        answer: Answered,
    ) {
        let question = match answer {
            Ok(Response::Applied(applied)) => {
                self.applied(out, &applied);
                applied.task.phase.questions().and_then(|open| open.at(&place)).map(|question| question.key.clone())
            }
            // By the attempt that this one resumes: it may be open, or the answer is on record.
            Err(StoreError::Refused(Refused::AskedAlready(question))) => {
                out.coverage.also("question found again");
                Some(question)
            }
            other => return self.go_on(out, key, fence, branch, Some(stop(&error(other)))),
        };
        let running = self.running.get_mut(key).filter(|running| running.fence == fence && !running.ended);
        let at = running.and_then(|running| running.branches.get_mut(branch)).map(|branch| &mut branch.at);
        if let (Some(at), Some(question)) = (at, question)
            && let At::Sent(watch) = at
            && let Some(watch) = watch.take()
        {
            *at = At::Asking { question, place, watch, looked: false };
        }
        self.gate(out, key, fence);
    }

    fn spawned(
        &mut self,
        out: &mut Outside,
        child: TaskKey,
        tool: ToolRef,
        claimed: bool,
        commit: Commit,
        answer: &Answered,
    ) {
        if answer.is_err() {
            self.step(out, Input::NotCreated { owner: child.owner, tool, claimed, commit });
            return;
        }
        out.known.push(child.clone());
        if claimed && let Some((place, setup)) = out.setup.tool(&tool.name) {
            let resumes = setup.policy.on_crash == OnCrash::Resume;
            let script = out.script(&child, place);
            self.running.insert(child.clone(), Running::first(place, script, resumes));
        }
        self.step(out, Input::Created { key: child, tool, claimed: claimed.then_some(1), commit });
    }

    /// The attempt gave its task up by itself: it is over, and the task is not.
    fn handed_back(
        &mut self,
        out: &mut Outside,
        key: &TaskKey,
        fence: u64,
        branch: usize,
        does: &Does,
        answer: Answered,
    ) {
        match answer {
            Ok(Response::Applied(applied)) => {
                if let Some(running) = self.running.get_mut(key).filter(|running| running.fence == fence) {
                    running.ended = true;
                    running.branches.clear();
                }
                self.applied(out, &applied);
                self.step(out, Input::Written { key: key.clone(), fence, won: false });
                self.forget(key, fence);
                out.void.push((key.clone(), fence));
            }
            other => {
                if let Some(running) = self.running.get_mut(key).filter(|running| running.fence == fence) {
                    running.parking = false;
                }
                if !matches!(does, Does::LetGo) {
                    self.go_on(out, key, fence, branch, Some(stop(&error(other))));
                }
            }
        }
    }

    /// What is on record at a place, to the handler that stands there.
    pub(super) fn got(&mut self, out: &mut Outside, key: &TaskKey, fence: u64, place: &longhaul_task::Place) -> bool {
        let Some(running) = self.running.get(key).filter(|running| running.fence == fence) else { return false };
        let epoch = running.epoch;
        let records = self.reader.records(key, epoch).unwrap_or_default();
        let output = records.into_iter().find(|record| record.place == *place).and_then(|record| record.output);
        let void = self.read(key).is_none_or(|snapshot| snapshot.task.fence != fence);
        match output {
            Some(output) => {
                out.note(Fact::Got { key: key.clone(), epoch, place: place.clone(), output });
                true
            }
            None if void => false,
            // It has its answer and there is none: the checker wants to know.
            None => {
                let output = Json::from_text("nothing");
                out.note(Fact::Got { key: key.clone(), epoch, place: place.clone(), output });
                false
            }
        }
    }

    pub(super) fn forget(&mut self, key: &TaskKey, fence: u64) {
        if self.running.get(key).is_some_and(|running| running.fence == fence) {
            self.running.remove(key);
        }
    }
}

/// What a handler makes of the store's error.
pub(super) fn stop(error: &StoreError) -> Stop {
    match error {
        StoreError::NotFound | StoreError::Refused(Refused::Settled | Refused::Fenced) => Stop::Cancelled,
        _ => Stop::Failed,
    }
}

fn error(answer: Answered) -> StoreError {
    match answer {
        Ok(other) => StoreError::Unavailable(format!("an answer of another kind: {other:?}")),
        Err(error) => error,
    }
}

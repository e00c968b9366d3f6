//! Operations with several branches.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use longhaul_engine::{CtxError, Race};
use longhaul_task::{JournalPosition, Json};

use super::Branch;
use crate::ledger::Fact;
use crate::setup::Op;

impl Branch<'_> {
    /// The path of a fork of this branch.
    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}/{key}", self.path) }
    }

    /// The paths of both sides of a race at this position. A time limit is a race whose second side sleeps.
    fn race_paths(&self, position: &JournalPosition) -> [String; 2] {
        ["first", "second"].map(|side| self.path_of(&format!("{}:{side}", position.seq)))
    }

    /// The key of a fork consists of the position of the next operation, from which the laws know what comes before the fork, and
    /// of the number of the fork, because two forks can follow each other.
    ///
    /// Only forks of the root are renamed, where no race can make an attempt leave out the entries of the earlier name.
    pub(super) async fn fork(&mut self, number: usize, ops: [&[Op]; 2], is_renamed: bool) -> Result<(), CtxError> {
        let run = self.run;
        let group = run.work.group(&self.wait);
        let is_renamed = is_renamed && run.resumes && run.attempt > 1 && self.path.is_empty();
        let keys_of = |sides: [&str; 2]| sides.map(|side| format!("{}-{number}{side}", self.seq));
        let keys = keys_of(if is_renamed { ["L", "R"] } else { ["l", "r"] });
        if is_renamed {
            self.count("forks renamed");
            let forks = keys_of(["l", "r"]);
            run.world.note(Fact::Renamed { key: run.key.clone(), attempt: run.attempt, forks });
        }
        let paths = keys.each_ref().map(|key| self.path_of(key));
        let ctx = &mut self.ctx;
        let both = async {
            let [left, right] = [0, 1].map(|side| {
                let (path, leaf) = (paths[side].clone(), group.leaf());
                ctx.fork(&keys[side], |ctx| run.branch(ctx, path, ops[side], Some(leaf)))
            });
            let (left, right) = tokio::join!(left, right);
            left.and(right)
        };
        run.waiting(&self.wait, both).await
    }

    pub(super) async fn race(&mut self, first: &[Op], second: &[Op]) -> Result<(), CtxError> {
        let position = self.next_position();
        let run = self.run;
        let group = run.work.group(&self.wait);
        let paths = self.race_paths(&position);
        let begun = AtomicU32::new(0);
        let branch = |side: usize, ops| {
            let (path, group, begun) = (paths[side].clone(), &group, &begun);
            move |ctx| {
                begun.fetch_add(1, Ordering::Relaxed);
                run.branch(ctx, path, ops, Some(group.leaf()))
            }
        };
        let race = self.ctx.race("race", branch(0, first), branch(1, second));
        let winner = run.waiting(&self.wait, race).await?;
        let is_replayed = begun.load(Ordering::Relaxed) == 1;
        let (name, loser, ended) = match winner {
            Race::First(ended) => ("\"first\"", &paths[1], ended),
            Race::Second(ended) => ("\"second\"", &paths[0], ended),
        };
        self.note_race(position, name, loser, is_replayed);
        ended
    }

    pub(super) async fn time_limit(&mut self, ms: u64, ops: &[Op]) -> Result<(), CtxError> {
        let position = self.next_position();
        let run = self.run;
        let group = run.work.group(&self.wait);
        let paths = self.race_paths(&position);
        let begun = AtomicU32::new(0);
        let path = paths[0].clone();
        let work = |ctx| {
            begun.fetch_add(1, Ordering::Relaxed);
            run.branch(ctx, path, ops, Some(group.leaf()))
        };
        let limited = self.ctx.time_limit("limit", Duration::from_millis(ms), work);
        let ended = run.waiting(&self.wait, limited).await?;
        if let Some(ended) = ended {
            self.note_race(position, "\"first\"", &paths[1], false);
            return ended;
        }
        self.count("time limit over");
        self.note_race(position, "\"second\"", &paths[0], begun.load(Ordering::Relaxed) == 0);
        Ok(())
    }

    fn note_race(&self, position: JournalPosition, winner: &str, loser: &str, is_replayed: bool) {
        let run = self.run;
        let was_in = |paths: &BTreeSet<String>| paths.iter().any(|path| path.starts_with(loser));
        if is_replayed {
            self.count("race replayed");
        }
        if was_in(&run.asking.lock()) {
            self.count("race lost with a question");
        }
        if was_in(&run.spawning.lock()) {
            self.count("race lost with a child");
        }
        run.world.note(Fact::Raced { key: run.key.clone(), attempt: run.attempt, lost: loser.to_owned() });
        self.note_recorded_output(position, Json::from_text(winner));
    }

    /// A fork asks, another one sleeps, and the first that ends drops the other. If that is the sleep, the question stays open
    /// and no branch waits for its answer.
    pub(super) async fn leave_question(&mut self, number: usize, ms: u64) -> Result<(), CtxError> {
        let run = self.run;
        let group = run.work.group(&self.wait);
        let keys = ["a", "s"].map(|side| format!("{}-{number}{side}", self.seq));
        let paths = keys.each_ref().map(|key| self.path_of(key));
        let (ask, sleep) = ([Op::Ask], [Op::Sleep(ms)]);
        let ctx = &mut self.ctx;
        let first = async {
            let [asks, sleeps] = [(0, &ask), (1, &sleep)].map(|(side, ops)| {
                let (path, leaf) = (paths[side].clone(), group.leaf());
                ctx.fork(&keys[side], |ctx| run.branch(ctx, path, ops, Some(leaf)))
            });
            tokio::select! {
                biased;
                ended = sleeps => ended.map(|()| true),
                ended = asks => ended.map(|()| false),
            }
        };
        let is_left = run.waiting(&self.wait, first).await?;
        if is_left && run.asking.lock().contains(&paths[0]) {
            self.count("question left open");
        }
        Ok(())
    }
}

//! What a process does not take with it when it dies.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use longhaul_task::{QuestionKey, TaskKey};

use crate::chance::Chance;
use crate::coverage::Coverage;
use crate::fault::Weather;
use crate::ledger::{Entry, Fact};
use crate::setup::{Script, Setup};
use crate::time::Time;

/// The world around a process.
pub(crate) struct Outside {
    pub(crate) chance: Chance,
    pub(crate) time: Time,
    pub(crate) ledger: Vec<Entry>,
    pub(crate) coverage: Coverage,
    pub(crate) setup: Setup,
    pub(crate) weather: Weather,
    /// Handlers come to their end by themselves.
    pub(crate) calm: bool,
    /// Tasks that clients know of.
    pub(crate) known: Vec<TaskKey>,
    /// Questions that clients have seen.
    pub(crate) asked: Vec<(TaskKey, QuestionKey)>,
    /// Attempts that have lost their task, by crash or by giving it up.
    pub(crate) void: Vec<(TaskKey, u64)>,
    /// Every ID that was ever asked for.
    pub(crate) chosen: HashSet<TaskKey>,
    scripts: HashMap<TaskKey, Arc<Script>>,
}

impl Outside {
    pub(crate) fn new(seed: u64) -> Self {
        let mut chance = Chance::new(seed);
        let setup = Setup::choose(&mut chance);
        let weather = Weather::choose(&mut chance);
        let mut outside = Self {
            chance,
            time: Time::start(),
            ledger: Vec::with_capacity(512),
            coverage: Coverage { histories: 1, ..Coverage::default() },
            setup,
            weather,
            calm: false,
            known: Vec::new(),
            asked: Vec::new(),
            void: Vec::new(),
            chosen: HashSet::new(),
            scripts: HashMap::new(),
        };
        outside.note(Fact::Rules(outside.setup.rules()));
        outside
    }

    pub(crate) fn note(&mut self, fact: Fact) {
        self.ledger.push(Entry { at: self.time.wall(), fact });
    }

    /// The script of a task, the same for all of its attempts.
    pub(crate) fn script(&mut self, key: &TaskKey, tool: usize) -> Arc<Script> {
        if let Some(script) = self.scripts.get(key) {
            return Arc::clone(script);
        }
        let script = Arc::new(Script::choose(&mut self.chance.split(), &self.setup, tool));
        self.scripts.insert(key.clone(), Arc::clone(&script));
        script
    }
}

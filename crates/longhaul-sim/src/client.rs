//! Clients: they know what they were told, and ask for anything.

use longhaul_store::embedded::{Reader, Request};
use longhaul_store::{Listing, NewTask, Snapshot, Watch};
use longhaul_task::transition::{Answer, Cancel, Create, Delete, Release, Report, Settle};
use longhaul_task::{Event, Json, Outcome, Owner, QuestionKey, TaskId, TaskKey};

use crate::ledger::{Ack, Fact};
use crate::outside::Outside;
use crate::shell::{Process, Waits, heard};

/// How many tasks clients follow at once.
const FOLLOWED_MAX: usize = 6;

/// Everybody who talks to the process.
#[derive(Default)]
pub(crate) struct Clients {
    /// Reads that missed the cache and have not come back.
    loading: Vec<Loading>,
    following: Vec<Following>,
    own_ids: usize,
}

struct Loading {
    key: TaskKey,
    began: usize,
    deletions: u64,
    found: Option<Snapshot>,
}

struct Following {
    key: TaskKey,
    watch: Watch,
    seen: Option<u64>,
}

#[derive(Clone, Copy)]
enum Does {
    Create,
    Read,
    List,
    Cancel,
    Answer,
    Delete,
    Follow,
    Listen,
    Foreign,
    Late,
}

const CHOICES: [(u32, Does); 10] = [
    (10, Does::Create),
    (8, Does::Read),
    (1, Does::List),
    (3, Does::Cancel),
    (9, Does::Answer),
    (2, Does::Delete),
    (2, Does::Follow),
    (3, Does::Listen),
    (1, Does::Foreign),
    (2, Does::Late),
];

impl Clients {
    /// The process is gone, and with it every connection.
    pub(crate) fn disconnected(&mut self) {
        self.loading.clear();
        self.following.clear();
    }

    /// One client does one thing.
    pub(crate) fn act(&mut self, process: &mut Process, out: &mut Outside) {
        if !self.loading.is_empty() && out.chance.below(2) == 0 {
            return self.loaded(process, out);
        }
        let Some(does) = out.chance.weighted(&CHOICES) else { return };
        match does {
            Does::Create => return self.create(process, out),
            Does::Late => return late(process, out),
            _ => {}
        }
        let Some(key) = out.chance.pick(&out.known).cloned() else { return };
        match does {
            Does::Create | Does::Late => {}
            Does::Read => self.read(process, out, key),
            Does::List => list(process, out, &key.owner),
            Does::Cancel => cancel(process, out, key),
            Does::Answer => {
                let mut open: Vec<QuestionKey> = process.questions(&key);
                if let Some(question) = open.pop() {
                    out.asked.push((key.clone(), question.clone()));
                    answer(process, out, key, question);
                } else if let Some((key, question)) = out.chance.pick(&out.asked).cloned() {
                    // Somebody is late, or answers twice.
                    answer(process, out, key, question);
                }
            }
            Does::Delete => ask(process, out, key, Event::Delete(Delete), Ack::Deleted),
            Does::Follow => self.follow(process, out, key),
            Does::Listen => self.listen(process, out),
            Does::Foreign => {
                let stranger = out.setup.owners.iter().find(|owner| **owner != key.owner).cloned();
                let Some(owner) = stranger else { return };
                let key = TaskKey { owner, id: key.id };
                match out.chance.below(3) {
                    0 => self.read(process, out, key),
                    1 => cancel(process, out, key),
                    _ => answer(process, out, key, QuestionKey::from_text("q-1")),
                }
            }
        }
    }

    fn create(&mut self, process: &mut Process, out: &mut Outside) {
        let Some(owner) = out.chance.pick(&out.setup.owners).cloned() else { return };
        let place = out.chance.below(out.setup.tools.len());
        let admission = match process.core.admit(&owner, &out.setup.tools[place].tool.name, 2) {
            Ok(admission) => admission,
            Err(refusal) => {
                let what = match refusal {
                    longhaul_engine::EngineError::QueueFull { .. } => "queue full",
                    longhaul_engine::EngineError::TooManyOpen { .. } => "too many open",
                    _ => "not admitted otherwise",
                };
                return out.coverage.also(what);
            }
        };
        let id = (out.chance.below(4) == 0).then(|| self.own_id(process, out, &owner)).flatten();
        // As the engine does it: whoever chooses an ID may choose one that was used before.
        let fences_from = if id.is_some() {
            u64::from_le_bytes(out.chance.bits()[..8].try_into().unwrap_or_default()) >> 17
        } else {
            0
        };
        let id = id.unwrap_or_else(|| TaskId::mint(out.time.wall(), out.chance.bits()));
        let key = TaskKey { owner, id };
        out.chosen.insert(key.clone());
        let setup = &out.setup.tools[place];
        let create = Create {
            key: key.clone(),
            tool: admission.tool.clone(),
            origin: "sim".into(),
            policy: setup.policy.clone(),
            retention: setup.retention,
            claimed_by: admission.claimed.then_some(process.node),
            fences_from,
        };
        let (claimed, commit) = (admission.claimed, admission.commit);
        let waits = Waits::Creation { key, tool: admission.tool, claimed, commit };
        process.send(Request::Create(NewTask { create, input: Json::from_text("{}") }), waits);
    }

    /// An ID of the client's own choice: a new one, one that is taken, perhaps by somebody else, or one whose task is
    /// gone, while an attempt of that one may still be about.
    fn own_id(&mut self, process: &Process, out: &mut Outside, owner: &Owner) -> Option<TaskId> {
        let theirs = out.chance.pick(&out.known)?;
        let key = TaskKey { owner: owner.clone(), id: theirs.id.clone() };
        let settled = process.read(&key).is_some_and(|snapshot| snapshot.task.is_settled());
        if !settled && out.chance.below(3) > 0 {
            if out.chosen.contains(&key) && process.read(&key).is_none() {
                out.coverage.also("ID used again");
            }
            return Some(key.id);
        }
        self.own_ids += 1;
        TaskId::parse(&format!("own-{}", self.own_ids)).ok()
    }

    /// A read, as the store does it: from the cache at once, from the disk with a wait.
    fn read(&mut self, process: &Process, out: &mut Outside, key: TaskKey) {
        let began = out.ledger.len();
        if let Some(found) = process.published.get(&key) {
            return out.note(Fact::Read { began, key, found: Some(found) });
        }
        out.coverage.also("read past the cache");
        let deletions = process.published.deletions();
        let found = process.reader.read(&key).ok().flatten();
        self.loading.push(Loading { key, began, deletions, found });
    }

    fn loaded(&mut self, process: &Process, out: &mut Outside) {
        let Loading { key, began, deletions, found } = self.loading.remove(out.chance.below(self.loading.len()));
        if let Some(snapshot) = &found {
            process.published.remember(snapshot, deletions);
        }
        out.note(Fact::Read { began, key, found });
    }

    fn follow(&mut self, process: &Process, out: &mut Outside, key: TaskKey) {
        if self.following.len() == FOLLOWED_MAX {
            self.following.swap_remove(out.chance.below(FOLLOWED_MAX));
        }
        // Subscribe, then read.
        let watch = process.watchers.follow(&key);
        let seen = look(process, out, &key);
        self.following.push(Following { key, watch, seen });
    }

    fn listen(&mut self, process: &Process, out: &mut Outside) {
        let index = out.chance.below(self.following.len());
        if let Some(following) = self.following.get_mut(index)
            && heard(&mut following.watch)
        {
            following.seen = look(process, out, &following.key);
        }
    }

    /// Everybody hears what there is to hear and says what they saw last.
    pub(crate) fn hear_all(&mut self, process: &Process, out: &mut Outside) {
        while !self.loading.is_empty() {
            self.loaded(process, out);
        }
        for following in &mut self.following {
            while heard(&mut following.watch) {
                following.seen = look(process, out, &following.key);
            }
            out.note(Fact::Followed { key: following.key.clone(), seen: following.seen });
        }
    }
}

/// An attempt that has lost its task does not know it yet, and writes.
fn late(process: &mut Process, out: &mut Outside) {
    let Some((key, fence)) = out.chance.pick(&out.void).cloned() else { return };
    let event = match out.chance.below(3) {
        0 => Event::Report(Report { fence, message: "too late".into() }),
        1 => Event::Release(Release { fence, wait_ms: 0 }),
        _ => Event::Settle(Settle { fence, outcome: Outcome::Cancelled }),
    };
    let waits = Waits::Late { key: key.clone(), fence, event: event.name() };
    process.send(Request::Apply(key, event), waits);
}

fn look(process: &Process, out: &mut Outside, key: &TaskKey) -> Option<u64> {
    let began = out.ledger.len();
    let found = process.read(key);
    let seen = found.as_ref().map(|snapshot| snapshot.task.revision);
    out.note(Fact::Read { began, key: key.clone(), found });
    seen
}

fn list(process: &Process, out: &mut Outside, owner: &Owner) {
    let began = out.ledger.len();
    let listing = Listing { owner: Some(owner.clone()), after: None, limit: 3 };
    let Ok(page) = process.reader.list(&listing) else { return };
    for listed in page.tasks {
        let key = listed.task.key.clone();
        let found = Some(process.published.get(&key).unwrap_or(listed));
        out.note(Fact::Read { began, key, found });
    }
}

pub(crate) fn cancel(process: &mut Process, out: &Outside, key: TaskKey) {
    ask(process, out, key, Event::Cancel(Cancel { reason: None }), Ack::Cancelled);
}

pub(crate) fn answer(process: &mut Process, out: &Outside, key: TaskKey, question: QuestionKey) {
    let body = Json::from_text(format!("\"{question} at {}\"", out.ledger.len()));
    let event = Event::Answer(Answer { key: question.clone(), body: body.clone() });
    ask(process, out, key, event, Ack::Answered { question, body });
}

fn ask(process: &mut Process, out: &Outside, key: TaskKey, event: Event, ack: Ack) {
    let waits = Waits::Client { key: key.clone(), event: event.name(), ack, began: out.ledger.len() };
    process.send(Request::Apply(key, event), waits);
}

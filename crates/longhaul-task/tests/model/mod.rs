//! A small store for the tests: it keeps tasks in a map, loads for each event exactly what its scope names, applies the
//! event, and writes the change. It records every event as a history, and the laws are checked on that history.

mod plan;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use longhaul_task::transition::{
    self, Abandon, AnswerQuestion, AskQuestion, Cancel, Claim, Create, Delete, Expire, Lose, NewChild, Overdue, Park,
    Release, Renew, Report, Settle, Shorten, Spawn, TimeOut, Wake,
};
use longhaul_task::{
    Answer, Change, ChildRange, DescendantScope, EntryKind, EntryState, Event, JournalEntry, JournalPosition,
    JournalWrite, Json, NodeId, Owner, Policy, Question, QuestionKey, QuestionKind, Retention, Surroundings, Task,
    TaskId, TaskKey, Timestamp, ToolRef, TransitionError,
};

use plan::{At, FORKS, Held, ModelAction, New, ParkPlan, Step, Tick, Which};
pub(crate) use plan::{ModelPlan, plans};

pub(crate) type TaskMap = BTreeMap<TaskId, Task>;

/// Which attempts of which tasks have written journal entries.
pub(crate) type Writers = BTreeSet<(TaskId, u32)>;

/// One event, its result, and all tasks before and after it.
#[derive(Debug)]
pub(crate) struct Moment {
    pub(crate) now: Timestamp,
    pub(crate) id: TaskId,
    pub(crate) event: Event,
    /// Whether the task's attempt had written journal entries before the event.
    pub(crate) wrote_entries: bool,
    pub(crate) before: Rc<TaskMap>,
    pub(crate) result: Result<Change, TransitionError>,
    pub(crate) after: Rc<TaskMap>,
}

impl Moment {
    /// The task that the event was for, before the event.
    pub(crate) fn task(&self) -> &Task {
        &self.before[&self.id]
    }

    /// Every task that existed both before and after the event: (before, after).
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&Task, &Task)> {
        self.before.iter().filter_map(|(id, before)| Some((before, self.after.get(id)?)))
    }
}

pub(crate) struct History {
    pub(crate) moments: Vec<Moment>,
    /// All tasks after the last event.
    pub(crate) world: Rc<TaskMap>,
    pub(crate) writers: Writers,
    pub(crate) now: Timestamp,
}

impl History {
    pub(crate) fn of(plan: &ModelPlan) -> Self {
        let now = Timestamp::from_ms(1_000_000);
        let mut world = TaskMap::new();
        for (n, root) in plan.roots.iter().enumerate() {
            let task = transition::create(&create(root, &format!("root-{n}"), "ada"), now);
            world.insert(task.key.id.clone(), task);
        }
        let mut history = Self { moments: Vec::new(), world: Rc::new(world), writers: Writers::new(), now };
        let mut asked = Vec::new();
        for (n, step) in plan.steps.iter().enumerate() {
            if history.world.is_empty() {
                break;
            }
            history.advance(n, step, &mut asked);
        }
        history
    }

    fn advance(&mut self, n: usize, step: &Step, asked: &mut Vec<QuestionKey>) {
        let any_open = self.world.values().any(|task| !task.is_settled());
        let for_settled = matches!(step.act, ModelAction::Expire | ModelAction::Delete);
        let only_open = step.open && any_open && !for_settled;
        let tasks: Vec<&Task> = self.world.values().filter(|task| !only_open || !task.is_settled()).collect();
        let task = *step.target.get(&tasks);
        let now = after_tick(self.now, step.tick, task);
        let event = event(n, &step.act, &self.world, task, asked);
        let wrote_entries = self.writers.contains(&(task.key.id.clone(), task.attempt));
        let result = apply(&self.world, &self.writers, task, &event, now);
        let id = task.key.id.clone();
        let before = self.world.clone();
        if let Ok(change) = &result {
            for entry in inserted(change) {
                asked.extend(entry.question.clone());
                self.writers.insert((id.clone(), entry.attempt));
            }
            self.world = Rc::new(commit(&before, change));
        }
        self.now = now;
        self.moments.push(Moment { now, id, event, wrote_entries, before, result, after: self.world.clone() });
    }

    pub(crate) fn changes(&self) -> impl Iterator<Item = (&Moment, &Change)> {
        self.moments.iter().filter_map(|moment| Some((moment, moment.result.as_ref().ok()?)))
    }
}

/// The journal entries that a change inserts.
pub(crate) fn inserted(change: &Change) -> impl Iterator<Item = &JournalEntry> {
    change.journal.iter().filter_map(|write| match write {
        JournalWrite::Insert(entry) => Some(entry),
        JournalWrite::Answer { .. } => None,
    })
}

/// The answers that a change writes, by the keys of their questions.
pub(crate) fn answers(change: &Change) -> impl Iterator<Item = (&QuestionKey, &Answer)> {
    change.journal.iter().filter_map(|write| match write {
        JournalWrite::Answer { key, answer, .. } => Some((key, answer)),
        JournalWrite::Insert(_) => None,
    })
}

/// Applies an event with the surroundings that its scope names.
pub(crate) fn apply(
    world: &TaskMap,
    writers: &Writers,
    task: &Task,
    event: &Event,
    now: Timestamp,
) -> Result<Change, TransitionError> {
    let mut surroundings = Surroundings::default();
    let scope = event.scope(task);
    if scope.parent {
        surroundings.parent = task.family.parent.as_ref().map(|parent| world[parent].clone());
        for range in surroundings.parent.iter().flat_map(Task::awaited_children) {
            let siblings = task.family.parent.iter().flat_map(|parent| open_in(world, parent, *range));
            if siblings.filter(|sibling| sibling.key != task.key).count() > 0 {
                surroundings.open_siblings.push(*range);
            }
        }
    }
    match scope.descendants {
        DescendantScope::Nothing => {}
        DescendantScope::OpenChildren(ranges) => {
            surroundings.open_children = ranges;
            surroundings.open_children.retain(|range| open_in(world, &task.key.id, *range).next().is_some());
        }
        DescendantScope::OpenDescendants => {
            let open = descendants(world, &task.key.id).into_iter().filter(|task| !task.is_settled());
            surroundings.open_descendants = open.cloned().collect();
        }
    }
    let wrote_entries = scope.attempt_entries && writers.contains(&(task.key.id.clone(), task.attempt));
    surroundings.attempt_wrote_at = wrote_entries.then_some(now);
    transition::apply(task, event, &surroundings, now)
}

/// The children of a range that have not ended.
pub(crate) fn open_in<'a>(world: &'a TaskMap, parent: &'a TaskId, range: ChildRange) -> impl Iterator<Item = &'a Task> {
    children(world, parent).filter(move |child| !child.is_settled() && range.contains(child.family.ordinal))
}

pub(crate) fn commit(world: &TaskMap, change: &Change) -> TaskMap {
    let mut next = world.clone();
    if change.deletes_family() {
        next.retain(|_, task| task.family.root != change.task.family.root);
        return next;
    }
    let children = change.children.iter().map(|(child, _)| child);
    for task in change.relatives.iter().chain(children).chain([&change.task]) {
        next.insert(task.key.id.clone(), task.clone());
    }
    next
}

pub(crate) fn children<'a>(world: &'a TaskMap, id: &'a TaskId) -> impl Iterator<Item = &'a Task> {
    world.values().filter(move |task| task.family.parent.as_ref() == Some(id))
}

pub(crate) fn descendants<'a>(world: &'a TaskMap, id: &'a TaskId) -> Vec<&'a Task> {
    children(world, id).flat_map(|child| [vec![child], descendants(world, &child.key.id)].concat()).collect()
}

fn create(new: &New, id: &str, owner: &str) -> Create {
    let New { policy, retention, claimed_by, first_fence } = new.clone();
    let key = TaskKey { owner: Owner::parse(owner).unwrap(), id: TaskId::parse(id).unwrap() };
    Create { key, policy, retention, claimed_by: claimed_by.map(node), first_fence, ..creation(id) }
}

/// The creation of a queued task of Ada's with every default.
pub(crate) fn creation(id: &str) -> Create {
    Create {
        key: TaskKey { owner: Owner::parse("ada").unwrap(), id: TaskId::parse(id).unwrap() },
        tool: ToolRef::new("tool", "1"),
        origin: "test".into(),
        policy: Policy::default(),
        retention: Retention::Unlimited,
        claimed_by: None,
        first_fence: 0,
    }
}

/// A question at a new position.
pub(crate) fn ask(task: &Task, label: impl Into<Arc<str>>) -> Event {
    Event::Ask(AskQuestion {
        fence: task.fence,
        label: label.into(),
        kind: QuestionKind::Elicitation,
        params: Json::from_text("{}"),
        position: JournalPosition { fork: "".into(), seq: task.questions_asked },
        digest: 0,
        time_limit: None,
    })
}

/// The entry of a step.
pub(crate) fn step_entry(fork: &str, seq: u32) -> JournalEntry {
    let position = JournalPosition { fork: fork.into(), seq };
    JournalEntry::new(position, EntryKind::Step, "step".into(), 0, EntryState::Done(Json::from_text("1")))
}

pub(crate) fn node(n: u8) -> NodeId {
    NodeId::mint([n; 16])
}

fn after_tick(now: Timestamp, tick: Tick, task: &Task) -> Timestamp {
    match tick {
        Tick::Stand => now,
        Tick::Forward(ms) => now.plus_ms(ms),
        Tick::Back(ms) => Timestamp::from_ms(now.as_ms().saturating_sub(ms)),
        // Off-by-one errors show at the limit: 1 ms before it, at it, 1 ms after it.
        Tick::Due(off) => task
            .due_at()
            .filter(|due| *due >= now && due.ms_since(now) < u64::from(u32::MAX))
            .map_or(now, |due| Timestamp::from_ms((due.as_ms() + off).saturating_sub(1)).max(now)),
    }
}

fn event(n: usize, act: &ModelAction, world: &TaskMap, task: &Task, asked: &[QuestionKey]) -> Event {
    let seq = u32::try_from(n).unwrap();
    let fence = |held: Held| match held {
        Held::Now => task.fence,
        Held::Before(by) => task.fence.saturating_sub(by),
        Held::Ahead => task.fence + 1,
    };
    match act {
        ModelAction::Claim(by) => Event::Claim(Claim { node: node(*by) }),
        ModelAction::Report(held) => Event::Report(Report { fence: fence(*held), message: format!("at {n}").into() }),
        ModelAction::Ask { held, label, position, fork, limit_ms } => {
            // A resumed handler comes to the same position and asks the same question there, or another one.
            let open = task.phase.questions().and_then(|open| open.iter().next());
            let position = match (position, open) {
                (At::New, _) | (_, None) => JournalPosition { fork: (*fork).into(), seq },
                (At::Open, Some(open)) => open.position.clone(),
            };
            let time_limit = limit_ms.map(|ms| (ms, Answer::NotGiven(format!("no answer to {n}").into())));
            Event::Ask(AskQuestion {
                fence: fence(*held),
                label: (*label).into(),
                kind: QuestionKind::Elicitation,
                params: Json::from_text("{}"),
                position,
                digest: u64::from(seq),
                time_limit,
            })
        }
        ModelAction::Answer(which, given) => {
            let text = n.to_string();
            let answer = if *given { Answer::Given(Json::from_text(text)) } else { Answer::NotGiven(text.into()) };
            Event::Answer(AnswerQuestion { key: key(which, task, asked), answer })
        }
        ModelAction::TimeOut(which) => Event::TimeOut(TimeOut { key: key(which, task, asked) }),
        ModelAction::Abandon(held, forks) => {
            let forks = FORKS.iter().zip(forks).filter(|(_, lost)| **lost).map(|(fork, _)| (*fork).into()).collect();
            let race = JournalEntry { kind: EntryKind::Race, ..step_entry("", seq) };
            Event::Abandon(Abandon { fence: fence(*held), forks, race })
        }
        ModelAction::Spawn(held, new, same_id) => {
            let children = new.iter().enumerate().map(|(index, child)| {
                let id = if *same_id { task.key.id.to_string() } else { format!("child-{n}-{index}") };
                // The machine must ignore this owner and this retention.
                NewChild { create: create(child, &id, "mallory"), input: Json::from_text(index.to_string()) }
            });
            let entries = (0..new.len()).map(|index| {
                let seq = seq * 10 + u32::try_from(index).unwrap();
                JournalEntry { kind: EntryKind::Subtask, ..step_entry("", seq) }
            });
            Event::Spawn(Box::new(Spawn {
                fence: fence(*held),
                children: children.collect(),
                entries: entries.collect(),
            }))
        }
        ModelAction::Park(held, plan) => Event::Park(park(world, task, fence(*held), plan)),
        ModelAction::Wake(held) => Event::Wake(Wake { fence: fence(*held) }),
        ModelAction::Release(held, wait_ms) => {
            Event::Release(Release { fence: fence(*held), wait_ms: *wait_ms, reason: format!("failed at {n}").into() })
        }
        ModelAction::Settle(held, outcome, entries) => {
            let entries = (0..*entries).map(|index| step_entry("end", seq * 10 + index)).collect();
            Event::Settle(Settle { fence: fence(*held), outcome: outcome.clone(), entries })
        }
        ModelAction::Cancel => Event::Cancel(Cancel::default()),
        ModelAction::Lose(held, other) => {
            let node = other.map_or(task.phase.active_attempt().map_or(node(0), |run| run.node), node);
            Event::Lose(Lose { node, fence: fence(*held), is_stop: n.is_multiple_of(3) })
        }
        ModelAction::Overdue => Event::Overdue(Overdue),
        ModelAction::Expire => Event::Expire(Expire),
        ModelAction::Delete => Event::Delete(Delete),
        ModelAction::Shorten => Event::Shorten(Shorten::default()),
        ModelAction::Renew => Event::Renew(Renew),
    }
}

/// Waits for what is open, unless the plan says otherwise.
fn park(world: &TaskMap, task: &Task, fence: u64, plan: &ParkPlan) -> Park {
    let mut open: Vec<u32> =
        children(world, &task.key.id).filter(|child| !child.is_settled()).map(|child| child.family.ordinal).collect();
    open.sort_unstable();
    let mut ranges = match (open.first(), open.last(), plan.one_range) {
        (Some(first), Some(last), true) => vec![ChildRange { first: *first, last: *last }],
        _ => open.iter().map(|ordinal| ChildRange { first: *ordinal, last: *ordinal }).collect(),
    };
    if plan.ended_range {
        ranges.push(ChildRange { first: task.family.children, last: task.family.children });
    }
    let mut questions: Vec<QuestionKey> =
        task.phase.questions().into_iter().flatten().map(|question: &Question| question.key.clone()).collect();
    if plan.closed_question {
        questions.push(QuestionKey::from_text("closed-0"));
    }
    let returned =
        plan.returned.then(|| Box::new(JournalEntry { kind: EntryKind::Return, ..step_entry(":return", 0) }));
    Park { fence, wait_ms: plan.wait_ms, children: ranges, questions, returned }
}

fn key(which: &Which, task: &Task, asked: &[QuestionKey]) -> QuestionKey {
    let open: Vec<QuestionKey> =
        task.phase.questions().into_iter().flatten().map(|question| question.key.clone()).collect();
    let (index, keys) = match which {
        Which::Open(index) => (index, &open[..]),
        Which::Ever(index) => (index, asked),
    };
    if keys.is_empty() { QuestionKey::from_text("never-asked") } else { index.get(keys).clone() }
}

/// The fence of an event that an attempt sends. `None` for all other events.
pub(crate) fn fence_of(event: &Event) -> Option<u64> {
    match event {
        Event::Report(event) => Some(event.fence),
        Event::Ask(event) => Some(event.fence),
        Event::Abandon(event) => Some(event.fence),
        Event::Spawn(event) => Some(event.fence),
        Event::Park(event) => Some(event.fence),
        Event::Release(event) => Some(event.fence),
        Event::Settle(event) => Some(event.fence),
        Event::Claim(_)
        | Event::Answer(_)
        | Event::TimeOut(_)
        | Event::Wake(_)
        | Event::Cancel(_)
        | Event::Lose(_)
        | Event::Overdue(_)
        | Event::Shorten(_)
        | Event::Renew(_)
        | Event::Expire(_)
        | Event::Delete(_) => None,
    }
}

pub(crate) fn counts_from_end(task: &Task) -> bool {
    matches!(task.retention, Retention::FromEnd(_))
}

//! A small store for the tests: it keeps tasks in a map, loads for each event exactly what its scope names, applies the
//! event, and writes the change. It records every event as a history, and the laws are checked on that history.

mod plan;

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use longhaul_task::transition::{
    self, AnswerQuestion, AskQuestion, Cancel, Claim, Create, Delete, Expire, Lose, Overdue, Park, Release, Report,
    Settle, Shorten, Spawn, Wake,
};
use longhaul_task::{
    Change, DescendantScope, Event, JournalPosition, JournalWrite, Json, NodeId, Owner, Policy, QuestionKey,
    QuestionKind, Questions, Retention, Surroundings, Task, TaskId, TaskKey, Timestamp, ToolRef, TransitionError,
};

use plan::{At, Held, ModelAction, New, Step, Tick, Which};
pub(crate) use plan::{ModelPlan, plans};

pub(crate) type TaskMap = BTreeMap<TaskId, Task>;

/// One event, its result, and all tasks before and after it.
#[derive(Debug)]
pub(crate) struct Moment {
    pub(crate) now: Timestamp,
    pub(crate) id: TaskId,
    pub(crate) event: Event,
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
        let mut history = Self { moments: Vec::new(), world: Rc::new(world), now };
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
        let result = apply(&self.world, task, &event, now);
        if let Ok(Change { journal_write: Some(JournalWrite::Asked { key, .. }), .. }) = &result {
            asked.push(key.clone());
        }
        let id = task.key.id.clone();
        let before = self.world.clone();
        if let Ok(change) = &result {
            self.world = Rc::new(commit(&before, change));
        }
        self.now = now;
        self.moments.push(Moment { now, id, event, before, result, after: self.world.clone() });
    }

    pub(crate) fn changes(&self) -> impl Iterator<Item = (&Moment, &Change)> {
        self.moments.iter().filter_map(|moment| Some((moment, moment.result.as_ref().ok()?)))
    }
}

/// Applies an event with the surroundings that its scope names.
pub(crate) fn apply(world: &TaskMap, task: &Task, event: &Event, now: Timestamp) -> Result<Change, TransitionError> {
    let mut surroundings = Surroundings::default();
    let scope = event.scope(task);
    if scope.parent {
        surroundings.parent = task.family.parent.as_ref().map(|parent| world[parent].clone());
    }
    match scope.descendants {
        DescendantScope::Nothing => {}
        DescendantScope::OpenChildren => {
            let open = children(world, &task.key.id).filter(|child| !child.is_settled()).count();
            surroundings.open_children = u32::try_from(open).unwrap();
        }
        DescendantScope::OpenDescendants => {
            let open = descendants(world, &task.key.id).into_iter().filter(|task| !task.is_settled());
            surroundings.open_descendants = open.cloned().collect();
        }
    }
    transition::apply(task, event, &surroundings, now)
}

pub(crate) fn commit(world: &TaskMap, change: &Change) -> TaskMap {
    let mut next = world.clone();
    if change.deletes_family() {
        next.retain(|_, task| task.family.root != change.task.family.root);
        return next;
    }
    let child = change.child.as_ref().map(|(child, _)| child);
    for task in change.relatives.iter().chain(child).chain([&change.task]) {
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
    })
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
        ModelAction::Ask(held, label, position) => {
            // A resumed handler comes to the same position and asks the same question there, or another one.
            let open = task.phase.questions().and_then(|open| open.iter().next());
            let (position, digest) = match (position, open) {
                (At::New, _) | (_, None) => (JournalPosition { fork: "".into(), seq }, u64::from(seq)),
                (At::Open, Some(open)) => (open.position.clone(), open.digest),
                (At::Changed, Some(open)) => (open.position.clone(), open.digest + 1),
            };
            let label = open.filter(|open| open.digest == digest).map_or(*label, |open| open.key.label()).into();
            let (fence, kind, params) = (fence(*held), QuestionKind::Elicitation, Json::from_text("{}"));
            Event::Ask(AskQuestion { fence, label, kind, params, position, digest })
        }
        ModelAction::Answer(which) => {
            Event::Answer(AnswerQuestion { key: key(which, task, asked), body: Json::from_text(n.to_string()) })
        }
        ModelAction::Spawn(held, child, same_id) => {
            let id = if *same_id { task.key.id.to_string() } else { format!("child-{n}") };
            // The machine must ignore this owner and this retention.
            let child = create(child, &id, "mallory");
            Event::Spawn(Box::new(Spawn { fence: fence(*held), child, input: Json::from_text("{}") }))
        }
        ModelAction::Park(held, wait, more) => {
            let children = children(world, &task.key.id).filter(|child| !child.is_settled()).count();
            Event::Park(Park {
                fence: fence(*held),
                wait_ms: *wait,
                open_children: u32::try_from(children).unwrap() + u32::from(*more),
                open_questions: task.phase.questions().map_or(0, Questions::count),
            })
        }
        ModelAction::Wake(held) => Event::Wake(Wake { fence: fence(*held) }),
        ModelAction::Release(held, wait_ms) => Event::Release(Release { fence: fence(*held), wait_ms: *wait_ms }),
        ModelAction::Settle(held, outcome) => Event::Settle(Settle { fence: fence(*held), outcome: outcome.clone() }),
        ModelAction::Cancel => Event::Cancel(Cancel::default()),
        ModelAction::Lose(held, other) => {
            let node = other.map_or(task.phase.active_attempt().map_or(node(0), |run| run.node), node);
            Event::Lose(Lose { node, fence: fence(*held) })
        }
        ModelAction::Overdue => Event::Overdue(Overdue),
        ModelAction::Expire => Event::Expire(Expire),
        ModelAction::Delete => Event::Delete(Delete),
        ModelAction::Shorten => Event::Shorten(Shorten),
    }
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
        Event::Spawn(event) => Some(event.fence),
        Event::Park(event) => Some(event.fence),
        Event::Release(event) => Some(event.fence),
        Event::Settle(event) => Some(event.fence),
        Event::Claim(_)
        | Event::Answer(_)
        | Event::Wake(_)
        | Event::Cancel(_)
        | Event::Lose(_)
        | Event::Overdue(_)
        | Event::Shorten(_)
        | Event::Expire(_)
        | Event::Delete(_) => None,
    }
}

pub(crate) fn counts_from_end(task: &Task) -> bool {
    matches!(task.retention, Retention::FromEnd(_))
}

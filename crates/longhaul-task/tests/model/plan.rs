//! Random plans: which events to apply, to which tasks, and how the clock moves.

use longhaul_task::{COLLECT_MS_MIN, Json, OnCrash, Outcome, Policy, Retention, TaskError};
use proptest::prelude::*;
use proptest::sample::Index;

/// The roots of a few families, and the events that are applied to them in order.
#[derive(Debug, Clone)]
pub(crate) struct ModelPlan {
    pub(crate) roots: Vec<New>,
    pub(crate) steps: Vec<Step>,
}

impl ModelPlan {
    /// The same plan under a clock that never goes back.
    pub(crate) fn with_a_steady_clock(mut self) -> Self {
        for step in &mut self.steps {
            if let Tick::Back(_) = step.tick {
                step.tick = Tick::Stand;
            }
        }
        self
    }
}

#[derive(Debug, Clone)]
pub(crate) struct New {
    pub(crate) policy: Policy,
    pub(crate) retention: Retention,
    pub(crate) claimed_by: Option<u8>,
    pub(crate) first_fence: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) tick: Tick,
    pub(crate) target: Index,
    /// Whether the target is chosen among the open tasks, if there are any and the act is for open tasks.
    pub(crate) open: bool,
    pub(crate) act: ModelAction,
}

/// How the clock moves before an event.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Tick {
    Stand,
    Forward(u64),
    Back(u64),
    /// To the time at which the task is due: 1 ms before it (0), at it (1), 1 ms after it (2).
    Due(u64),
}

/// The fence that an event carries, relative to the task's fence.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Held {
    Now,
    Before(u64),
    Ahead,
}

#[derive(Debug, Clone)]
pub(crate) enum Which {
    Open(Index),
    /// Any question that any task has asked so far.
    Ever(Index),
}

/// The position in the journal at which a question is asked.
#[derive(Debug, Clone, Copy)]
pub(crate) enum At {
    New,
    /// The position of an open question.
    Open,
}

/// The forks in which a handler asks. The second is a fork of the first; the third only begins like it.
pub(crate) const FORKS: [&str; 3] = ["left", "left/deep", "lefty"];

/// What a handler that is dropped waits for.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "the choices are independent of each other")]
pub(crate) struct ParkPlan {
    pub(crate) wait_ms: Option<u64>,
    /// Whether it waits for its open children together, or for each.
    pub(crate) one_range: bool,
    /// Whether it also waits for children that have ended.
    pub(crate) ended_range: bool,
    /// Whether it also waits for a question that is not open.
    pub(crate) closed_question: bool,
    /// Whether the handler has returned.
    pub(crate) returned: bool,
}

#[derive(Debug, Clone)]
pub(crate) enum ModelAction {
    Claim(u8),
    Report(Held),
    Ask {
        held: Held,
        label: &'static str,
        position: At,
        fork: &'static str,
        limit_ms: Option<u64>,
    },
    /// The flag says whether the requestor gives an answer.
    Answer(Which, bool),
    TimeOut(Which),
    /// Which of [`FORKS`] have lost.
    Abandon(Held, [bool; 3]),
    /// The flag says whether the children get the ID of their parent.
    Spawn(Held, Vec<New>, bool),
    Park(Held, ParkPlan),
    Wake(Held),
    Release(Held, u64),
    /// The number of journal entries that it writes.
    Settle(Held, Outcome, u32),
    Cancel,
    /// The dead node. `None` is the node that holds the task.
    Lose(Held, Option<u8>),
    Overdue,
    Shorten,
    Renew,
    Expire,
    Delete,
}

/// Plans of one or two families and up to sixty events.
pub(crate) fn plans() -> impl Strategy<Value = ModelPlan> {
    (prop::collection::vec(new(), 1..=2), prop::collection::vec(step(), 1..60))
        .prop_map(|(roots, steps)| ModelPlan { roots, steps })
}

fn step() -> impl Strategy<Value = Step> {
    let open = one_of(&[(5, true), (1, false)]);
    (tick(), any::<Index>(), open, act()).prop_map(|(tick, target, open, act)| Step { tick, target, open, act })
}

/// Draws one of the choices by weight; failures shrink to the first. Every step draws a dozen times, and a union of
/// strategies would be several times slower.
fn one_of<T: Clone + std::fmt::Debug + 'static>(choices: &[(usize, T)]) -> impl Strategy<Value = T> + use<T> {
    let weighted = choices.iter().flat_map(|(weight, choice)| std::iter::repeat_n(choice.clone(), *weight));
    prop::sample::select(weighted.collect::<Vec<T>>())
}

/// Constructors with their weights.
type Kinds<I, O, const N: usize> = [(usize, fn(I) -> O); N];

fn tick() -> impl Strategy<Value = Tick> {
    let kinds: Kinds<u64, Tick, 6> = [
        (6, |_| Tick::Stand),
        (12, |ms| Tick::Forward(ms % 20)),
        (1, Tick::Forward),
        (3, |ms| Tick::Back(ms % 100)),
        (1, |ms| Tick::Back(ms * 10)),
        (2, |ms| Tick::Due(ms % 3)),
    ];
    (one_of(&kinds), 0..3 * COLLECT_MS_MIN).prop_map(|(kind, ms)| kind(ms))
}

fn act() -> impl Strategy<Value = ModelAction> {
    let kinds: Kinds<Draw, ModelAction, 19> = [
        (9, |draw| ModelAction::Claim(draw.node)),
        (2, |draw| ModelAction::Report(draw.held)),
        (8, |draw| ModelAction::Ask {
            held: draw.held,
            label: draw.label,
            position: draw.at,
            fork: draw.fork,
            limit_ms: draw.flags[0].then_some(draw.wait_ms),
        }),
        (4, |draw| ModelAction::Answer(Which::Open(draw.index), draw.usual)),
        (3, |draw| ModelAction::Answer(Which::Ever(draw.index), draw.usual)),
        (3, |draw| ModelAction::TimeOut(if draw.usual { Which::Open(draw.index) } else { Which::Ever(draw.index) })),
        (2, |draw| ModelAction::Abandon(draw.held, draw.flags)),
        (6, |draw| ModelAction::Spawn(draw.held, draw.new, !draw.usual)),
        (6, |draw| {
            let wait_ms = draw.flags[0].then_some(draw.wait_ms);
            let [_, one_range, which] = draw.flags;
            let (ended_range, closed_question) = (!draw.usual && which, !draw.usual && !which);
            let returned = draw.usual && one_range && which;
            ModelAction::Park(draw.held, ParkPlan { wait_ms, one_range, ended_range, closed_question, returned })
        }),
        (3, |draw| ModelAction::Wake(draw.held)),
        (3, |draw| ModelAction::Release(draw.held, draw.wait_ms)),
        (4, |draw| ModelAction::Settle(draw.held, draw.outcome, u32::from(draw.flags[0]))),
        (1, |_| ModelAction::Cancel),
        (5, |draw| ModelAction::Lose(draw.held, (!draw.usual).then_some(draw.node))),
        (2, |_| ModelAction::Overdue),
        (2, |_| ModelAction::Shorten),
        (2, |_| ModelAction::Renew),
        (2, |_| ModelAction::Expire),
        (2, |_| ModelAction::Delete),
    ];
    (one_of(&kinds), draw()).prop_map(|(kind, draw)| kind(draw))
}

/// The random values from which any act can be made.
#[derive(Debug)]
struct Draw {
    node: u8,
    held: Held,
    label: &'static str,
    at: At,
    fork: &'static str,
    flags: [bool; 3],
    index: Index,
    wait_ms: u64,
    outcome: Outcome,
    new: Vec<New>,
    usual: bool,
}

fn draw() -> impl Strategy<Value = Draw> {
    let held = one_of(&[(16, Held::Now), (2, Held::Before(1)), (2, Held::Before(2)), (2, Held::Ahead)]);
    // `a` and `a-1` would give equal keys if only repeated labels got a number. The last two are not valid labels.
    let label = one_of(&[(8, "a"), (4, "a-1"), (2, "b.c_d"), (1, ""), (1, "not a label")]);
    let answer = |is_error| Outcome::Result { body: Json::from_text("1"), is_error };
    let outcome = one_of(&[
        (2, answer(false)),
        (1, answer(true)),
        (1, Outcome::Error(TaskError::panic("oh"))),
        (1, Outcome::Cancelled),
    ]);
    let usual = one_of(&[(4, true), (1, false)]);
    let at = one_of(&[(8, At::New), (3, At::Open)]);
    let fork = one_of(&[(2, ""), (2, FORKS[0]), (1, FORKS[1]), (1, FORKS[2])]);
    let new = prop::collection::vec(new(), 1..=3);
    (0_u8..3, held, (label, at, fork, any::<[bool; 3]>()), any::<Index>(), 0_u64..100, outcome, new, usual).prop_map(
        |(node, held, (label, at, fork, flags), index, wait_ms, outcome, new, usual)| Draw {
            node,
            held,
            label,
            at,
            fork,
            flags,
            index,
            wait_ms,
            outcome,
            new,
            usual,
        },
    )
}

fn new() -> impl Strategy<Value = New> {
    let claimed_by = one_of(&[(1, None), (1, Some(0)), (1, Some(1))]);
    let first_fence = one_of(&[(2, 0), (1, 1 << 40)]);
    (policy(), retention(), claimed_by, first_fence).prop_map(|(policy, retention, claimed_by, first_fence)| New {
        policy,
        retention,
        claimed_by,
        first_fence,
    })
}

fn policy() -> impl Strategy<Value = Policy> {
    let on_crash = one_of(&[(1, OnCrash::Fail), (1, OnCrash::Retry), (3, OnCrash::Resume)]);
    let limit_ms = || one_of(&[(6, u64::MAX), (1, 0), (1, 30), (2, 300), (3, 5_000), (6, 300_000)]);
    (on_crash, 0_u32..4, 0_u64..20, 0_u64..50, limit_ms(), limit_ms()).prop_map(
        |(on_crash, attempts_max, backoff_ms, backoff_ms_max, running_ms_max, life_ms_max)| Policy {
            on_crash,
            attempts_max,
            backoff_ms,
            backoff_ms_max,
            running_ms_max,
            life_ms_max,
        },
    )
}

fn retention() -> impl Strategy<Value = Retention> {
    let kinds: Kinds<u64, Retention, 3> =
        [(3, Retention::FromCreation), (1, Retention::FromEnd), (1, |_| Retention::Unlimited)];
    let ms =
        one_of(&[0, 7, 100, 300, COLLECT_MS_MIN, COLLECT_MS_MIN + 1, 3 * COLLECT_MS_MIN, u64::MAX].map(|ms| (1, ms)));
    (one_of(&kinds), ms).prop_map(|(kind, ms)| kind(ms))
}

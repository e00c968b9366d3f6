//! The state diagram in `ARCHITECTURE.md` has exactly the edges that the state machine has.

use std::collections::BTreeSet;
use std::fmt::Write;

use longhaul_task::transition::{
    self, Abandon, AnswerQuestion, Cancel, Claim, Create, Delete, Expire, Lose, NewChild, Overdue, Park, Release,
    Renew, Report, Settle, Shorten, Spawn, TimeOut, Wake,
};
use longhaul_task::{
    Answer, Event, Json, NodeId, OnCrash, Outcome, PhaseName, Policy, QuestionKey, Retention, Surroundings, Task,
    Timestamp,
};

use crate::model::{creation, node, step_entry};

/// (from, to, name of the event). `[*]` stands for a task before its creation and after its deletion.
type Edge = (String, String, String);

const OUTSIDE: &str = "[*]";
const START: Timestamp = Timestamp::from_ms(1_000);
/// One time before every deadline of the samples, one after all of them, and one to which the clock has gone back.
const TIMES: [Timestamp; 3] = [Timestamp::from_ms(2_000), Timestamp::from_ms(u64::MAX), Timestamp::ZERO];

#[test]
fn the_diagram_has_the_edges_of_the_state_machine() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ARCHITECTURE.md");
    let page = std::fs::read_to_string(page).expect("ARCHITECTURE.md is in the root of the repository");
    let difference = difference(&drawn_edges(&page), &actual_edges());
    assert!(difference.is_empty(), "ARCHITECTURE.md and the state machine differ:\n{difference}");
}

#[test]
fn a_missing_edge_and_a_wrong_edge_are_reported() {
    let page = |edges: &str| format!("# Title\n```mermaid\nstateDiagram-v2\n{edges}\n```\n");
    let right = drawn_edges(&page("    [*] --> queued: create, spawn\n    settled --> [*]: delete"));
    assert_eq!(right.len(), 3);
    assert_eq!(difference(&right, &right), "");
    let wrong = drawn_edges(&page("    [*] --> queued: create, spawn\n    settled --> queued: delete"));
    assert_eq!(
        difference(&wrong, &right),
        "  drawn, but never happens: settled --> queued: delete\n  happens, but is not drawn: settled --> [*]: delete\n"
    );
}

#[test]
fn the_samples_cover_every_phase_and_every_event() {
    let phases: BTreeSet<PhaseName> = samples().iter().map(|task| task.phase.name()).collect();
    assert!(phases.into_iter().eq(PhaseName::ALL));
    let indexes: Vec<usize> = events(&samples()[0]).iter().map(index_of).collect();
    assert!(indexes.into_iter().eq(0..EVENTS));
}

/// The edges of the state diagram in a page.
fn drawn_edges(page: &str) -> BTreeSet<Edge> {
    let block = page
        .split("```mermaid\n")
        .skip(1)
        .find_map(|rest| rest.split("```").next()?.trim_start().strip_prefix("stateDiagram-v2"))
        .expect("ARCHITECTURE.md has a mermaid block with a stateDiagram-v2");
    let lines = block.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("direction "));
    lines.flat_map(edges_of).collect()
}

fn edges_of(line: &str) -> Vec<Edge> {
    let parts = line.split_once("-->").and_then(|(from, rest)| Some((from, rest.split_once(':')?)));
    let Some((from, (to, labels))) = parts else { panic!("not an edge with a label: {line}") };
    for end in [from.trim(), to.trim()] {
        assert!(end == OUTSIDE || PhaseName::parse(end).is_some(), "`{end}` is not a phase: {line}");
    }
    labels.split(", ").map(|label| (from.trim().into(), to.trim().into(), label.trim().into())).collect()
}

/// The edges that result when every event is applied to every sample.
fn actual_edges() -> BTreeSet<Edge> {
    let mut edges = BTreeSet::new();
    for claimed_by in [None, Some(node(1))] {
        let task = create("root", OnCrash::Fail, 1, claimed_by);
        edges.insert((OUTSIDE.into(), name(&task), "create".into()));
    }
    for task in samples() {
        for (event, now) in TIMES.iter().flat_map(|now| events(&task).into_iter().map(move |event| (event, *now))) {
            let Ok(change) = transition::apply(&task, &event, &Surroundings::default(), now) else { continue };
            let to = if change.deletes_family() { OUTSIDE.into() } else { name(&change.task) };
            edges.insert((name(&task), to, event.name().into()));
            for (child, _) in change.children {
                edges.insert((OUTSIDE.into(), name(&child), event.name().into()));
            }
        }
    }
    edges
}

fn difference(drawn: &BTreeSet<Edge>, actual: &BTreeSet<Edge>) -> String {
    let mut text = String::new();
    for (verdict, edges) in [
        ("drawn, but never happens", drawn.difference(actual)),
        ("happens, but is not drawn", actual.difference(drawn)),
    ] {
        for (from, to, label) in edges {
            writeln!(text, "  {verdict}: {from} --> {to}: {label}").unwrap();
        }
    }
    text
}

/// Tasks in every phase, and in every variant of a phase that some event handles differently.
fn samples() -> Vec<Task> {
    let mut samples = Vec::new();
    for on_crash in [OnCrash::Fail, OnCrash::Retry, OnCrash::Resume] {
        for attempts_max in [1, 2] {
            let queued = create("root", on_crash, attempts_max, None);
            let running = create("root", on_crash, attempts_max, Some(node(1)));
            let waiting_for_one = after(&running, &ask(&running));
            let waiting_for_two = after(&waiting_for_one, &ask(&waiting_for_one));
            let settled = after(&running, &Event::Cancel(Cancel::default()));
            if on_crash == OnCrash::Resume {
                for task in [&waiting_for_one, &waiting_for_two] {
                    let parked = after(task, &park(task));
                    samples.push(
                        transition::apply(&parked, &wake(&parked), &Surroundings::default(), TIMES[0]).unwrap().task,
                    );
                    samples.push(parked);
                }
                samples.push(after(&running, &park(&running)));
            }
            let spawned = transition::apply(&running, &spawn(&running, None), &Surroundings::default(), START);
            let (child, _) = spawned.unwrap().children.remove(0);
            samples.extend([queued, running, waiting_for_one, waiting_for_two, settled, child]);
        }
    }
    samples
}

const EVENTS: usize = 20;

/// Every event, with the current fence. `Spawn` occurs twice: with a queued and with a claimed child.
fn events(task: &Task) -> Vec<Event> {
    let fence = task.fence;
    let key = task.phase.questions().and_then(|open| open.iter().next()).map(|question| question.key.clone());
    let key = key.unwrap_or(QuestionKey::from_text("none"));
    let answer = AnswerQuestion { key: key.clone(), answer: Answer::Given(json()) };
    let forks = vec!["fork-0".into()];
    vec![
        Event::Claim(Claim { node: node(1) }),
        Event::Report(Report { fence, message: "busy".into() }),
        ask(task),
        Event::Answer(answer),
        spawn(task, None),
        spawn(task, Some(node(1))),
        park(task),
        wake(task),
        Event::Release(Release { fence, wait_ms: 0, reason: "busy".into() }),
        Event::Settle(Settle {
            fence,
            outcome: Outcome::Result { body: json(), is_error: false },
            entries: vec![step_entry("", 9)],
        }),
        Event::Cancel(Cancel::default()),
        Event::Lose(Lose { node: node(1), fence, is_stop: false }),
        Event::Overdue(Overdue),
        Event::Expire(Expire),
        Event::Delete(Delete),
        Event::Shorten(Shorten::default()),
        Event::TimeOut(TimeOut { key }),
        Event::Abandon(Abandon { fence, forks, race: step_entry("", 9) }),
        Event::Renew(Renew),
        park_returned(task),
    ]
}

/// Index of an event in [`events`]. The exhaustive match makes the compiler report a new event that is missing there.
fn index_of(event: &Event) -> usize {
    match event {
        Event::Claim(_) => 0,
        Event::Report(_) => 1,
        Event::Ask(_) => 2,
        Event::Answer(_) => 3,
        Event::Spawn(spawn) => 4 + usize::from(spawn.children[0].create.claimed_by.is_some()),
        Event::Park(park) if park.returned.is_some() => 19,
        Event::Park(_) => 6,
        Event::Wake(_) => 7,
        Event::Release(_) => 8,
        Event::Settle(_) => 9,
        Event::Cancel(_) => 10,
        Event::Lose(_) => 11,
        Event::Overdue(_) => 12,
        Event::Expire(_) => 13,
        Event::Delete(_) => 14,
        Event::Shorten(_) => 15,
        Event::TimeOut(_) => 16,
        Event::Abandon(_) => 17,
        Event::Renew(_) => 18,
    }
}

fn after(task: &Task, event: &Event) -> Task {
    transition::apply(task, event, &Surroundings::default(), START).unwrap().task
}

/// Each question has a fork of its own, and a deadline between the first two times.
fn ask(task: &Task) -> Event {
    let Event::Ask(mut ask) = crate::model::ask(task, "name") else { unreachable!() };
    ask.position.fork = format!("fork-{}", task.questions_asked).into();
    ask.time_limit = Some((2 * TIMES[0].ms_since(START), Answer::Given(json())));
    Event::Ask(ask)
}

fn park(task: &Task) -> Event {
    let wait_ms = Some(TIMES[0].ms_since(START));
    Event::Park(Park { fence: task.fence, wait_ms, ..Park::default() })
}

/// Its handler has returned before its children. The timer stands for them.
fn park_returned(task: &Task) -> Event {
    let wait_ms = Some(TIMES[0].ms_since(START));
    Event::Park(Park {
        fence: task.fence,
        wait_ms,
        returned: Some(Box::new(step_entry(":return", 0))),
        ..Park::default()
    })
}

fn wake(task: &Task) -> Event {
    Event::Wake(Wake { fence: task.fence })
}

fn spawn(task: &Task, claimed_by: Option<NodeId>) -> Event {
    let child = NewChild { create: new("child", OnCrash::Fail, 1, claimed_by), input: json() };
    Event::Spawn(Box::new(Spawn { fence: task.fence, children: vec![child], entries: Vec::new() }))
}

fn create(id: &str, on_crash: OnCrash, attempts_max: u32, claimed_by: Option<NodeId>) -> Task {
    transition::create(&new(id, on_crash, attempts_max, claimed_by), START)
}

fn new(id: &str, on_crash: OnCrash, attempts_max: u32, claimed_by: Option<NodeId>) -> Create {
    let policy = Policy { on_crash, attempts_max, ..Policy::default() };
    Create { policy, retention: Retention::FromCreation(3_600_000), claimed_by, ..creation(id) }
}

fn name(task: &Task) -> String {
    task.phase.name().as_str().into()
}

fn json() -> Json {
    Json::from_text("{}")
}

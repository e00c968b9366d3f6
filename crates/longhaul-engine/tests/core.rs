//! The core by itself: news of commits come in any order, and every worker and every count comes back.

use std::sync::Arc;

use longhaul_engine::core::{Action, Alarm, Core, Input, look_at_queue};
use longhaul_engine::{EngineLimits, ToolLimits};
use longhaul_task::{Effect, NodeId, Outcome, Owner, PhaseName, TaskId, TaskKey, Timestamp, ToolRef};

fn tool() -> ToolRef {
    ToolRef::new("tool", "1")
}

fn owner() -> Owner {
    Owner::parse("ada").unwrap()
}

fn node() -> NodeId {
    NodeId::mint([7; 16])
}

fn key(id: &str) -> TaskKey {
    TaskKey { owner: owner(), id: TaskId::parse(id).unwrap() }
}

/// A core with one worker.
fn core() -> Core {
    let mut core = Core::new(node(), EngineLimits::default());
    core.register(tool(), ToolLimits { running_max: 1, ..ToolLimits::default() });
    core
}

fn admit(core: &mut Core) -> bool {
    core.admit(&owner(), &Arc::from("tool"), 0).unwrap().claimed
}

fn create(core: &mut Core, id: &str) -> Vec<Action> {
    let claimed = admit(core).then_some(1);
    core.step(Input::Created { key: key(id), tool: tool(), claimed })
}

fn settled(id: &str, was: PhaseName) -> Effect {
    Effect::Settled { key: key(id), tool: tool(), was }
}

fn stop(id: &str, fence: u64) -> Effect {
    Effect::Stop { key: key(id), node: node(), fence }
}

fn load(core: &Core) -> (usize, usize, usize) {
    let (_, running, queued) = core.load().next().unwrap();
    (running, queued, core.open(&owner()))
}

#[test]
fn a_handler_that_was_stopped_before_its_claim_came_back_is_not_started() {
    let mut core = core();
    create(&mut core, "first");
    create(&mut core, "second");
    let written = core.step(Input::Written { key: key("first"), fence: 1, won: true });
    assert_eq!(written, [Action::Claim { tool: tool(), limit: 1 }]);

    // The claim is committed, and then the cancellation, whose news come first.
    core.step(Input::Applied { tool: tool(), effects: vec![settled("second", PhaseName::Running), stop("second", 1)] });
    let claimed = core.step(Input::Claimed { tool: tool(), asked: 1, tasks: vec![(key("second"), 1)] });

    assert_eq!(claimed, [Action::Forget { key: key("second"), fence: 1 }]);
    assert_eq!(load(&core), (0, 0, 0));
    assert_eq!(core.attempts(), 0);
}

#[test]
fn an_attempt_that_has_its_answer_gets_the_worker_that_a_claim_did_not_need() {
    let mut core = core();
    create(&mut core, "asks");
    create(&mut core, "queued");
    let idle = core.step(Input::Idle { key: key("asks"), fence: 1 });
    assert_eq!(idle, [Action::Claim { tool: tool(), limit: 1 }]);
    // The answer comes while the worker is set aside for the claim, and what was queued is called off.
    assert_eq!(core.step(Input::Busy { key: key("asks"), fence: 1 }), []);
    core.step(Input::Applied { tool: tool(), effects: vec![settled("queued", PhaseName::Queued)] });

    let claimed = core.step(Input::Claimed { tool: tool(), asked: 1, tasks: Vec::new() });

    assert!(claimed.contains(&Action::Resume { key: key("asks"), fence: 1 }), "{claimed:?}");
}

#[test]
fn a_stopped_attempt_takes_no_worker_when_its_turn_comes() {
    let mut core = core();
    create(&mut core, "asks");
    create(&mut core, "next");
    core.step(Input::Idle { key: key("asks"), fence: 1 });
    core.step(Input::Claimed { tool: tool(), asked: 1, tasks: vec![(key("next"), 1)] });
    core.step(Input::Busy { key: key("asks"), fence: 1 });
    core.step(Input::Applied { tool: tool(), effects: vec![settled("asks", PhaseName::Running), stop("asks", 1)] });

    core.step(Input::Written { key: key("next"), fence: 1, won: true });

    assert_eq!(load(&core), (0, 0, 0));
}

#[test]
fn a_task_that_leaves_the_queue_before_it_is_known_to_be_in_it_is_not_counted() {
    let mut core = core();
    create(&mut core, "a");
    // It went back into the queue and was called off there; the news of the second come first.
    core.step(Input::Applied { tool: tool(), effects: vec![settled("a", PhaseName::Queued)] });
    core.step(Input::Applied { tool: tool(), effects: vec![Effect::Queued { not_before: Timestamp::ZERO }] });
    core.step(Input::Written { key: key("a"), fence: 1, won: false });

    assert_eq!(load(&core), (0, 0, 0));
}

#[test]
fn a_claim_that_overtakes_the_end_of_the_attempt_before_costs_no_worker() {
    let mut core = core();
    create(&mut core, "a");
    core.step(Input::Claimed { tool: tool(), asked: 0, tasks: vec![(key("a"), 3)] });
    core.step(Input::Written { key: key("a"), fence: 1, won: false });
    core.step(Input::Written { key: key("a"), fence: 3, won: true });

    assert_eq!(load(&core).0, 0);
    assert_eq!(core.attempts(), 0);
}

#[test]
fn a_family_that_is_called_off_leaves_no_count_behind() {
    let mut core = core();
    create(&mut core, "parent");
    create(&mut core, "child");
    assert_eq!(load(&core), (1, 1, 2));

    let effects = vec![settled("parent", PhaseName::Running), stop("parent", 1), settled("child", PhaseName::Queued)];
    core.step(Input::Applied { tool: tool(), effects });
    core.step(Input::Ended { key: key("parent"), fence: 1, outcome: Outcome::Cancelled });

    assert_eq!(load(&core), (0, 0, 0));
}

#[test]
fn a_parked_task_that_is_called_off_takes_nobody_elses_place_in_the_queue() {
    let mut core = core();
    create(&mut core, "running");
    create(&mut core, "queued");
    admit(&mut core);
    core.step(Input::Applied { tool: tool(), effects: vec![settled("parked", PhaseName::Parked)] });

    assert_eq!(load(&core).1, 2);
}

#[test]
fn a_look_that_found_something_to_claim_is_not_followed_by_the_next_at_once() {
    let now = Timestamp::from_ms(1_000);
    assert!(look_at_queue(now, Some(now)).offer);
    assert!(look_at_queue(now, Some(now)).pause_ms > 0);

    let early = look_at_queue(now, Some(now.plus_ms(10)));
    assert_eq!((early.offer, early.pause_ms, early.sleep_ms), (false, 0, 10));
}

#[test]
fn an_alarm_says_when_it_was_set_earlier() {
    let alarm = Alarm::default();
    let at = |ms| Some(Timestamp::from_ms(ms));
    assert!(alarm.set(at(20)));
    assert!(!alarm.set(at(30)));
    assert!(!alarm.set(at(20)));
    assert!(!alarm.set(None));
    assert!(alarm.set(at(10)));
    assert_eq!(alarm.at(), at(10));
    alarm.reset();
    assert_eq!(alarm.at(), None);
}

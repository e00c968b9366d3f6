//! The core by itself: news of commits come in any order, and every worker and every count comes back.

use std::sync::Arc;

use longhaul_engine::core::{Action, Admission, Alarm, CommitId, Core, Input, decide_queue};
use longhaul_engine::{EngineLimits, ToolLimits};
use longhaul_task::{Effect, NodeId, Outcome, Owner, TaskId, TaskKey, Timestamp, ToolRef};

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

fn core() -> Core {
    let mut core = Core::new(node(), EngineLimits::default());
    core.register(tool(), ToolLimits::default().running_max(1));
    core.recount(Vec::new());
    core
}

/// An attempt ended its task.
fn ended(core: &mut Core, id: &str, fence: u64) -> Vec<Action> {
    let mut actions = core.step(Input::Applied { effects: vec![settled(id, false)] });
    actions.extend(core.step(Input::Written { key: key(id), fence }));
    actions
}

fn admit(core: &mut Core) -> Admission {
    core.admit(&owner(), &Arc::from("tool"), 0).unwrap()
}

fn create(core: &mut Core, id: &str) -> Vec<Action> {
    let Admission { claimed, commit, .. } = admit(core);
    core.step(Input::Created { key: key(id), tool: tool(), claimed: claimed.then_some(1), commit })
}

/// The one claim among these.
#[track_caller]
fn claim(actions: &[Action]) -> CommitId {
    match actions {
        [Action::Claim { commit, .. }] => *commit,
        other => panic!("not a claim: {other:?}"),
    }
}

fn claimed(core: &mut Core, commit: CommitId, tasks: &[(&str, u64)]) -> Vec<Action> {
    let tasks = tasks.iter().map(|(id, fence)| (key(id), *fence)).collect();
    core.step(Input::Claimed { tool: tool(), asked: 1, tasks, commit })
}

fn queued(id: &str) -> Effect {
    Effect::Queued { key: key(id), tool: tool(), not_before: Timestamp::ZERO }
}

fn settled(id: &str, was_queued: bool) -> Effect {
    Effect::Settled { key: key(id), tool: tool(), was_queued }
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
    let commit = claim(&ended(&mut core, "first", 1));

    // The claim is committed, and then the cancellation, whose news come first.
    core.step(Input::Applied { effects: vec![settled("second", false), stop("second", 1)] });
    let claimed = claimed(&mut core, commit, &[("second", 1)]);

    assert_eq!(claimed, [Action::Forget { key: key("second"), fence: 1 }]);
    assert_eq!(load(&core), (0, 0, 0));
    assert_eq!(core.attempts(), 0);
}

#[test]
fn an_attempt_that_has_its_answer_gets_the_worker_that_a_claim_did_not_need() {
    let mut core = core();
    create(&mut core, "asks");
    create(&mut core, "queued");
    let commit = claim(&core.step(Input::Idle { key: key("asks"), fence: 1 }));
    // The answer comes while the worker is set aside for the claim, and what was queued is called off.
    assert_eq!(core.step(Input::Busy { key: key("asks"), fence: 1 }), []);
    core.step(Input::Applied { effects: vec![settled("queued", true)] });

    let claimed = claimed(&mut core, commit, &[]);

    assert!(claimed.contains(&Action::Resume { key: key("asks"), fence: 1 }), "{claimed:?}");
}

#[test]
fn a_stopped_attempt_takes_no_worker_when_its_turn_comes() {
    let mut core = core();
    create(&mut core, "asks");
    create(&mut core, "next");
    let commit = claim(&core.step(Input::Idle { key: key("asks"), fence: 1 }));
    claimed(&mut core, commit, &[("next", 1)]);
    core.step(Input::Busy { key: key("asks"), fence: 1 });
    core.step(Input::Applied { effects: vec![settled("asks", false), stop("asks", 1)] });

    ended(&mut core, "next", 1);

    assert_eq!(load(&core), (0, 0, 0));
}

#[test]
fn a_task_that_leaves_the_queue_before_it_is_known_to_be_in_it_is_not_counted() {
    let mut core = core();
    create(&mut core, "a");
    // It went back into the queue and was called off there; the news of the second come first.
    core.step(Input::Applied { effects: vec![settled("a", true)] });
    core.step(Input::Applied { effects: vec![queued("a")] });
    core.step(Input::Written { key: key("a"), fence: 1 });

    assert_eq!(load(&core), (0, 0, 0));
}

#[test]
fn a_claim_that_overtakes_the_end_of_the_attempt_before_costs_no_worker() {
    let mut core = core();
    create(&mut core, "a");
    let commit = admit(&mut core).commit;
    core.step(Input::Claimed { tool: tool(), asked: 0, tasks: vec![(key("a"), 3)], commit });
    core.step(Input::Written { key: key("a"), fence: 1 });
    ended(&mut core, "a", 3);

    assert_eq!(load(&core).0, 0);
    assert_eq!(core.attempts(), 0);
}

#[test]
fn a_winner_is_counted_although_its_task_is_gone_and_another_has_its_name() {
    let mut core = core();
    create(&mut core, "a");
    // It settled, was deleted and was created again before the core heard of the first creation.
    let commit = admit(&mut core).commit;
    core.step(Input::Created { key: key("a"), tool: tool(), claimed: Some(1 << 40), commit });
    assert_eq!(load(&core).2, 2);
    ended(&mut core, "a", 1);
    assert_eq!(load(&core).2, 1);
    assert_eq!(core.attempts(), 1, "the second goes on");
}

#[test]
fn a_family_that_is_called_off_leaves_no_count_behind() {
    let mut core = core();
    create(&mut core, "parent");
    create(&mut core, "child");
    assert_eq!(load(&core), (1, 1, 2));

    let effects = vec![settled("parent", false), stop("parent", 1), settled("child", true)];
    core.step(Input::Applied { effects });
    core.step(Input::Ended { key: key("parent"), fence: 1, outcome: Outcome::Cancelled });

    assert_eq!(load(&core), (0, 0, 0));
}

#[test]
fn a_parked_task_that_is_cancelled_takes_no_other_place_in_the_queue() {
    let mut core = core();
    create(&mut core, "running");
    create(&mut core, "queued");
    admit(&mut core);
    core.step(Input::Applied { effects: vec![settled("parked", false)] });

    assert_eq!(load(&core).1, 2);
}

#[test]
fn stops_that_come_late_are_not_kept_however_long_the_load_lasts() {
    let mut core = Core::new(node(), EngineLimits::default());
    core.register(tool(), ToolLimits::default().running_max(10_000));
    let mut under_way = admit(&mut core).commit;
    for n in 0..1_000 {
        // There is always a commit under way, and every stop is for an attempt that is over.
        let next = admit(&mut core).commit;
        core.step(Input::Applied { effects: vec![stop(&format!("over-{n}"), 1)] });
        let key = key(&format!("new-{n}"));
        core.step(Input::Created { key, tool: tool(), claimed: Some(1), commit: under_way });
        under_way = next;
        assert!(core.early_stops() <= 2, "{} stops are kept", core.early_stops());
    }
}

#[test]
fn a_stop_is_kept_until_the_commit_that_it_overtook_has_come_back() {
    let mut core = Core::new(node(), EngineLimits::default());
    core.register(tool(), ToolLimits::default().running_max(10));
    let (before, own) = (admit(&mut core), admit(&mut core));
    core.step(Input::Applied { effects: vec![settled("own", false), stop("own", 1)] });
    core.step(Input::Created { key: key("before"), tool: tool(), claimed: Some(1), commit: before.commit });
    let later = admit(&mut core);
    core.step(Input::Created { key: key("later"), tool: tool(), claimed: Some(1), commit: later.commit });
    let begun = core.step(Input::Created { key: key("own"), tool: tool(), claimed: Some(1), commit: own.commit });
    assert_eq!(begun, [Action::Forget { key: key("own"), fence: 1 }]);
    assert_eq!(core.early_stops(), 0);
}

#[test]
fn a_task_whose_time_has_not_come_keeps_no_worker_from_a_new_one() {
    let mut core = core();
    // One comes back into the queue for later: the claim that it leads to gets nothing.
    let actions = core.step(Input::Applied { effects: vec![queued("later")] });
    let commit = claim(&actions[..1]);
    claimed(&mut core, commit, &[]);
    assert!(admit(&mut core).claimed, "the worker is free");
    assert_eq!(load(&core), (1, 1, 1));
}

#[test]
fn a_task_whose_time_has_come_goes_before_a_new_one() {
    let mut core = core();
    let actions = core.step(Input::Applied { effects: vec![queued("later")] });
    let commit = claim(&actions[..1]);
    claimed(&mut core, commit, &[]);
    let commit = claim(&core.step(Input::MaybeQueued { tool: tool() }));
    assert!(!admit(&mut core).claimed, "its worker is set aside");
    assert_eq!(claimed(&mut core, commit, &[("later", 3)])[0], Action::Start { key: key("later"), fence: 3 });
}

#[test]
fn a_look_that_found_something_to_claim_is_not_followed_by_the_next_at_once() {
    let now = Timestamp::from_ms(1_000);
    assert!(decide_queue(now, Some(now)).offer);
    assert!(decide_queue(now, Some(now)).pause_ms > 0);

    let early = decide_queue(now, Some(now.plus_ms(10)));
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

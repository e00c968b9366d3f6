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
    core.step(Input::Ended { key: key("parent"), fence: 1, outcome: Outcome::Cancelled, entries: Vec::new() });

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
fn commits_may_end_in_any_order() {
    let mut core = core();
    let [a, b, c] = std::array::from_fn(|_| core.begin_commit());
    core.end_commit(b);
    assert!(!core.knows_up_to(a) && !core.knows_up_to(b));
    core.end_commit(a);
    assert!(core.knows_up_to(b) && !core.knows_up_to(c));
    core.end_commit(b);
    assert_eq!(core.last_commit_if_all_ended(), None);
    core.end_commit(c);
    assert_eq!(core.last_commit_if_all_ended(), Some(c));
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

/// A core with these limits, and an attempt of each of these tasks that waits for an answer.
fn core_with_waiting(limits: ToolLimits, keys: &[TaskKey]) -> Core {
    let mut core = Core::new(node(), EngineLimits::default());
    core.register(tool(), limits);
    core.recount(Vec::new());
    for key in keys {
        let admission = core.admit(&key.owner, &Arc::from("tool"), 0).unwrap();
        assert!(admission.claimed, "{key:?}");
        core.step(Input::Created { key: key.clone(), tool: tool(), claimed: Some(1), commit: admission.commit });
        core.step(Input::Idle { key: key.clone(), fence: 1 });
    }
    core
}

fn key_of(name: &str, id: &str) -> TaskKey {
    TaskKey { owner: Owner::parse(name).unwrap(), id: TaskId::parse(id).unwrap() }
}

/// Queues a task, and returns what the core does then.
fn queue(core: &mut Core, key: TaskKey) -> Vec<Action> {
    let Admission { claimed, commit, .. } = core.admit(&key.owner, &Arc::from("tool"), 0).unwrap();
    assert!(!claimed, "{key:?} was claimed at once");
    core.step(Input::Created { key, tool: tool(), claimed: None, commit })
}

#[test]
fn a_claim_asks_for_no_task_of_an_owner_whose_places_are_taken() {
    let limits = ToolLimits::default().running_max(4).idle_max(4);
    let keys: Vec<_> = (0..6).map(|n| key_of("ada", &n.to_string())).collect();
    let mut core = core_with_waiting(limits, &keys);
    assert_eq!(queue(&mut core, key_of("ada", "more")), [], "there is nothing that could be claimed");
    // A task of another owner is claimed in its own commit, although tasks of the first are queued.
    let admission = core.admit(&key_of("bob", "1").owner, &Arc::from("tool"), 0).unwrap();
    assert!(admission.claimed);

    // Where it has to be queued, the claim leaves out the owner without a place.
    let key = key_of("bob", "2");
    let actions = core.step(Input::Applied {
        effects: vec![Effect::Queued { key: key.clone(), tool: tool(), not_before: Timestamp::ZERO }],
    });
    let Some(Action::Claim { claim, commit }) = actions.first() else { panic!("{actions:?}") };
    assert_eq!((claim.limit, &claim.owner_limits), (1, &[(owner(), 0)].into()));
    core.step(Input::Claimed { tool: tool(), asked: 1, tasks: vec![(key, 1)], commit: *commit });

    // Each end makes a place.
    let actions = core.step(Input::Written { key: keys[0].clone(), fence: 1 });
    assert!(actions.is_empty(), "three quarters are more than what is left: {actions:?}");
    let actions = core.step(Input::Written { key: keys[1].clone(), fence: 1 });
    let [Action::Claim { claim, .. }] = &actions[..] else { panic!("{actions:?}") };
    assert_eq!(claim.limit, 1);
}

#[test]
fn a_task_that_has_to_wait_leaves_no_owner_out_for_ever() {
    let limits = ToolLimits::default().running_max(4).idle_max(0);
    let keys: Vec<_> = (0..3).map(|n| key_of("ada", &n.to_string())).collect();
    let mut core = core_with_waiting(limits, &keys);
    assert_eq!(queue(&mut core, key_of("ada", "more")), []);
    // The claim for another owner's task gets nothing, because that has to wait.
    let effects = vec![Effect::Queued { key: key_of("bob", "1"), tool: tool(), not_before: Timestamp::ZERO }];
    let actions = core.step(Input::Applied { effects });
    let Some(Action::Claim { commit, .. }) = actions.first() else { panic!("{actions:?}") };
    core.step(Input::Claimed { tool: tool(), asked: 1, tasks: Vec::new(), commit: *commit });

    let actions = core.step(Input::Written { key: keys[0].clone(), fence: 1 });
    assert!(matches!(&actions[..], [Action::Claim { .. }]), "the first owner has a place again: {actions:?}");
}

#[test]
fn answers_of_one_owner_keep_workers_neither_from_other_owners_nor_from_the_queue() {
    let limits = ToolLimits::default().running_max(1);
    let keys: Vec<_> = (0..4).map(|n| key_of("ada", &n.to_string())).chain([key_of("bob", "1")]).collect();
    let mut core = core_with_waiting(limits, &keys);
    let busy = key_of("eve", "busy");
    let commit = core.admit(&busy.owner, &Arc::from("tool"), 0).unwrap().commit;
    core.step(Input::Created { key: busy.clone(), tool: tool(), claimed: Some(1), commit });
    assert_eq!(queue(&mut core, key_of("eve", "queued")), []);
    for key in &keys {
        assert_eq!(core.step(Input::Busy { key: key.clone(), fence: 1 }), []);
    }
    let mut order = Vec::new();
    let mut working = busy;
    for _ in 0..3 {
        let actions = core.step(Input::Written { key: working, fence: 1 });
        working = match &actions[..] {
            [Action::Resume { key, .. }] => key.clone(),
            [Action::Claim { commit, .. }] => {
                let key = key_of("eve", "queued");
                core.step(Input::Claimed { tool: tool(), asked: 1, tasks: vec![(key.clone(), 1)], commit: *commit });
                key
            }
            other => panic!("{other:?}"),
        };
        order.push(working.owner.to_string());
    }
    order.sort();
    assert_eq!(order, ["ada", "bob", "eve"]);
}

#[test]
fn handlers_of_one_owner_that_never_end_leave_a_worker_for_another() {
    let mut core = Core::new(node(), EngineLimits::default());
    core.register(tool(), ToolLimits::default().running_max(16));
    core.recount(Vec::new());
    for n in 0..20 {
        let key = key_of("ada", &n.to_string());
        let Admission { claimed, commit, .. } = core.admit(&key.owner, &Arc::from("tool"), 0).unwrap();
        let actions = core.step(Input::Created { key, tool: tool(), claimed: claimed.then_some(1), commit });
        assert_eq!((claimed, actions.len()), (n < 15, usize::from(n < 15)), "the last worker is not for this owner");
    }
    let first = core.admit(&Owner::parse("bob").unwrap(), &Arc::from("tool"), 0).unwrap();
    assert!(first.claimed, "the first task of another owner is");
    let actions = core.step(Input::NotCreated {
        owner: Owner::parse("bob").unwrap(),
        tool: tool(),
        claimed: true,
        commit: first.commit,
    });
    assert_eq!(actions, [], "the queued tasks are of the owner that has workers");

    let actions = core.step(Input::Written { key: key_of("ada", "0"), fence: 1 });
    assert!(matches!(&actions[..], [Action::Claim { claim, .. }] if claim.limit == 1), "{actions:?}");
}

#[test]
fn an_owner_with_workers_resumes_no_attempt_on_the_reserved_one() {
    let keys = [key_of("ada", "1"), key_of("bob", "1")];
    let mut core = core_with_waiting(ToolLimits::default().running_max(16), &keys);
    for n in 0..15 {
        let key = key_of("ada", &format!("busy {n}"));
        let commit = core.admit(&key.owner, &Arc::from("tool"), 0).unwrap().commit;
        core.step(Input::Created { key, tool: tool(), claimed: Some(1), commit });
    }
    assert_eq!(core.step(Input::Busy { key: keys[0].clone(), fence: 1 }), []);
    let resume = |key: &TaskKey| Action::Resume { key: key.clone(), fence: 1 };
    assert_eq!(core.step(Input::Busy { key: keys[1].clone(), fence: 1 }), [resume(&keys[1])]);
    assert_eq!(core.step(Input::Written { key: keys[1].clone(), fence: 1 }), []);
    let actions = core.step(Input::Written { key: key_of("ada", "busy 0"), fence: 1 });
    assert_eq!(actions, [resume(&keys[0])]);
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

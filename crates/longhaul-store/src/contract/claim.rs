//! Claims: each task is claimed by one node, by tool and version, in order, and not too early.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use longhaul_task::{PhaseName, Task, ToolRef};

use super::Subject;
use super::kit::*;
use crate::{ClaimRequest, Store, TaskCount, ToolClaim};

pub async fn each_task_is_claimed_by_one_node_only<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    for n in 0..200 {
        create(&*store, queued(key(n))).await;
    }
    let mut calls = Vec::new();
    for n in 0..8 {
        let store = subject.handle().await;
        calls.push(async move {
            let mut got = Vec::new();
            loop {
                let tasks = claim(&*store, node(n), 3).await;
                if tasks.is_empty() {
                    return got;
                }
                assert!(tasks.iter().all(|task| task.phase.active_attempt().unwrap().node == node(n)));
                got.extend(tasks.into_iter().map(|task| task.key.clone()));
            }
        });
    }
    let got: Vec<_> = all(calls).await.concat();
    assert_eq!(got.len(), 200);
    assert_eq!(got.into_iter().collect::<HashSet<_>>().len(), 200);
}

pub async fn a_claim_matches_tool_and_version<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    let tools = [("a", "1"), ("a", "2"), ("b", "1")].map(|(name, version)| ToolRef::new(name, version));
    for (n, tool) in (0..).zip(&tools) {
        let mut new = queued(key(n));
        new.create.tool = tool.clone();
        create(&*store, new).await;
    }
    for (n, tool) in (0..).zip(tools) {
        let claimed = store.claim(claim_request(node(1), tool.clone(), 10)).await.unwrap();
        let keys: Vec<_> = claimed.iter().map(|claimed| claimed.task.key.clone()).collect();
        assert_eq!(keys, [key(n)], "of {tool}");
    }
}

pub async fn one_claim_returns_tasks_of_several_tools_within_their_limits<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    let tools = ["a", "b", "c"].map(|name| ToolRef::new(name, "1"));
    for n in 0..9 {
        let mut new = queued(key(n));
        new.create.tool = tools[n as usize % 3].clone();
        create(&*store, new).await;
    }
    let requested = [(tools[0].clone(), 2), (tools[1].clone(), 5), (ToolRef::new("d", "1"), 5)];
    let tool_claims = requested.map(|(tool, limit)| ToolClaim::new(tool, limit)).into();
    let claimed = store.claim(ClaimRequest { node: node(1), tools: tool_claims }).await.unwrap();
    let of = |tool: &ToolRef| claimed.iter().filter(|claimed| claimed.task.tool == *tool).count();
    assert_eq!(tools.each_ref().map(of), [2, 3, 0]);
}

pub async fn the_task_that_has_waited_longest_is_claimed_first<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    for (n, ms) in [(1, 30), (2, 10), (3, 20)] {
        subject.set_time(START.plus_ms(ms)).await;
        create(&*store, queued(key(n))).await;
    }
    // Two tasks of the same time may come in either order, but before all later ones.
    create(&*store, queued(key(4))).await;
    subject.set_time(START.plus_ms(30)).await;
    let order: Vec<_> = claim(&*store, node(1), 10).await.into_iter().map(|task| task.key.clone()).collect();
    assert_eq!([&order[0], &order[3]], [&key(2), &key(1)]);
}

pub async fn owners_take_turns_however_many_tasks_one_of_them_has_queued<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    queue_tasks(&*store, "ada", 100).await;
    subject.set_time(START.plus_ms(60_000)).await;
    queue_tasks(&*store, "bob", 2).await;
    queue_tasks(&*store, "eve", 2).await;
    let mut order = Vec::new();
    for _ in 0..6 {
        order.extend(claimed_owners(&claim(&*store, node(1), 1).await));
    }
    // The first claim may begin anywhere.
    for three in order.chunks(3) {
        assert_eq!(three.iter().collect::<HashSet<_>>().len(), 3, "{order:?}");
    }
    assert_eq!(claimed_owners(&claim(&*store, node(1), 3).await), ["ada", "ada", "ada"], "the others have no more");
}

pub async fn a_claim_gives_equal_parts_to_owners_and_the_rest_to_those_that_have_more<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    queue_tasks(&*store, "ada", 100).await;
    queue_tasks(&*store, "bob", 100).await;
    queue_tasks(&*store, "eve", 2).await;
    let mut owners = claimed_owners(&claim(&*store, node(1), 12).await);
    owners.sort();
    assert_eq!(owners, [["ada"; 5].as_slice(), &["bob"; 5], &["eve"; 2]].concat());
}

pub async fn a_claim_goes_on_after_the_owner_that_was_served_last<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    let names: Vec<String> = (0..20).map(|n| format!("owner {n:02}")).collect();
    for name in &names {
        queue_tasks(&*store, name, 3).await;
    }
    // 60 tasks by 7: no claim ends where a round does.
    let mut served: HashMap<String, usize> = HashMap::new();
    for claims in 1..=8 {
        for owner in claimed_owners(&claim(&*store, node(1), 7).await) {
            *served.entry(owner).or_default() += 1;
        }
        let (least, most) = (claims * 7 / 20, (claims * 7_usize).div_ceil(20));
        let even = names.iter().all(|name| (least..=most).contains(served.get(name).unwrap_or(&0)));
        assert!(even, "after {claims} claims: {served:?}");
    }
}

pub async fn a_claim_returns_no_more_tasks_of_an_owner_than_its_limit<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    for name in ["ada", "bob", "eve"] {
        queue_tasks(&*store, name, 10).await;
    }
    let owner_limits = [(owner("ada"), 0), (owner("eve"), 2)].into();
    let tools = vec![ToolClaim { owner_limits, ..ToolClaim::new(tool(), 100) }];
    let claimed = store.claim(ClaimRequest { node: node(1), tools }).await.unwrap();
    let of = |name| claimed.iter().filter(|claimed| claimed.task.key.owner == owner(name)).count();
    assert_eq!(["ada", "bob", "eve"].map(of), [0, 10, 2]);
    assert_eq!(claim(&*store, node(1), 100).await.len(), 18, "the limits hold for one claim");
}

pub async fn tasks_of_one_owner_keep_their_order_while_owners_take_turns<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    for (n, ms) in [(1, 30), (2, 10), (3, 20)] {
        subject.set_time(START.plus_ms(ms)).await;
        create(&*store, queued(key_of("ada", n))).await;
        create(&*store, queued(key_of("bob", n))).await;
    }
    subject.set_time(START.plus_ms(30)).await;
    let mut order = Vec::new();
    for _ in 0..3 {
        order.extend(claim(&*store, node(1), 2).await.into_iter().map(|task| task.key.clone()));
    }
    for name in ["ada", "bob"] {
        let own: Vec<_> = order.iter().filter(|key| key.owner.as_str() == name).cloned().collect();
        assert_eq!(own, [2, 3, 1].map(|n| key_of(name, n)));
    }
}

pub async fn an_owner_whose_tasks_must_wait_gets_its_turn_when_their_time_has_come<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    create(&*store, claimed(key_of("bob", 0))).await;
    apply(&*store, &key_of("bob", 0), release(1, 5_000)).await;
    queue_tasks(&*store, "ada", 10).await;
    assert_eq!(claimed_owners(&claim(&*store, node(1), 2).await), ["ada", "ada"]);
    subject.set_time(START.plus_ms(5_000)).await;
    let mut owners = claimed_owners(&claim(&*store, node(1), 2).await);
    owners.sort();
    assert_eq!(owners, ["ada", "bob"]);
}

pub async fn a_task_is_not_claimed_early_after_the_clock_was_set_back<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    for n in 0..2 {
        create(&*store, claimed(key(n))).await;
        apply(&*store, &key(n), release(1, 5_000)).await;
    }
    subject.set_time(START.plus_ms(5_000)).await;
    assert_eq!(claim(&*store, node(2), 1).await.len(), 1);
    subject.set_time(START).await;
    assert!(claim(&*store, node(2), 1).await.is_empty());
    subject.set_time(START.plus_ms(5_000)).await;
    assert_eq!(claim(&*store, node(2), 1).await.len(), 1);
}

pub async fn a_task_is_not_claimed_before_its_earliest_time<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    create(&*store, claimed(key(1))).await;
    apply(&*store, &key(1), release(1, 5_000)).await;
    subject.set_time(START.plus_ms(4_999)).await;
    assert!(claim(&*store, node(2), 1).await.is_empty());
    subject.set_time(START.plus_ms(5_000)).await;
    assert_eq!(claim(&*store, node(2), 1).await.len(), 1);
}

pub async fn a_claim_returns_no_more_than_its_limit<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    for n in 0..5 {
        create(&*store, queued(key(n))).await;
    }
    assert_eq!(claim(&*store, node(1), 0).await.len(), 0);
    assert_eq!(claim(&*store, node(1), 3).await.len(), 3);
    assert_eq!(claim(&*store, node(1), usize::MAX).await.len(), 2);
}

pub async fn a_claim_returns_the_arguments_and_a_new_fence<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    let before = create(&*store, queued(key(1))).await;
    let claimed = store.claim(claim_request(node(1), tool(), 1)).await.unwrap().remove(0);
    assert_eq!(claimed.input, queued(key(1)).input);
    assert!(claimed.task.fence > before.fence);
    assert_eq!(claimed.task.attempt, 1);
    assert_eq!(read(&*store, &key(1)).await, claimed.task);
}

pub async fn a_claim_is_durable<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    create(&*store, queued(key(1))).await;
    let claimed = claim(&*store, node(1), 1).await.remove(0);
    let (_subject, store) = reopened(subject, store).await;
    assert_eq!(read(&*store, &key(1)).await, claimed);
    assert!(claim(&*store, node(2), 1).await.is_empty());
}

pub async fn a_cancelled_task_is_not_claimed<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    create(&*store, queued(key(1))).await;
    apply(&*store, &key(1), cancel()).await;
    assert!(claim(&*store, node(1), 1).await.is_empty());
    assert_eq!(next_queued(&*store).await, None);
}

pub async fn next_queued_is_the_earliest_time_among_the_given_tools<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    let tools = [1, 2, 3].map(|n| ToolRef::new(format!("tool {n}"), "1"));
    assert_eq!(store.next_queued(&tools).await.unwrap(), None);
    for (n, wait_ms) in [(1, 9_000), (2, 3_000), (3, 6_000)] {
        let mut new = claimed(key(n));
        new.create.tool = tools[n as usize - 1].clone();
        create(&*store, new).await;
        apply(&*store, &key(n), release(1, wait_ms)).await;
    }
    assert_eq!(store.next_queued(&tools).await.unwrap(), Some(START.plus_ms(3_000)));
    assert_eq!(
        store.next_queued(&tools[..1]).await.unwrap(),
        Some(START.plus_ms(9_000)),
        "queued tasks of other tools do not count"
    );
    assert_eq!(store.next_queued(&[]).await.unwrap(), None);
    apply(&*store, &key(2), cancel()).await;
    assert_eq!(store.next_queued(&tools).await.unwrap(), Some(START.plus_ms(6_000)));
}

pub async fn open_tasks_are_counted_by_owner_tool_and_phase<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    for n in 0..3 {
        create(&*store, queued(key_of("ada", n))).await;
    }
    for n in 0..3 {
        create(&*store, claimed(key_of("grace", n))).await;
    }
    apply(&*store, &key_of("grace", 0), ask(1, 0)).await;
    apply(&*store, &key_of("grace", 1), settle(1, "1")).await;
    // A task in the queue with an open question.
    create(&*store, resuming(key_of("grace", 3))).await;
    apply(&*store, &key_of("grace", 3), ask(1, 0)).await;
    apply(&*store, &key_of("grace", 3), release(1, 0)).await;
    let mut count_open_tasks = store.count_open_tasks().await.unwrap();
    count_open_tasks.sort_by_key(|count| (count.owner.clone(), count.phase));
    let count = |name, phase, tasks, queued| TaskCount { owner: owner(name), tool: tool(), phase, tasks, queued };
    let expected = [
        count("ada", PhaseName::Queued, 3, 3),
        count("grace", PhaseName::Running, 1, 0),
        count("grace", PhaseName::Waiting, 2, 1),
    ];
    assert_eq!(count_open_tasks, expected);
}

pub async fn concurrent_creation_and_claims_lose_no_task<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    let creator = subject.handle().await;
    let created = tokio::spawn(async move {
        for n in 0..100 {
            create(&*creator, queued(key(n))).await;
        }
    });
    let mut got = HashSet::new();
    let claimer = Arc::clone(&store);
    wait_for("the last of the tasks", async {
        while got.len() < 100 {
            got.extend(claim(&*claimer, node(1), 7).await.into_iter().map(|task| task.key.clone()));
            tokio::task::yield_now().await;
        }
    })
    .await;
    created.await.unwrap();
    assert_eq!(next_queued(&*store).await, None);
}

/// Creates tasks of an owner for the queue, one after another.
async fn queue_tasks(store: &dyn Store, owner: &str, count: u32) {
    for n in 0..count {
        create(store, queued(key_of(owner, n))).await;
    }
}

fn claimed_owners(tasks: &[Arc<Task>]) -> Vec<String> {
    tasks.iter().map(|task| task.key.owner.to_string()).collect()
}

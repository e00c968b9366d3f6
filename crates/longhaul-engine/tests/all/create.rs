//! A task is taken, or refused with its reason; once taken it runs, and nothing of what it used is lost.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use crate::common::{
    Door, HandlerLog, Lab, ada, answer, bob, call, code, echo, handler, handler_with, must_come, phase, text_of, tool,
    waits_at,
};
use longhaul_engine::{EngineError, EngineLimits, EngineTool, NewCall, ToolLimits};
use longhaul_store::{ListQuery, Store, StoreError};
use longhaul_task::{Outcome, PhaseName, TaskError, TaskId, TransitionError};

#[tokio::test(start_paused = true)]
async fn a_created_task_runs_and_its_result_can_be_read() {
    let lab = Lab::start(vec![tool("echo", echo())]).await;
    let key = lab.create_on("echo", "\"hello\"").await;
    assert_eq!(lab.end(&key).await, text_of("hello"));
    assert_eq!(lab.read(&key).await.attempt, 1);
    lab.counts("echo", (0, 0)).await;
}

#[tokio::test(start_paused = true)]
async fn a_creation_takes_a_free_worker_in_its_own_commit_and_is_queued_without_one() {
    let (lab, door, _log) = Lab::with_one_worker().await;
    let first = lab.try_create("work", "1").await.unwrap();
    let second = lab.try_create("work", "2").await.unwrap();
    assert_eq!((phase(&first), first.revision), (PhaseName::Running, 1));
    assert_eq!((phase(&second), second.revision), (PhaseName::Queued, 1));
    assert_eq!(lab.load("work"), (1, 1));

    door.open_wide();
    lab.end(&first.key).await;
    lab.end(&second.key).await;
    assert_eq!(lab.store.calls("claim"), 1, "only the second had to be claimed");
    lab.counts("work", (0, 0)).await;
}

#[tokio::test(start_paused = true)]
async fn queued_tasks_run_in_the_order_of_their_creation() {
    let (lab, door, log) = Lab::with_one_worker().await;
    let mut keys = Vec::new();
    for n in 0..8 {
        keys.push(lab.create_on("work", &n.to_string()).await);
        // Within one millisecond, no one was first.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    door.open_wide();
    for key in &keys {
        lab.end(key).await;
    }
    let starts: Vec<String> = log.said().into_iter().filter(|word| word.starts_with("start")).collect();
    assert_eq!(starts, (0..8).map(|n| format!("start {n}")).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_more_attempts_run_at_once_than_the_tool_allows() {
    const RUNNING_MAX: usize = 3;
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counting = handler_with((running, Arc::clone(&most)), |(running, most), _ctx, _input| async move {
        most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        for _ in 0..5 {
            tokio::task::yield_now().await;
        }
        running.fetch_sub(1, Ordering::SeqCst);
        answer("done")
    });
    let limits = ToolLimits::default().running_max(RUNNING_MAX);
    let lab = Arc::new(Lab::start(vec![EngineTool { limits, ..tool("work", counting) }]).await);
    let requestors: Vec<_> = (0..8)
        .map(|_| {
            let lab = Arc::clone(&lab);
            tokio::spawn(async move {
                let mut keys = Vec::new();
                for _ in 0..50 {
                    keys.push(lab.create("work").await);
                }
                for key in keys {
                    lab.end(&key).await;
                }
            })
        })
        .collect();
    for requestor in requestors {
        requestor.await.unwrap();
    }
    assert_eq!(most.load(Ordering::SeqCst), RUNNING_MAX);
    lab.counts("work", (0, 0)).await;
}

#[tokio::test(start_paused = true)]
async fn an_unknown_tool_is_refused() {
    let lab = Lab::start(vec![tool("echo", echo())]).await;
    assert_eq!(lab.try_create("ohce", "{}").await.unwrap_err(), EngineError::NoSuchTool("ohce".into()));
}

#[tokio::test(start_paused = true)]
async fn arguments_are_taken_up_to_their_limit() {
    let limits = ToolLimits::default().input_bytes_max(4);
    let lab = Lab::start(vec![EngineTool { limits, ..tool("echo", echo()) }]).await;
    assert!(lab.try_create("echo", "1234").await.is_ok());
    let refused = EngineError::InputTooLarge { bytes: 5, bytes_max: 4 };
    assert_eq!(lab.try_create("echo", "12345").await.unwrap_err(), refused);
}

#[tokio::test(start_paused = true)]
async fn a_result_is_taken_up_to_its_limit() {
    let limits = ToolLimits::default().result_bytes_max(4);
    let lab = Lab::start(vec![EngineTool { limits, ..tool("echo", echo()) }]).await;
    let (fits, too_large) = (lab.create_on("echo", "1234").await, lab.create_on("echo", "12345").await);
    assert!(matches!(lab.end(&fits).await, Outcome::Result { .. }));
    assert_eq!(code(&lab.end(&too_large).await), "RESULT_TOO_LARGE");
}

#[tokio::test(start_paused = true)]
async fn a_queue_is_filled_up_to_its_limit_and_has_room_again_when_a_task_leaves_it() {
    let (door, log) = (Door::shut(), HandlerLog::new());
    let limits = ToolLimits::default().running_max(1).queued_max(2);
    let lab = Lab::start(vec![EngineTool { limits, ..tool("work", waits_at(&door, &log)) }]).await;
    let full = EngineError::QueueFull { queued_max: 2 };
    for n in 0..3 {
        lab.create_on("work", &n.to_string()).await;
    }
    assert_eq!(lab.try_create("work", "{}").await.unwrap_err(), full);

    door.open();
    lab.counts("work", (1, 1)).await;
    let last = lab.create_on("work", "3").await;
    assert_eq!(lab.try_create("work", "{}").await.unwrap_err(), full);

    lab.cancel(&last).await;
    lab.create_on("work", "4").await;
    assert_eq!(lab.try_create("work", "{}").await.unwrap_err(), full);
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_has_filled_its_part_of_the_queue_leaves_room_for_others() {
    let (door, log) = (Door::shut(), HandlerLog::new());
    let limits = ToolLimits::default().running_max(1).queued_max(8);
    let lab = Lab::start(vec![EngineTool { limits, ..tool("work", waits_at(&door, &log)) }]).await;
    let full = EngineError::QueueFull { queued_max: 8 };
    for n in 0..7 {
        lab.create_on("work", &n.to_string()).await;
    }
    assert_eq!(lab.try_create("work", "{}").await.unwrap_err(), full);
    lab.create_for(bob(), "work", "{}").await;
    assert_eq!(lab.try_create("work", "{}").await.unwrap_err(), full);
    door.open_wide();
    lab.counts("work", (0, 0)).await;
}

#[tokio::test(start_paused = true)]
async fn owners_take_turns_in_the_queue() {
    let (lab, door, log) = Lab::with_one_worker().await;
    for n in 0..4 {
        lab.create_on("work", &format!("\"ada {n}\"")).await;
    }
    tokio::time::sleep(Duration::from_millis(1)).await;
    let last = lab.create_for(bob(), "work", "\"bob\"").await;
    door.open();
    door.open();
    log.hears_times("start \"bob\"", 1).await;
    assert!(log.said().iter().filter(|word| word.starts_with("start")).count() <= 3, "{:?}", log.said());
    door.open_wide();
    lab.end(&last).await;
    lab.counts("work", (0, 0)).await;
}

/// An engine where Ada may have two open tasks, of one tool that waits and one that does as it is told.
async fn room_for_two(door: &Door) -> Lab {
    let refuses = handler(|_ctx, _input| async {
        Ok(Outcome::Error(TaskError { code: Some(-32603), message: "no".into(), data: None }))
    });
    let tools = vec![tool("work", waits_at(door, &HandlerLog::new())), tool("refuse", refuses)];
    Lab::with(tools, EngineLimits::default().open_per_owner_max(2)).await
}

/// Holds if Ada can make two tasks and no third, and if so again when these are cancelled.
async fn assert_room_for_two(lab: &Lab) {
    for _ in 0..2 {
        let (one, two) = (lab.create("work").await, lab.create("work").await);
        let refused = lab.try_create("work", "{}").await.unwrap_err();
        assert_eq!(refused, EngineError::TooManyOpen { open_max: 2 });
        lab.cancel(&one).await;
        lab.cancel(&two).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_owner_has_open_tasks_up_to_the_limit_and_others_are_not_concerned() {
    let lab = room_for_two(&Door::shut()).await;
    lab.create("work").await;
    lab.create("work").await;
    assert_eq!(lab.try_create("work", "{}").await.unwrap_err(), EngineError::TooManyOpen { open_max: 2 });
    lab.create_for(bob(), "work", "{}").await;
}

#[tokio::test(start_paused = true)]
async fn a_task_that_was_refused_counts_no_more() {
    let lab = room_for_two(&Door::shut()).await;
    let id = Some(TaskId::parse("mine").unwrap());
    let first = lab.engine.create(NewCall { id: id.clone(), ..call("work") }).await.unwrap().task;
    for _ in 0..5 {
        let again = lab.engine.create(NewCall { id: id.clone(), ..call("work") }).await;
        assert_eq!(again.unwrap_err(), EngineError::Store(StoreError::Refused(TransitionError::DuplicateId)));
    }
    assert_eq!(lab.load("work"), (1, 0));
    lab.cancel(&first.key).await;
    assert_room_for_two(&lab).await;
}

#[tokio::test(start_paused = true)]
async fn a_task_that_ended_well_or_badly_counts_no_more() {
    let door = Door::shut();
    let lab = room_for_two(&door).await;
    for _ in 0..5 {
        let key = lab.create("refuse").await;
        lab.end(&key).await;
        lab.counts("refuse", (0, 0)).await;
    }
    door.open();
    let key = lab.create("work").await;
    lab.end(&key).await;
    lab.counts("work", (0, 0)).await;
    assert_room_for_two(&lab).await;
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_task_counts_no_more_and_is_not_taken_off_twice() {
    let lab = room_for_two(&Door::shut()).await;
    for _ in 0..5 {
        let key = lab.create("work").await;
        lab.cancel(&key).await;
    }
    // The grace period ends them all.
    lab.counts("work", (0, 0)).await;
    assert_room_for_two(&lab).await;
}

#[tokio::test(start_paused = true)]
async fn a_caller_who_goes_away_in_the_middle_of_a_creation_takes_nothing_along() {
    let log = HandlerLog::new();
    for running_max in [0, 1] {
        let mut came_through = false;
        for polls in 0.. {
            let door = Door::shut();
            let limits = ToolLimits::default().running_max(running_max);
            let tools = vec![EngineTool { limits, ..tool("work", waits_at(&door, &log)) }];
            let lab = Lab::with(tools, EngineLimits::default().open_per_owner_max(2)).await;
            came_through = polled_at_most(lab.engine.create(call("work")), polls).await.is_some();
            // What is under way comes to its end, and then the engine counts what the store has.
            let made = must_come("an engine that counts what was made", async {
                loop {
                    let made = everything(&lab).await;
                    let running = made.len().min(running_max);
                    if lab.load("work") == (running, made.len() - running) {
                        return made;
                    }
                    tokio::task::yield_now().await;
                }
            })
            .await;
            assert!(made.len() <= 1);

            door.open_wide();
            for key in &made {
                if running_max == 0 { lab.cancel(key).await } else { assert_eq!(lab.end(key).await, text_of("done")) }
            }
            lab.counts("work", (0, 0)).await;
            lab.create("work").await;
            lab.create("work").await;
            if came_through {
                break;
            }
        }
        assert!(came_through);
    }
}

async fn everything(lab: &Lab) -> Vec<longhaul_task::TaskKey> {
    let page = lab.store.list(&ListQuery { owner: Some(ada()), after: None, limit: 10 }).await.unwrap();
    page.tasks.into_iter().map(|snapshot| snapshot.task.key.clone()).collect()
}

/// Drops a future after so many polls.
async fn polled_at_most<F: Future>(future: F, polls: usize) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut left = polls;
    poll_fn(|cx| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

//! Tools that are added, replaced and removed while the engine runs.

use longhaul_engine::{CallEnd, EngineError, EngineTool, ToolLimits};
use longhaul_task::{Json, Outcome, ToolRef};

use crate::common::{
    Door, HandlerLog, Lab, Machine, answer, call_options, echo, handler, one_worker, text_of, tool, waits_at,
};

fn says(name: &str, text: &'static str) -> EngineTool {
    tool(name, handler(move |_ctx, _input| async move { answer(text) }))
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_is_added_runs_calls_and_tasks() {
    let lab = Lab::start(vec![]).await;
    assert!(matches!(lab.try_create("echo", "1").await, Err(EngineError::NoSuchTool(_))));
    lab.engine.add_tool(tool("echo", echo())).await.unwrap();
    let key = lab.create_on("echo", "\"hello\"").await;
    assert_eq!(lab.end(&key).await, text_of("hello"));
    let called = lab.engine.call(&"echo".into(), Json::from_text("\"hello\""), call_options(&[])).await.unwrap();
    assert!(matches!(called, CallEnd::Done(outcome) if outcome == text_of("hello")));
}

#[tokio::test(start_paused = true)]
async fn what_begins_after_a_replacement_uses_the_new_handler() {
    let (door, log) = (Door::shut(), HandlerLog::new());
    let lab = Lab::start(vec![one_worker("work", waits_at(&door, &log))]).await;
    let (running, queued) = (lab.create("work").await, lab.create("work").await);
    lab.engine.add_tool(one_worker("work", handler(|_ctx, _input| async { answer("new") }))).await.unwrap();
    door.open();
    let old = lab.end(&running).await;
    assert_ne!(old, text_of("new"), "it had begun");
    assert_eq!(lab.end(&queued).await, text_of("new"));
}

#[tokio::test(start_paused = true)]
async fn tasks_of_a_removed_tool_run_to_their_end_and_then_it_is_gone() {
    let (door, log) = (Door::shut(), HandlerLog::new());
    let lab = Lab::start(vec![one_worker("work", waits_at(&door, &log))]).await;
    let keys = [lab.create("work").await, lab.create("work").await];
    assert!(lab.engine.remove_tool("work").await.unwrap());
    assert!(!lab.engine.remove_tool("work").await.unwrap());
    door.open_wide();
    for key in &keys {
        assert!(matches!(lab.end(key).await, Outcome::Result { .. }));
    }
    lab.holds_nothing("work").await;
    lab.engine.remove_tool("another").await.unwrap();
    assert!(matches!(lab.try_create("work", "1").await, Err(EngineError::NoSuchTool(_))));
    assert!(lab.engine.load().is_empty());
}

#[tokio::test(start_paused = true)]
async fn another_version_waits_for_the_tasks_of_the_old_one() {
    let (door, log) = (Door::shut(), HandlerLog::new());
    let lab = Lab::start(vec![one_worker("work", waits_at(&door, &log))]).await;
    let key = lab.create("work").await;
    let second = || EngineTool { tool: ToolRef::new("work", "2"), ..says("work", "second") };
    let refused = lab.engine.add_tool(second()).await.unwrap_err();
    assert_eq!(refused.code(), "TOOL_BUSY", "{refused}");
    door.open();
    lab.end(&key).await;
    lab.holds_nothing("work").await;
    lab.engine.add_tool(second()).await.unwrap();
    let key = lab.create("work").await;
    assert_eq!(lab.end(&key).await, text_of("second"));
}

#[tokio::test(start_paused = true)]
async fn a_busy_tool_keeps_its_workers_when_it_is_replaced() {
    let (door, log) = (Door::shut(), HandlerLog::new());
    let lab = Lab::start(vec![one_worker("work", waits_at(&door, &log))]).await;
    let keys = [lab.create("work").await, lab.create("work").await];
    let limits = ToolLimits::default().running_max(8);
    lab.engine.add_tool(EngineTool { limits, ..tool("work", waits_at(&door, &log)) }).await.unwrap();
    lab.counts("work", (1, 1)).await;
    door.open_wide();
    for key in &keys {
        lab.end(key).await;
    }
    lab.counts("work", (0, 0)).await;
}

#[test]
fn queued_tasks_of_a_tool_that_comes_back_are_run() {
    let mut machine = Machine::new();
    let (door, log) = (Door::shut(), HandlerLog::new());
    let queued = machine.run_engine(vec![one_worker("work", waits_at(&door, &log))], async |lab| {
        lab.create("work").await;
        lab.create("work").await
    });
    machine.run_engine(vec![], async |lab| {
        lab.engine.add_tool(says("work", "at last")).await.unwrap();
        assert_eq!(lab.end(&queued).await, text_of("at last"));
    });
}

//! Limits of tasks and tools.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use longhaul::{Ctx, EngineLimits, NoArgs, Retention, Server, TaskSupport, Tool, ToolLimits};
use longhaul_testkit::{FailureReport, TestServer, in_time};
use serde_json::{Value, json};
use tokio::sync::{Notify, Semaphore, mpsc};

use super::kit::{SizeArguments, answer, asking, gated, is_refused};

#[tokio::test]
async fn a_full_queue_refuses_and_takes_again_when_there_is_room() {
    let gate = Arc::new(Semaphore::new(0));
    let limits = ToolLimits::default().running_max(1).queued_max(2);
    let server = TestServer::start(Server::new("test").tool(gated("work", &gate).limits(limits))).await;
    let mut client = server.client().await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(client.create("work", json!({})).await.unwrap());
    }
    let error = client.call_error("work", json!({})).await;
    is_refused(&error, -32603, "QUEUE_FULL");
    assert!(error["message"].as_str().unwrap().contains("2 tasks"), "{error}");

    // Cancelling a queued task makes room, and so does the end of a running one.
    client.cancel(&ids[2]).await.unwrap();
    ids.push(client.create("work", json!({})).await.unwrap());
    is_refused(&client.call_error("work", json!({})).await, -32603, "QUEUE_FULL");
    gate.add_permits(1);
    client.settled(&ids[0]).await;
    client.until_metric("longhaul_tasks_queued", 1.0).await;
    ids.push(client.create("work", json!({})).await.unwrap());
    gate.add_permits(3);
    for id in &ids {
        client.settled(id).await;
    }
}

#[tokio::test]
async fn an_owner_has_so_many_open_tasks_and_another_owner_as_many_again() {
    let gate = Arc::new(Semaphore::new(0));
    let limits = EngineLimits::default().open_per_owner_max(2);
    let tools = [gated("work", &gate), asking("ask")];
    let server = TestServer::start(Server::new("test").tools(tools).engine_limits(limits)).await;
    let (mut ada, mut bob) = (server.client().await.with_token("ada"), server.client().await.with_token("bob"));
    let waits = ada.create("ask", json!({})).await.unwrap();
    ada.asked(&waits, 1).await;
    let works = ada.create("work", json!({})).await.unwrap();
    is_refused(&ada.call_error("work", json!({})).await, -32603, "TOO_MANY_OPEN");
    is_refused(&ada.call_error("ask", json!({})).await, -32603, "TOO_MANY_OPEN");
    let others = bob.create("work", json!({})).await.unwrap();
    ada.cancel(&waits).await.unwrap();
    let next = ada.create("work", json!({})).await.unwrap();
    is_refused(&ada.call_error("work", json!({})).await, -32603, "TOO_MANY_OPEN");
    gate.add_permits(3);
    ada.settled(&works).await;
    ada.settled(&next).await;
    bob.settled(&others).await;
}

#[tokio::test]
async fn arguments_and_results_are_taken_up_to_their_last_byte() {
    let limits = ToolLimits::default().input_bytes_max(40).result_bytes_max(400);
    let make = |name: &str, support| {
        Tool::new(name, |_: Ctx, SizeArguments { bytes }: SizeArguments| async move { Ok("x".repeat(bytes)) })
            .task_support(support)
            .limits(limits.clone())
    };
    let tools = [make("task", TaskSupport::Required), make("call", TaskSupport::Forbidden)];
    let server = TestServer::start(Server::new("test").tools(tools)).await;
    let mut client = server.client().await;

    let padded = |bytes: usize| {
        let empty = json!({ "pad": "" }).to_string().len();
        json!({ "pad": "x".repeat(bytes - empty) })
    };
    for tool in ["task", "call"] {
        client.call(tool, padded(40)).await.unwrap();
        let error = client.call_error(tool, padded(41)).await;
        is_refused(&error, -32602, "INPUT_TOO_LARGE");
        assert!(error["message"].as_str().unwrap().contains("at most 40"), "{error}");
    }

    // The result is longer than its text. The error names the actual length, which gives the exact limit.
    let task = |bytes: usize| json!({ "bytes": bytes });
    let too_large = client.create("task", task(400)).await.unwrap();
    let failed = client.settled(&too_large).await;
    assert_eq!(failed.status(), "failed");
    is_refused(&failed.value["error"], -32603, "RESULT_TOO_LARGE");
    let said = failed.value["error"]["message"].as_str().unwrap();
    let around: usize = said.split(' ').find_map(|word| word.parse::<usize>().ok()).unwrap() - 400;
    for (bytes, status) in [(400 - around, "completed"), (401 - around, "failed")] {
        let id = client.create("task", task(bytes)).await.unwrap();
        assert_eq!(client.settled(&id).await.status(), status, "{bytes} bytes and {around} around them");
    }
    client.call("call", task(400 - around)).await.unwrap();
    is_refused(&client.call_error("call", task(401 - around)).await, -32603, "RESULT_TOO_LARGE");
}

/// Notifies the test when it is dropped.
struct Dropped(mpsc::UnboundedSender<()>);

impl Drop for Dropped {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

/// A tool that ignores its cancellation, and a channel that reports when its handler was dropped.
fn stubborn(name: &str) -> (Tool, mpsc::UnboundedReceiver<()>) {
    let (sender, dropped) = mpsc::unbounded_channel();
    let tool = Tool::new(name, move |_: Ctx, _: NoArgs| {
        let alive = Dropped(sender.clone());
        async move {
            let _alive = alive;
            std::future::pending::<()>().await;
            Ok("never")
        }
    });
    (tool, dropped)
}

#[tokio::test]
async fn a_handler_that_runs_too_long_is_ended_and_its_worker_freed() {
    let (tool, mut dropped) = stubborn("run");
    let limits = ToolLimits::default().running_max(1).grace_ms(1);
    let tool = tool.running_time_max(Duration::from_millis(30)).limits(limits);
    let server = TestServer::start(Server::new("test").tool(tool)).await;
    let mut client = server.client().await;
    let ids = [client.create("run", json!({})).await.unwrap(), client.create("run", json!({})).await.unwrap()];
    for id in &ids {
        let failed = client.settled(id).await;
        assert_eq!(failed.status(), "failed");
        is_refused(&failed.value["error"], -32603, "RUNNING_TIME");
        in_time("the handler to be dropped", dropped.recv()).await.unwrap();
    }
    client.until_metric("longhaul_tasks_running", 0.0).await;
}

#[tokio::test]
async fn a_task_that_lives_too_long_fails_even_while_it_waits_or_is_queued() {
    let gate = Arc::new(Semaphore::new(0));
    let life = Duration::from_millis(30);
    let queued = ToolLimits::default().running_max(1).grace_ms(1);
    let blocks = gated("queue", &gate).life_time_max(life).limits(queued);
    let server = TestServer::start(Server::new("test").tools([asking("ask").life_time_max(life), blocks])).await;
    let mut client = server.client().await;
    for tool in ["ask", "queue", "queue"] {
        let id = client.create(tool, json!({})).await.unwrap();
        let failed = client.settled(&id).await;
        assert_eq!(failed.status(), "failed", "{tool}");
        is_refused(&failed.value["error"], -32603, "LIFE_TIME");
    }
}

#[tokio::test]
async fn a_cancelled_handler_is_dropped_after_its_grace() {
    let (tool, mut dropped) = stubborn("run");
    let limits = ToolLimits::default().running_max(1).grace_ms(10);
    let server = TestServer::start(Server::new("test").tool(tool.limits(limits))).await;
    let mut client = server.client().await;
    let id = client.create("run", json!({})).await.unwrap();
    let next = client.create("run", json!({})).await.unwrap();
    client.until_metric("longhaul_tasks_queued", 1.0).await;
    client.cancel(&id).await.unwrap();
    assert_eq!(client.get(&id).await.unwrap().status(), "cancelled", "at once, whatever the handler does");
    in_time("the handler to be dropped", dropped.recv()).await.unwrap();
    client.until_metric("longhaul_tasks_queued", 0.0).await;
    client.cancel(&next).await.unwrap();
    in_time("the next one to be dropped", dropped.recv()).await.unwrap();
    client.until_metric("longhaul_tasks_running", 0.0).await;
}

#[tokio::test]
async fn attempts_that_wait_give_their_worker_back_up_to_the_limit() {
    let limits = ToolLimits::default().running_max(1).idle_max(1);
    let server = TestServer::start(Server::new("test").tool(asking("ask").limits(limits))).await;
    let mut client = server.client().await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(client.create("ask", json!({})).await.unwrap());
    }
    // The first task returns its worker, which the second takes. The second must keep it, so the third is not started.
    client.asked(&ids[0], 1).await;
    client.asked(&ids[1], 1).await;
    for _ in 0..100 {
        assert_eq!(client.get(&ids[2]).await.unwrap().status(), "working");
        assert_eq!(client.metric("longhaul_tasks_queued").await.to_bits(), 1.0_f64.to_bits());
    }
    for id in &ids {
        answer(&mut client, id).await;
    }
    for id in &ids {
        assert_eq!(client.settled(id).await.result_text(), "went on");
    }
}

#[tokio::test]
async fn ordinary_calls_past_the_limit_wait_their_turn() {
    let (gate, started) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
    let (entered, count) = (Arc::new(Notify::new()), Arc::clone(&started));
    let (pass, enter) = (Arc::clone(&gate), Arc::clone(&entered));
    let tool = Tool::new("call", move |_: Ctx, _: NoArgs| {
        let (pass, enter, count) = (Arc::clone(&pass), Arc::clone(&enter), Arc::clone(&count));
        async move {
            count.fetch_add(1, Ordering::SeqCst);
            enter.notify_one();
            pass.acquire().await?.forget();
            Ok("done")
        }
    })
    .task_support(TaskSupport::Forbidden)
    .limits(ToolLimits::default().calls_max(1));
    let server = TestServer::start(Server::new("test").tool(tool)).await;
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..2 {
        let mut client = server.client().await;
        calls.spawn(async move { client.call("call", json!({})).await.unwrap() });
    }
    in_time("a call", entered.notified()).await;
    let mut client = server.client().await;
    for _ in 0..100 {
        client.request("tools/list", json!({})).await.unwrap();
        assert_eq!(started.load(Ordering::SeqCst), 1, "the second one has begun");
    }
    gate.add_permits(2);
    while let Some(done) = in_time("a call to end", calls.join_next()).await {
        assert_eq!(done.unwrap()["content"][0]["text"], "done");
    }
}

#[tokio::test]
async fn a_task_is_gone_after_its_retention() {
    let quick = |_: Ctx, _: NoArgs| async move { Ok("done") };
    let tools = [
        Tool::new("end", quick).retention(Retention::FromEnd(20)),
        Tool::new("creation", quick).retention(Retention::FromCreation(20)),
        Tool::new("kept", quick).retention(Retention::Unlimited),
    ];
    let server = TestServer::start(Server::new("test").tools(tools)).await;
    let mut client = server.client().await.with_token("ada");
    let kept = client.create("kept", json!({})).await.unwrap();
    for tool in ["end", "creation"] {
        let id = client.create(tool, json!({})).await.unwrap();
        let body = in_time("the end of a retention", async {
            loop {
                if let Err(FailureReport::Refused { status: 200, body }) = client.get(&id).await {
                    return body;
                }
            }
        })
        .await;
        let error = &serde_json::from_str::<Value>(&body).unwrap()["error"];
        assert_eq!(error["code"], -32602, "{error}");
        assert_eq!(*error, client.error("tasks/get", json!({ "taskId": "never was" })).await);
        assert_eq!(client.error("tasks/cancel", json!({ "taskId": id })).await["code"], -32602);
    }
    let kept = client.settled(&kept).await;
    assert_eq!(kept.value["ttlMs"], Value::Null);
}

//! Limits of tasks and tools.

use std::time::Duration;

use longhaul::{Ctx, EngineLimits, NoArgs, Server, TaskSupport, Tool, ToolLimits};
use longhaul_testkit::TestServer;
use longhaul_testkit::tools::Door;
use serde_json::json;

use super::kit::{SizeArguments, asking, is_refused, waiting};

#[tokio::test]
async fn a_task_too_many_is_refused_for_now_with_the_code_of_that_limit() {
    let door = Door::closed();
    let queue = ToolLimits::default().running_max(1).queued_max(2);
    let tools = [waiting("work", &door).limits(queue), waiting("other", &door)];
    let limits = EngineLimits::default().open_per_owner_max(4);
    let server = TestServer::start(Server::new("test").tools(tools).engine_limits(limits)).await;
    let (mut ada, mut bob) = (server.client().await.with_token("ada"), server.client().await.with_token("bob"));
    for _ in 0..3 {
        ada.create("work", json!({})).await.unwrap();
    }
    let error = ada.call_error("work", json!({})).await;
    is_refused(&error, -32603, "QUEUE_FULL");
    assert!(error["message"].as_str().unwrap().contains("2 tasks"), "{error}");
    let last = ada.create("other", json!({})).await.unwrap();
    is_refused(&ada.call_error("other", json!({})).await, -32603, "TOO_MANY_OPEN");
    bob.create("other", json!({})).await.unwrap();
    ada.cancel(&last).await.unwrap();
    ada.create("other", json!({})).await.unwrap();
}

#[tokio::test]
async fn calls_of_one_owner_are_refused_past_its_part_and_leave_room_for_others() {
    let (started, door) = (Door::closed(), Door::closed());
    let inside = door.clone();
    let tool = started.tool("work", move |started, _: Ctx, _: NoArgs| {
        let door = inside.clone();
        async move {
            started.open(1);
            door.pass().await;
            Ok("let through")
        }
    });
    let limits = ToolLimits::default().calls_max(4);
    let tool = tool.task_support(TaskSupport::Forbidden).limits(limits);
    let server = TestServer::start(Server::new("test").tools([tool])).await;
    let mut calls = Vec::new();
    for token in ["ada", "ada", "ada", "bob"] {
        let mut client = server.client().await.with_token(token);
        calls.push(tokio::spawn(async move { client.call("work", json!({})).await }));
        started.pass().await;
        if calls.len() == 3 {
            let error = server.client().await.with_token("ada").call_error("work", json!({})).await;
            is_refused(&error, -32603, "TOO_MANY_CALLS");
        }
    }
    door.open(4);
    for call in calls {
        call.await.unwrap().unwrap();
    }
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

    // How long the result is around its text is for the server to know: the edge is where it says so.
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

#[tokio::test]
async fn a_task_past_its_time_fails_with_the_code_of_that_limit() {
    let door = Door::closed();
    let time = Duration::from_millis(30);
    let one_worker = ToolLimits::default().running_max(1).grace_ms(1);
    let tools = [
        waiting("run", &door).running_time_max(time),
        asking("ask").life_time_max(time),
        waiting("queue", &door).life_time_max(time).limits(one_worker),
    ];
    let server = TestServer::start(Server::new("test").tools(tools)).await;
    let mut client = server.client().await;
    for (tool, code) in [("run", "RUNNING_TIME"), ("ask", "LIFE_TIME"), ("queue", "LIFE_TIME"), ("queue", "LIFE_TIME")]
    {
        let id = client.create(tool, json!({})).await.unwrap();
        let failed = client.settled(&id).await;
        assert_eq!(failed.status(), "failed", "{tool}");
        is_refused(&failed.value["error"], -32603, code);
    }
}

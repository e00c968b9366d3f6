//! The stateful era. This client knows no tasks of 2025-11-25, so it is a client without tasks that a tool may still ask
//! live; and whoever sends their requests by hand gets them.

#![allow(deprecated, reason = "this era has what the next one deprecates")]

use longhaul_interop_rmcp::{Answering, Over, TRANSPORTS, connect, text};
use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientRequest, CustomRequest, LoggingLevel, ServerResult,
    SetLevelRequestParams,
};
use rmcp::{ClientLifecycleMode, ServiceError};
use serde_json::{Value, json};

const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

#[tokio::test]
async fn a_session_is_negotiated() -> anyhow::Result<()> {
    for over in TRANSPORTS {
        let client = session(over, Answering::default()).await?;
        let server = client.peer_info().expect("the server introduced itself");
        assert_eq!(server.protocol_version.to_string(), "2025-11-25");
        assert!(server.capabilities.tools.is_some());
        assert!(client.list_all_tools().await?.iter().any(|tool| tool.name == "greet"));
    }
    Ok(())
}

#[tokio::test]
async fn an_ordinary_call_answers_and_so_does_one_that_a_task_could_be() -> anyhow::Result<()> {
    for over in TRANSPORTS {
        let client = session(over, Answering::default()).await?;
        let greeting = client.call_tool(call("greet", &json!({"name": "Ada"}))).await?;
        assert_eq!(text(&greeting), "Hello, Ada!");
        let computed = client.call_tool(call("slow_compute", &json!({"seconds": 0.1, "label": "ordinary"}))).await?;
        assert!(text(&computed).contains("ordinary"));
    }
    Ok(())
}

#[tokio::test]
async fn progress_and_log_lines_come_before_the_result() -> anyhow::Result<()> {
    for over in TRANSPORTS {
        let client = session(over, Answering::default()).await?;
        // It puts a progress token of its own on every call.
        client.call_tool(call("test_tool_with_progress", &json!({}))).await?;
        client.set_level(SetLevelRequestParams::new(LoggingLevel::Info)).await?;
        client.call_tool(call("test_tool_with_logging", &json!({}))).await?;
        // Notifications have tasks of their own in this client; an answered request says nothing about them.
        let heard = client.service();
        until(|| heard.progress.lock().unwrap().contains(&100.0) && heard.lines.lock().unwrap().len() >= 3).await;
    }
    Ok(())
}

#[tokio::test]
async fn an_ordinary_call_asks_the_user_and_the_model() -> anyhow::Result<()> {
    for over in TRANSPORTS {
        let content = json!({"username": "ada", "email": "ada@example.org"});
        let client = session(over, able_to_answer(content)).await?;
        let asked = client.call_tool(call("test_elicitation", &json!({"message": "Who is it?"}))).await?;
        assert!(text(&asked).contains("ada@example.org"), "{}", text(&asked));
        let sampled = client.call_tool(call("test_sampling", &json!({"prompt": "a riddle"}))).await?;
        assert!(text(&sampled).contains("heard: a riddle"), "{}", text(&sampled));
    }
    Ok(())
}

#[tokio::test]
async fn a_tool_that_needs_a_task_is_refused_without_one() -> anyhow::Result<()> {
    for over in TRANSPORTS {
        let client = session(over, Answering::default()).await?;
        let refused = client.call_tool(call("failing_job", &json!({}))).await;
        let Err(ServiceError::McpError(error)) = refused else { panic!("{refused:?}") };
        assert_eq!(error.code.0, -32601);
    }
    Ok(())
}

#[tokio::test]
async fn a_task_by_hand_asks_its_question_and_gives_its_result() -> anyhow::Result<()> {
    for over in TRANSPORTS {
        let client = session(over, able_to_answer(json!({"confirm": true}))).await?;
        let params = json!({"name": "confirm_delete", "arguments": {"filename": "a.txt"}, "task": {"ttl": 60_000}});
        let created = by_hand(&client, "tools/call", params).await?;
        assert_eq!(created["task"]["status"], "working", "{created}");
        let id = &created["task"]["taskId"];
        let result = by_hand(&client, "tasks/result", json!({"taskId": id})).await?;
        assert!(result["content"][0]["text"].as_str().unwrap().contains("deleted"), "{result}");
        assert_eq!(&result["_meta"][RELATED_TASK]["taskId"], id);
        assert_eq!(*client.service().asked.lock().unwrap(), ["Delete a.txt?"]);
        let task = by_hand(&client, "tasks/get", json!({"taskId": id})).await?;
        assert_eq!(task["status"], "completed", "{task}");
    }
    Ok(())
}

#[tokio::test]
async fn a_task_by_hand_is_listed_and_cancelled_for_good() -> anyhow::Result<()> {
    for over in TRANSPORTS {
        let client = session(over, Answering::default()).await?;
        let params = json!({"name": "slow_compute", "arguments": {"seconds": 3600}, "task": {}});
        let id = by_hand(&client, "tools/call", params).await?["task"]["taskId"].clone();
        let list = by_hand(&client, "tasks/list", json!({})).await?;
        assert!(list["tasks"].as_array().unwrap().iter().any(|task| task["taskId"] == id), "{list}");
        let cancelled = by_hand(&client, "tasks/cancel", json!({"taskId": id})).await?;
        assert_eq!(cancelled["status"], "cancelled", "{cancelled}");
        let again = by_hand(&client, "tasks/cancel", json!({"taskId": id})).await;
        assert_eq!(refusal(again).code.0, -32602);
        let unknown = by_hand(&client, "tasks/get", json!({"taskId": "no-such-task"})).await;
        assert_eq!(refusal(unknown).code.0, -32602);
    }
    Ok(())
}

#[tokio::test]
async fn a_failed_task_by_hand_has_its_words_and_its_error() -> anyhow::Result<()> {
    for over in TRANSPORTS {
        let client = session(over, Answering::default()).await?;
        let mut ids = Vec::new();
        for tool in ["failing_job", "protocol_error_job"] {
            let created = by_hand(&client, "tools/call", json!({"name": tool, "arguments": {}, "task": {}})).await?;
            ids.push(created["task"]["taskId"].clone());
        }
        let result = by_hand(&client, "tasks/result", json!({"taskId": ids[0]})).await?;
        assert_eq!(result["isError"], true, "{result}");
        let error = refusal(by_hand(&client, "tasks/result", json!({"taskId": ids[1]})).await);
        assert!(error.code.0 == -32603 && error.message.contains("as it should"), "{error:?}");
        for id in ids {
            let task = by_hand(&client, "tasks/get", json!({"taskId": id})).await?;
            assert_eq!(task["status"], "failed", "{task}");
            assert!(task["statusMessage"].as_str().unwrap().contains("as it should"), "{task}");
        }
    }
    Ok(())
}

/// The error that a request must have ended in.
fn refusal(answer: anyhow::Result<Value>) -> rmcp::ErrorData {
    match answer.expect_err("a refusal").downcast() {
        Ok(ServiceError::McpError(error)) => error,
        other => panic!("{other:?}"),
    }
}

async fn session(over: Over, handler: Answering) -> anyhow::Result<impl std::ops::Deref<Target = Client>> {
    connect(over, ClientLifecycleMode::Initialize, handler).await
}

type Client = rmcp::service::RunningService<rmcp::RoleClient, Answering>;

fn able_to_answer(content: Value) -> Answering {
    let declared = json!({"elicitation": {}, "sampling": {}});
    let capabilities: ClientCapabilities = serde_json::from_value(declared).expect("these are capabilities");
    Answering { capabilities, content, ..Answering::default() }
}

fn call(name: &'static str, arguments: &Value) -> CallToolRequestParams {
    CallToolRequestParams::new(name).with_arguments(arguments.as_object().cloned().unwrap_or_default())
}

/// A request that this client has no word for.
async fn by_hand(client: &Client, method: &str, params: Value) -> anyhow::Result<Value> {
    let request = ClientRequest::CustomRequest(CustomRequest::new(method, Some(params)));
    Ok(match client.send_request(request).await? {
        ServerResult::CustomResult(result) => result.0,
        other => serde_json::to_value(other)?,
    })
}

/// Waits until it is so; the runner's patience ends it if that never happens.
async fn until(so: impl Fn() -> bool) {
    let patience = tokio::time::timeout(std::time::Duration::from_secs(60), async {
        while !so() {
            tokio::task::yield_now().await;
        }
    });
    patience.await.expect("it never happened");
}

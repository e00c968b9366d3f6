//! The stateful era. This client does not support the tasks of 2025-11-25, so the tests use ordinary calls, which can
//! ask questions, and send task requests as custom requests.

#![allow(deprecated, reason = "rmcp deprecates parts of 2025-11-25 that are used here")]

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
async fn ordinary_calls_work_for_tools_without_and_with_optional_tasks() -> anyhow::Result<()> {
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
        // This client adds a progress token to every call.
        client.call_tool(call("test_tool_with_progress", &json!({}))).await?;
        client.set_level(SetLevelRequestParams::new(LoggingLevel::Info)).await?;
        client.call_tool(call("test_tool_with_logging", &json!({}))).await?;
        // This client handles notifications in separate tasks, possibly after the response.
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
async fn a_task_by_custom_requests_asks_its_question_and_has_a_result() -> anyhow::Result<()> {
    for over in TRANSPORTS {
        let client = session(over, able_to_answer(json!({"confirm": true}))).await?;
        let params = json!({"name": "confirm_delete", "arguments": {"filename": "a.txt"}, "task": {"ttl": 60_000}});
        let created = custom_request(&client, "tools/call", params).await?;
        assert_eq!(created["task"]["status"], "working", "{created}");
        let id = &created["task"]["taskId"];
        let result = custom_request(&client, "tasks/result", json!({"taskId": id})).await?;
        assert!(result["content"][0]["text"].as_str().unwrap().contains("deleted"), "{result}");
        assert_eq!(&result["_meta"][RELATED_TASK]["taskId"], id);
        assert_eq!(*client.service().asked.lock().unwrap(), ["Delete a.txt?"]);
        let task = custom_request(&client, "tasks/get", json!({"taskId": id})).await?;
        assert_eq!(task["status"], "completed", "{task}");
    }
    Ok(())
}

#[tokio::test]
async fn a_task_by_custom_requests_is_listed_and_cancelled() -> anyhow::Result<()> {
    for over in TRANSPORTS {
        let client = session(over, Answering::default()).await?;
        let params = json!({"name": "slow_compute", "arguments": {"seconds": 3600}, "task": {}});
        let id = custom_request(&client, "tools/call", params).await?["task"]["taskId"].clone();
        let list = custom_request(&client, "tasks/list", json!({})).await?;
        assert!(list["tasks"].as_array().unwrap().iter().any(|task| task["taskId"] == id), "{list}");
        let cancelled = custom_request(&client, "tasks/cancel", json!({"taskId": id})).await?;
        assert_eq!(cancelled["status"], "cancelled", "{cancelled}");
        let again = custom_request(&client, "tasks/cancel", json!({"taskId": id})).await;
        assert_eq!(refusal(again).code.0, -32602);
        let unknown = custom_request(&client, "tasks/get", json!({"taskId": "no-such-task"})).await;
        assert_eq!(refusal(unknown).code.0, -32602);
    }
    Ok(())
}

#[tokio::test]
async fn a_failed_task_by_custom_requests_has_the_tools_text_and_error() -> anyhow::Result<()> {
    for over in TRANSPORTS {
        let client = session(over, Answering::default()).await?;
        let mut ids = Vec::new();
        for tool in ["failing_job", "protocol_error_job"] {
            let created =
                custom_request(&client, "tools/call", json!({"name": tool, "arguments": {}, "task": {}})).await?;
            ids.push(created["task"]["taskId"].clone());
        }
        let result = custom_request(&client, "tasks/result", json!({"taskId": ids[0]})).await?;
        assert_eq!(result["isError"], true, "{result}");
        let error = refusal(custom_request(&client, "tasks/result", json!({"taskId": ids[1]})).await);
        assert!(error.code.0 == -32603 && error.message.contains("as it should"), "{error:?}");
        for id in ids {
            let task = custom_request(&client, "tasks/get", json!({"taskId": id})).await?;
            assert_eq!(task["status"], "failed", "{task}");
            assert!(task["statusMessage"].as_str().unwrap().contains("as it should"), "{task}");
        }
    }
    Ok(())
}

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

/// Sends a request for which this client has no type.
async fn custom_request(client: &Client, method: &str, params: Value) -> anyhow::Result<Value> {
    let request = ClientRequest::CustomRequest(CustomRequest::new(method, Some(params)));
    Ok(match client.send_request(request).await? {
        ServerResult::CustomResult(result) => result.0,
        other => serde_json::to_value(other)?,
    })
}

async fn until(condition: impl Fn() -> bool) {
    let patience = tokio::time::timeout(std::time::Duration::from_secs(60), async {
        while !condition() {
            tokio::task::yield_now().await;
        }
    });
    patience.await.expect("it never happened");
}

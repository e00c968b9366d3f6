//! The stateless era, in which this client supports tasks.

use std::time::Duration;

use longhaul_interop_rmcp::{Answering, Over, TRANSPORTS, connect, text};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, ClientCapabilities, DetailedTask, GetTaskParams,
    ProtocolVersion, TASKS_EXTENSION_ID, TaskPayload, TaskStatus, UpdateTaskParams,
};
use rmcp::{ClientLifecycleMode, ServiceError};
use serde_json::{Value, json};

type Client = rmcp::service::RunningService<rmcp::RoleClient, Answering>;

#[tokio::test]
async fn a_tool_that_has_no_tasks_answers_at_once() -> anyhow::Result<()> {
    for over in TRANSPORTS {
        let client = session(over).await?;
        assert_eq!(text(&client.call_tool(call("greet", &json!({"name": "Ada"}))).await?), "Hello, Ada!");
    }
    Ok(())
}

#[tokio::test]
async fn a_task_runs_to_completion() -> anyhow::Result<()> {
    for over in TRANSPORTS {
        let client = session(over).await?;
        let id = start(&client, "slow_compute", &json!({"seconds": 0.2, "label": "whole"})).await?;
        let TaskPayload::Completed { result } = settled(&client, &id).await?.payload else { panic!("not completed") };
        assert!(result["content"][0]["text"].as_str().unwrap().contains("whole"));
    }
    Ok(())
}

#[tokio::test]
async fn a_question_is_answered() -> anyhow::Result<()> {
    for over in TRANSPORTS {
        let client = session(over).await?;
        let id = start(&client, "confirm_delete", &json!({"filename": "a.txt"})).await?;
        let asking = follow(&client, &id, |task| task.status() == TaskStatus::InputRequired).await?;
        let TaskPayload::InputRequired { input_requests } = asking.payload else { panic!("nothing is asked") };
        let key = input_requests.keys().next().expect("one question");
        let answers =
            json!({"taskId": id, "inputResponses": {key: {"action": "accept", "content": {"confirm": true}}}});
        acknowledged(client.update_task(serde_json::from_value::<UpdateTaskParams>(answers)?).await)?;
        let TaskPayload::Completed { result } = settled(&client, &id).await?.payload else { panic!("not completed") };
        assert!(result["content"][0]["text"].as_str().unwrap().contains("deleted"));
    }
    Ok(())
}

#[tokio::test]
async fn a_task_is_cancelled() -> anyhow::Result<()> {
    for over in TRANSPORTS {
        let client = session(over).await?;
        let id = start(&client, "slow_compute", &json!({"seconds": 3600, "label": "cancelled"})).await?;
        acknowledged(client.cancel_task(CancelTaskParams::new(id.clone())).await)?;
        assert_eq!(settled(&client, &id).await?.status(), TaskStatus::Cancelled);
    }
    Ok(())
}

#[tokio::test]
async fn a_tool_error_is_a_result_and_a_json_rpc_error_a_failure() -> anyhow::Result<()> {
    for over in TRANSPORTS {
        let client = session(over).await?;
        let id = start(&client, "failing_job", &json!({})).await?;
        let TaskPayload::Completed { result } = settled(&client, &id).await?.payload else { panic!("not completed") };
        assert_eq!(result["isError"], true);
        let id = start(&client, "protocol_error_job", &json!({})).await?;
        let TaskPayload::Failed { error } = settled(&client, &id).await?.payload else { panic!("not failed") };
        assert_eq!(error["code"], -32603);
    }
    Ok(())
}

#[tokio::test]
async fn an_unknown_task_is_refused() -> anyhow::Result<()> {
    for over in TRANSPORTS {
        let client = session(over).await?;
        let refused = client.get_task(GetTaskParams::new("no-such-task")).await;
        let Err(ServiceError::McpError(error)) = refused else { panic!("{refused:?}") };
        assert_eq!(error.code.0, -32602);
    }
    Ok(())
}

async fn session(over: Over) -> anyhow::Result<impl std::ops::Deref<Target = Client>> {
    let declared = json!({"elicitation": {}, "extensions": {TASKS_EXTENSION_ID: {}}});
    let capabilities: ClientCapabilities = serde_json::from_value(declared)?;
    let lifecycle = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
    connect(over, lifecycle, Answering { capabilities, ..Answering::default() }).await
}

fn call(name: &'static str, arguments: &Value) -> CallToolRequestParams {
    CallToolRequestParams::new(name).with_arguments(arguments.as_object().cloned().unwrap_or_default())
}

/// Calls a tool that must become a task.
async fn start(client: &Client, name: &'static str, arguments: &Value) -> anyhow::Result<String> {
    match client.call_tool_once(call(name, arguments)).await? {
        CallToolResponse::Task(created) => Ok(created.task.task_id),
        other => anyhow::bail!("{name} is no task: {other:?}"),
    }
}

/// This client parses an acknowledgement with a `_meta` as a tool's result and reports it as unexpected. The tests
/// check the effect on the task instead.
fn acknowledged(answer: Result<(), ServiceError>) -> Result<(), ServiceError> {
    match answer {
        Err(ServiceError::UnexpectedResponse) => Ok(()),
        other => other,
    }
}

async fn settled(client: &Client, id: &str) -> anyhow::Result<DetailedTask> {
    follow(client, id, |task| task.status().is_terminal()).await
}

/// Polls at the server's interval until the condition holds.
async fn follow(client: &Client, id: &str, condition: impl Fn(&DetailedTask) -> bool) -> anyhow::Result<DetailedTask> {
    tokio::time::timeout(Duration::from_secs(60), async {
        loop {
            let task = client.get_task(GetTaskParams::new(id)).await?.task;
            if condition(&task) {
                return Ok(task);
            }
            tokio::time::sleep(Duration::from_millis(task.task.poll_interval_ms.unwrap_or(100))).await;
        }
    })
    .await?
}

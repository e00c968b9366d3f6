//! A client that answers every question and records all notifications.

#![allow(deprecated, reason = "rmcp deprecates parts of 2025-11-25 that are used here")]

use std::ops::Deref;
use std::process::Stdio;
use std::sync::Mutex;

use rmcp::model::{
    CallToolResult, ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult,
    CustomNotification, ElicitRequestParams, ElicitResult, ElicitationAction, ErrorData, Implementation,
    LoggingMessageNotificationParam, ProgressNotificationParam, SamplingMessage,
};
use rmcp::service::{NotificationContext, RequestContext, RunningService};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt as _, RoleClient};
use serde_json::{Value, json};

use crate::server::{self, HttpServer, Over};

/// The capabilities of the client, its answers, and the notifications that it has received.
#[derive(Default)]
pub struct Answering {
    pub capabilities: ClientCapabilities,
    /// The answer to a form.
    pub content: Value,
    pub asked: Mutex<Vec<String>>,
    pub progress: Mutex<Vec<f64>>,
    pub lines: Mutex<Vec<Value>>,
    pub notified: Mutex<Vec<CustomNotification>>,
}

impl ClientHandler for Answering {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(self.capabilities.clone(), Implementation::new("longhaul-interop", "1.0.0"))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        if let ElicitRequestParams::FormElicitationParams { message, .. } = request {
            self.asked.lock().expect("no panic while it is locked").push(message);
        }
        let mut answer = ElicitResult::new(ElicitationAction::Accept);
        answer.content = Some(self.content.clone());
        Ok(answer)
    }

    async fn create_message(
        &self,
        request: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let heard = json!(request.messages[0].content)["text"].as_str().unwrap_or_default().to_owned();
        let message = SamplingMessage::assistant_text(format!("heard: {heard}"));
        Ok(CreateMessageResult::new(message, "of-the-test".to_owned()))
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.progress.lock().expect("no panic while it is locked").push(params.progress);
    }

    async fn on_logging_message(&self, params: LoggingMessageNotificationParam, _: NotificationContext<RoleClient>) {
        self.lines.lock().expect("no panic while it is locked").push(params.data);
    }

    async fn on_custom_notification(&self, notification: CustomNotification, _: NotificationContext<RoleClient>) {
        self.notified.lock().expect("no panic while it is locked").push(notification);
    }
}

/// A client that is connected to its own server.
pub struct Connected {
    client: RunningService<RoleClient, Answering>,
    _server: Option<HttpServer>,
}

impl Deref for Connected {
    type Target = RunningService<RoleClient, Answering>;

    fn deref(&self) -> &Self::Target {
        &self.client
    }
}

/// Starts a server and connects to it.
pub async fn connect(over: Over, lifecycle: ClientLifecycleMode, handler: Answering) -> anyhow::Result<Connected> {
    Ok(match over {
        Over::Http => {
            let server = HttpServer::start().await?;
            let mut config = StreamableHttpClientTransportConfig::with_uri(server.url.as_str());
            config.auth_header = Some(HttpServer::TOKEN.to_owned());
            let transport = StreamableHttpClientTransport::from_config(config);
            let client = handler.serve_with_lifecycle(transport, lifecycle).await?;
            Connected { client, _server: Some(server) }
        }
        Over::Stdio => {
            let (transport, _) = TokioChildProcess::builder(server::stdio()?).stderr(Stdio::null()).spawn()?;
            Connected { client: handler.serve_with_lifecycle(transport, lifecycle).await?, _server: None }
        }
    })
}

/// The text of a tool's result.
pub fn text(result: &CallToolResult) -> String {
    result.content.iter().filter_map(|block| block.as_text()).map(|block| block.text.as_str()).collect()
}

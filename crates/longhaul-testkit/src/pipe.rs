//! A client on a pipe, such as standard input and output of a server, with one message per line. It can send requests of
//! both eras.

use longhaul_receiver::Caller;
use longhaul_server::{ServerLimits, stdio};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, Lines};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::schema::SentRequests;
use crate::stateless::tasks_and_forms;
use crate::{TestServer, in_time, initialize_params, stateless_message};

/// The size of the buffer of a pipe in this process.
const PIPE_BYTES: usize = 1 << 20;

type PipeOutput = Lines<BufReader<Box<dyn AsyncRead + Send + Unpin>>>;

pub struct PipeClient {
    input: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    output: PipeOutput,
    sent_requests: SentRequests,
    /// The revision of the session; `None` without a session.
    revision: Option<String>,
    /// Serves this pipe, if the server is in this process.
    server_task: Option<JoinHandle<std::io::Result<()>>>,
    /// Stops that server.
    stop: CancellationToken,
}

impl PipeClient {
    /// A client of a server that uses these streams.
    pub fn new(
        input: impl AsyncWrite + Send + Unpin + 'static,
        output: impl AsyncRead + Send + Unpin + 'static,
    ) -> Self {
        let output: Box<dyn AsyncRead + Send + Unpin> = Box::new(output);
        Self {
            input: Some(Box::new(input)),
            output: BufReader::new(output).lines(),
            sent_requests: SentRequests::default(),
            revision: None,
            server_task: None,
            stop: CancellationToken::new(),
        }
    }

    /// A client on a pipe of a server in this process.
    pub fn connect(server: &TestServer, caller: Caller, limits: ServerLimits) -> Self {
        let (input, input_end) = tokio::io::duplex(PIPE_BYTES);
        let (output, output_end) = tokio::io::duplex(PIPE_BYTES);
        let mut client = Self::new(input, output);
        let (receiver, stop) = (server.receiver().clone(), client.stop.clone());
        let server_task = stdio::serve(receiver, caller, BufReader::new(input_end), output_end, limits, stop);
        client.server_task = Some(tokio::spawn(server_task));
        client
    }

    pub async fn initialize(mut self, revision: &str, capabilities: Value) -> Self {
        let params = initialize_params(revision, capabilities);
        assert_eq!(self.session_result("initialize", params).await["protocolVersion"], revision);
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        self
    }

    pub async fn write(&mut self, bytes: &[u8]) {
        self.sent_requests.record_sent(bytes);
        let input = self.input.as_mut().expect("an open input");
        input.write_all(bytes).await.expect("a server that reads");
        input.flush().await.expect("a server that reads");
    }

    pub async fn send(&mut self, message: &Value) {
        self.write(format!("{message}\n").as_bytes()).await;
    }

    /// The next line: a message or a batch. It is checked against the schema.
    pub async fn next(&mut self) -> Option<Value> {
        let line = in_time("a line from the server", self.output.next_line()).await.expect("UTF-8")?;
        self.sent_requests.check_received_body(self.revision.as_deref(), Some("application/json"), line.as_bytes());
        let message: Value = serde_json::from_str(&line).expect("JSON that the check has parsed");
        if let Some(agreed) = message["result"]["protocolVersion"].as_str() {
            self.revision = Some(agreed.to_owned());
        }
        Some(message)
    }

    pub async fn must_next(&mut self) -> Value {
        self.next().await.expect("a message")
    }

    /// The next message of this method. Others are skipped.
    pub async fn next_of(&mut self, method: &str) -> Value {
        loop {
            let message = self.must_next().await;
            if message["method"] == method {
                return message;
            }
        }
    }

    /// Sends a request of the stateless era.
    pub async fn send_request(&mut self, id: impl Into<Value>, method: &str, params: Value) {
        self.send(&stateless_message(&id.into(), method, params, &tasks_and_forms())).await;
    }

    /// Sends a request of the stateless era, and returns the next message, which must be its response.
    pub async fn request(&mut self, method: &str, params: Value) -> Value {
        self.send_request("r", method, params).await;
        let response = self.must_next().await;
        assert_eq!(response["id"], "r", "{response}");
        response
    }

    pub async fn result(&mut self, method: &str, params: Value) -> Value {
        let mut response = self.request(method, params).await;
        assert!(response.get("result").is_some(), "{response}");
        response["result"].take()
    }

    /// Calls a tool as a task, and returns the task's ID.
    pub async fn create(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.result("tools/call", json!({ "name": tool, "arguments": arguments })).await;
        result["taskId"].as_str().expect("a task").to_owned()
    }

    /// Polls a task until it meets the condition.
    pub async fn get_until(&mut self, id: &str, condition: impl Fn(&Value) -> bool) -> Value {
        in_time("a change of a task", async {
            loop {
                let task = self.result("tasks/get", json!({ "taskId": id })).await;
                if condition(&task) {
                    return task;
                }
            }
        })
        .await
    }

    /// Sends a request of a session.
    #[allow(clippy::needless_pass_by_value, reason = "so that a test can write `json!` in the call")]
    pub async fn send_session_request(&mut self, id: &str, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
    }

    /// The response to a request. Messages before it are skipped.
    pub async fn response(&mut self, id: &str) -> Value {
        loop {
            let message = self.must_next().await;
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
        }
    }

    pub async fn session_result(&mut self, method: &str, params: Value) -> Value {
        self.send_session_request("r", method, params).await;
        let mut response = self.response("r").await;
        assert!(response.get("result").is_some(), "{response}");
        response["result"].take()
    }

    pub fn close(&mut self) {
        self.input = None;
    }

    /// Tells the server to stop, without waiting.
    pub fn begin_stop(&self) {
        self.stop.cancel();
    }

    /// Closes the input, and returns the remaining messages.
    pub async fn finish(mut self) -> Vec<Value> {
        self.close();
        self.rest().await
    }

    /// All messages to the end of the output. A server in this process must have ended without an error.
    pub async fn rest(mut self) -> Vec<Value> {
        let mut rest = Vec::new();
        while let Some(message) = self.next().await {
            rest.push(message);
        }
        if let Some(server_task) = self.server_task {
            in_time("the end of the server", server_task).await.expect("no panic").expect("a graceful end");
        }
        rest
    }
}

//! What is streamed back, and the requests of [`Client`] that go with it.

use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::{Value, json};

use super::schema::Asked;
use super::{Answer, Client, TaskView, Trouble, in_time};

/// The messages of a response stream. Dropping it hangs up.
pub(crate) struct Events {
    asked: Asked,
    body: Incoming,
    waiting: Vec<u8>,
}

impl Events {
    /// The next message, which is checked; none when the stream is over.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.waiting.windows(2).position(|pair| pair == b"\n\n") {
                let event: Vec<u8> = self.waiting.drain(..end + 2).collect();
                let event = String::from_utf8(event).expect("UTF-8");
                if let Some(data) = event.strip_prefix("data: ") {
                    let message = serde_json::from_str(data).expect("JSON");
                    self.asked.hears(None, &message);
                    return Some(message);
                }
                assert!(event.starts_with(':'), "neither a message nor a comment: {event:?}");
                continue;
            }
            let frame = in_time("the next event of a stream", self.body.frame()).await?.ok()?;
            self.waiting.extend(frame.into_data().unwrap_or_default());
        }
    }

    /// All that is left, to the end of the stream.
    pub(crate) async fn rest(mut self) -> Vec<Value> {
        let mut messages = Vec::new();
        while let Some(message) = self.next().await {
            messages.push(message);
        }
        messages
    }
}

impl Client {
    /// A new connection of the same client.
    pub(crate) async fn again(&self) -> Self {
        let mut other = Self::connect(self.address()).await.expect("a server that listens");
        other.capabilities = self.capabilities.clone();
        other.token.clone_from(&self.token);
        other
    }

    /// A request whose answer is a stream, on a connection of its own.
    pub(crate) async fn stream(&self, method: &str, params: Value) -> Events {
        let mut client = self.again().await;
        let (message, headers) = client.message(method, params);
        client.post_stream(message.to_string(), &headers).await
    }

    /// Posts exactly this, which must be answered with a stream.
    pub(crate) async fn post_stream(&mut self, body: String, headers: &[(String, String)]) -> Events {
        let asked = Asked::of(body.as_bytes());
        let response = self.post(body, headers).await.expect("an answer");
        let kind = response.headers().get("content-type").cloned();
        let body = response.into_body();
        if kind.as_ref().is_some_and(|kind| kind == "text/event-stream") {
            return Events { asked, body, waiting: Vec::new() };
        }
        panic!("not a stream, but {kind:?}: {:?}", body.collect().await.map(http_body_util::Collected::to_bytes))
    }

    /// Follows these tasks.
    pub(crate) async fn listen(&self, ids: &[&str]) -> Events {
        self.stream("subscriptions/listen", json!({ "notifications": { "taskIds": ids } })).await
    }

    /// A request and its answer, whatever it is.
    pub(crate) async fn send(&mut self, method: &str, params: Value) -> Answer {
        let (message, headers) = self.message(method, params);
        self.exchange(message.to_string(), &headers).await.expect("an answer")
    }

    /// The error of a request that must be refused.
    pub(crate) async fn error(&mut self, method: &str, params: Value) -> Value {
        let answer = self.send(method, params.clone()).await.json();
        assert!(answer.get("error").is_some(), "{method} {params} was not refused: {answer}");
        answer["error"].clone()
    }

    /// The error of a call that must be refused.
    pub(crate) async fn call_error(&mut self, tool: &str, arguments: Value) -> Value {
        self.error("tools/call", json!({ "name": tool, "arguments": arguments })).await
    }

    /// The end of a task.
    pub(crate) async fn settled(&mut self, id: &str) -> TaskView {
        self.get_until(id, TaskView::is_settled).await.expect("an answer")
    }

    /// Waits until a task asks something, and says under which keys.
    pub(crate) async fn asked(&mut self, id: &str, questions: usize) -> Vec<String> {
        self.get_until(id, |task| task.questions().len() == questions).await.expect("an answer").questions()
    }

    /// The sum of a metric over its labels.
    pub(crate) async fn metric(&mut self, name: &str) -> f64 {
        let page = self.page("/metrics").await;
        let text = std::str::from_utf8(&page.body).expect("UTF-8");
        let values = text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
            let (metric, value) = line.rsplit_once(' ')?;
            (metric.split('{').next() == Some(name)).then(|| value.parse::<f64>().expect("a number"))
        });
        values.sum()
    }

    /// Looks until a metric is what it should be.
    #[allow(clippy::float_cmp, reason = "they are whole numbers")]
    pub(crate) async fn until_metric(&mut self, name: &str, expected: f64) {
        in_time(&format!("{name} at {expected}"), async {
            while self.metric(name).await != expected {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
}

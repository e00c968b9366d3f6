//! Rates of requests and of failed lookups: the last allowed request passes, the next is refused with a time after
//! which it succeeds.
//!
//! On a slow machine a bucket refills during the test, so a test sends requests until one is refused, and counts them.

use std::time::Duration;

use longhaul::{Ctx, NoArgs, RateLimits, Server, Tool};
use longhaul_server::HeaderMap;
use longhaul_testkit::{LATEST, SessionClient, StatelessClient, TestServer, in_time};
use serde_json::{Value, json};

const BURST: u32 = 3;

fn server() -> Server {
    Server::new("test").tool(Tool::new("echo", |_: Ctx, _: NoArgs| async move { Ok("echo") }))
}

/// The parts of a response that these tests check.
struct RateResponse {
    status: u16,
    retry_after: Option<u64>,
    error: Value,
}

impl RateResponse {
    fn is_refused(&self) -> bool {
        self.status == 429
    }

    /// Checks a refusal, and returns its `retryAfterMs`.
    fn retry_after(&self, word: &str) -> Duration {
        assert_eq!((&self.error["code"], &self.error["data"]["code"]), (&json!(-32603), &json!(word)));
        let ms = self.error["data"]["retryAfterMs"].as_u64().expect("a number");
        assert!(ms > 0);
        assert_eq!(self.retry_after, Some(ms.div_ceil(1_000)), "the transport is told, too");
        Duration::from_millis(ms)
    }
}

fn retry_after(headers: &HeaderMap) -> Option<u64> {
    headers.get("retry-after").map(|seconds| seconds.to_str().unwrap().parse().unwrap())
}

async fn stateless(client: &mut StatelessClient, method: &str, params: &Value) -> RateResponse {
    let (message, headers) = client.message(method, params.clone());
    let mut reply = client.post(message.to_string(), &headers).await.unwrap();
    let error = if reply.is_stream() {
        Value::Null
    } else {
        serde_json::from_slice::<Value>(&reply.bytes().await.unwrap()).unwrap()["error"].take()
    };
    RateResponse { status: reply.status, retry_after: retry_after(&reply.headers), error }
}

async fn stateful(client: &SessionClient, method: &str, params: &Value) -> RateResponse {
    let mut answer = match method {
        "GET" | "DELETE" => client.http(method, &[], "").await,
        _ => client.send(method, params.clone()).await,
    };
    let (status, retry_after) = (answer.status, retry_after(&answer.headers));
    let error = if answer.is_stream() {
        Value::Null
    } else {
        answer.next().await.map_or(Value::Null, |mut message| message["error"].take())
    };
    RateResponse { status, retry_after, error }
}

fn kinds() -> [(&'static str, RateLimits); 4] {
    let off = RateLimits::off;
    [
        ("create", off().creates_per_second(1).creates_burst(BURST)),
        ("read", off().reads_per_second(1).reads_burst(BURST)),
        ("change", off().changes_per_second(1).changes_burst(BURST)),
        ("other", off().others_per_second(1).others_burst(BURST)),
    ]
}

/// The methods by their kinds, with parameters.
type Methods = Vec<(&'static str, &'static str, Value)>;

/// Uses up one kind as Ada, who has made `used` such requests before. Other kinds and Bob are not held up, and Ada is
/// served again after the wait.
async fn counts_by_itself(
    kind: &str,
    used: u32,
    methods: &Methods,
    mut ask: impl AsyncFnMut(&str, &str, &Value) -> RateResponse,
) {
    let ours = || methods.iter().filter(|(of, ..)| *of == kind);
    let mut passed = used;
    let refused = 'asking: loop {
        for (_, method, params) in ours() {
            let seen = ask("ada", method, params).await;
            if seen.is_refused() {
                break 'asking seen;
            }
            passed += 1;
        }
    };
    assert!(passed >= BURST, "{kind}: only {passed} passed");
    let wait = refused.retry_after("TOO_MANY_REQUESTS");
    for (of, method, params) in methods.iter().filter(|(of, ..)| *of != kind) {
        assert!(!ask("ada", method, params).await.is_refused(), "{of} when {kind} is used up");
    }
    let (_, method, params) = ours().next().unwrap();
    assert!(!ask("bob", method, params).await.is_refused(), "{kind} is used up by another owner");
    tokio::time::sleep(wait).await;
    assert!(!ask("ada", method, params).await.is_refused(), "{kind} after the wait");
}

#[tokio::test]
async fn the_stateless_era_counts_each_kind_by_itself_and_each_owner() {
    for (kind, limits) in kinds() {
        let server = TestServer::start(server().rate_limits(limits)).await;
        let mut client = server.client().await.with_token("ada");
        let id = client.create("echo", json!({})).await.unwrap();
        let task = json!({ "taskId": id });
        let methods = vec![
            ("create", "tools/call", json!({ "name": "echo", "arguments": {} })),
            ("read", "tasks/get", task.clone()),
            ("read", "subscriptions/listen", json!({ "notifications": { "taskIds": [id] } })),
            ("change", "tasks/cancel", task),
            ("change", "tasks/update", json!({ "taskId": id, "inputResponses": {} })),
            ("other", "tools/list", json!({})),
            ("other", "server/discover", json!({})),
            ("other", "no/such", json!({})),
        ];
        counts_by_itself(kind, u32::from(kind == "create"), &methods, async |owner, method, params| {
            stateless(&mut client.again().await.with_token(owner), method, params).await
        })
        .await;
    }
}

#[tokio::test]
async fn a_body_that_is_no_message_is_counted_as_a_request() {
    let limits = RateLimits::off().others_per_second(1).others_burst(BURST);
    let server = TestServer::start(server().rate_limits(limits)).await;
    let mut client = server.client().await.with_token("ada");
    for stateless in [true, false] {
        let (_, headers) = client.message("tools/list", json!({}));
        let headers: Vec<_> =
            headers.into_iter().filter(|(name, _)| stateless || *name != "mcp-protocol-version").collect();
        in_time("a refusal", async { while client.exchange("no message", &headers).await.unwrap().status != 429 {} })
            .await;
    }
}

#[tokio::test]
async fn a_session_counts_each_kind_of_request_by_itself() {
    for (kind, limits) in kinds() {
        let server = TestServer::start(server().rate_limits(limits)).await;
        let open =
            async |owner: &str| SessionClient::new(&server).with_token(owner).initialize(LATEST, json!({})).await;
        let (ada, bob) = (open("ada").await, open("bob").await);
        let task = json!({ "taskId": ada.create("echo", json!({})).await });
        let methods = vec![
            ("create", "tools/call", json!({ "name": "echo", "arguments": {} })),
            ("read", "tasks/get", task.clone()),
            ("read", "tasks/result", task.clone()),
            ("read", "tasks/list", json!({})),
            ("read", "GET", json!({})),
            ("change", "tasks/cancel", task),
            ("other", "ping", json!({})),
            ("other", "tools/list", json!({})),
            ("other", "no/such", json!({})),
        ];
        // The handshake counts as a request, and the task was created.
        let used = u32::from(kind == "create" || kind == "other");
        counts_by_itself(kind, used, &methods, async |owner, method, params| {
            stateful(if owner == "ada" { &ada } else { &bob }, method, params).await
        })
        .await;
    }
}

#[tokio::test]
async fn every_member_of_a_batch_counts() {
    let limits = RateLimits::off().others_per_second(1).others_burst(1 + BURST);
    let server = TestServer::start(server().rate_limits(limits)).await;
    let client = SessionClient::new(&server).initialize("2025-03-26", json!({})).await;
    let pings: Vec<Value> = (0..50).map(|_| client.message("ping", json!({}))).collect();
    let answers = client.post(Value::from(pings).to_string()).await.rest().await;
    let (passed, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.get("result").is_some());
    assert_eq!(answers.len(), 50);
    assert!(passed.len() >= BURST as usize, "{passed:?}");
    assert!(!refused.is_empty());
    assert!(refused.iter().all(|answer| answer["error"]["data"]["code"] == "TOO_MANY_REQUESTS"), "{refused:?}");
}

#[tokio::test]
async fn requests_in_an_unknown_session_are_counted_too() {
    let limits = RateLimits::off().others_per_second(1).others_burst(1 + BURST);
    let server = TestServer::start(server().rate_limits(limits)).await;
    let mut client = SessionClient::open(&server, json!({})).await;
    client.session = Some("none of ours".into());
    let mut missed = 0;
    let refused = loop {
        let seen = stateful(&client, "ping", &json!({})).await;
        match seen.status {
            404 => missed += 1,
            _ => break seen,
        }
    };
    assert!(missed >= BURST, "only {missed}");
    tokio::time::sleep(refused.retry_after("TOO_MANY_REQUESTS")).await;
    assert_eq!(stateful(&client, "ping", &json!({})).await.status, 404);
}

/// Requests a foreign task until that is refused. The own task is not refused, and the foreign one is looked up again
/// after the wait.
async fn miss_until_refused(ask: impl AsyncFn(&str) -> RateResponse, theirs: &str, own: &str) {
    let refused = in_time("a refusal", async {
        loop {
            let seen = ask(theirs).await;
            if seen.is_refused() {
                break seen;
            }
        }
    })
    .await;
    assert!(!ask(own).await.is_refused(), "a task that exists");
    tokio::time::sleep(refused.retry_after("TOO_MANY_FAILED_LOOKUPS")).await;
    assert!(!ask(theirs).await.is_refused(), "after the wait");
}

#[tokio::test]
async fn an_owner_that_guesses_task_ids_is_refused_but_not_its_own() {
    let limits = RateLimits::off().failed_lookups_per_second(1).failed_lookups_burst(BURST);
    let server = TestServer::start(server().rate_limits(limits)).await;
    let mut ada = server.client().await.with_token("ada");
    let theirs = ada.create("echo", json!({})).await.unwrap();
    let bob = tokio::sync::Mutex::new(server.client().await.with_token("bob"));
    let own = bob.lock().await.create("echo", json!({})).await.unwrap();
    for method in ["tasks/get", "tasks/cancel", "tasks/update", "subscriptions/listen"] {
        let ask = async |id: &str| {
            let params = match method {
                "tasks/update" => json!({ "taskId": id, "inputResponses": {} }),
                "subscriptions/listen" => json!({ "notifications": { "taskIds": [id] } }),
                _ => json!({ "taskId": id }),
            };
            stateless(&mut *bob.lock().await, method, &params).await
        };
        miss_until_refused(ask, &theirs, &own).await;
    }
    let session = SessionClient::new(&server).with_token("bob").initialize("2025-11-25", json!({})).await;
    for method in ["tasks/get", "tasks/cancel", "tasks/result"] {
        miss_until_refused(async |id: &str| stateful(&session, method, &json!({ "taskId": id })).await, &theirs, &own)
            .await;
    }
    // The owner of the tasks is not refused.
    assert_eq!(ada.settled(&theirs).await.result_text(), "echo");
}

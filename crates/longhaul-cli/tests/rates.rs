//! How often one owner may ask, and miss: the last one that is allowed passes, the next one hears when to try again, and
//! does so with success.
//!
//! A slow machine refills a bucket while a test empties it, so a test asks until it is refused, and counts.

mod support;

use std::time::Duration;

use hyper::HeaderMap;
use longhaul::{Ctx, NoArgs, Owner, RateLimits, Server, Tokens, Tool};
use longhaul_server::stdio;
use serde_json::{Value, json};
use support::stateful::Stateful;
use support::{Client, Local, VERSION, in_time};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio_util::sync::CancellationToken;

/// How many pass at once.
const BURST: u32 = 3;

fn server() -> Server {
    Server::new("test").tool(Tool::new("echo", |_: Ctx, _: NoArgs| async move { Ok("echo") }))
}

fn with_tokens() -> Server {
    let line = |owner: &str| Tokens::line(&Owner::parse(owner).unwrap(), owner);
    server().tokens(Tokens::parse(&format!("{}\n{}\n", line("ada"), line("bob"))).unwrap())
}

async fn as_owner(server: &Local, owner: &str) -> Client {
    let mut client = server.client().await;
    client.token = Some(owner.to_owned());
    client
}

/// An answer as far as these tests look at it.
struct Seen {
    status: u16,
    headers: HeaderMap,
    error: Value,
}

impl Seen {
    fn is_refused(&self) -> bool {
        self.status == 429
    }

    /// Holds a refusal against what every such refusal has, and says for how long it is.
    fn retry_after(&self, word: &str) -> Duration {
        assert_eq!((&self.error["code"], &self.error["data"]["code"]), (&json!(-32603), &json!(word)));
        let ms = self.error["data"]["retryAfterMs"].as_u64().expect("a number");
        assert!(ms > 0);
        let seconds: u64 = self.headers["retry-after"].to_str().unwrap().parse().unwrap();
        assert_eq!(seconds, ms.div_ceil(1_000));
        Duration::from_millis(ms)
    }
}

async fn stateless(client: &mut Client, method: &str, params: &Value) -> Seen {
    let (message, headers) = client.message(method, params.clone());
    let response = client.post(message.to_string(), &headers).await.unwrap();
    let is_stream = response.headers().get("content-type").is_some_and(|kind| kind == "text/event-stream");
    let (head, body) = response.into_parts();
    let error = if is_stream {
        // The stream goes on; the connection does not.
        *client = client.again().await;
        Value::Null
    } else {
        let body = in_time("a body", http_body_util::BodyExt::collect(body)).await.unwrap().to_bytes();
        serde_json::from_slice::<Value>(&body).unwrap()["error"].take()
    };
    Seen { status: head.status.as_u16(), headers: head.headers, error }
}

async fn stateful(client: &Stateful, method: &str, params: &Value) -> Seen {
    let mut answer = match method {
        "GET" | "DELETE" => client.http(method, &[], "").await,
        _ => client.send(method, params.clone()).await,
    };
    let (status, headers) = (answer.status, answer.headers.clone());
    let error = if answer.is_stream() {
        Value::Null
    } else {
        answer.next().await.map_or(Value::Null, |mut message| message["error"].take())
    };
    Seen { status, headers, error }
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

#[tokio::test]
async fn the_stateless_era_counts_each_kind_by_itself_and_each_owner() {
    for (kind, limits) in kinds() {
        let server = Local::start(with_tokens().rate_limits(limits)).await;
        let mut client = as_owner(&server, "ada").await;
        let methods = |id: &str| {
            let task = json!({ "taskId": id });
            [
                ("create", "tools/call", json!({ "name": "echo", "arguments": {} })),
                ("read", "tasks/get", task.clone()),
                ("read", "subscriptions/listen", json!({ "notifications": { "taskIds": [id] } })),
                ("change", "tasks/cancel", task),
                ("change", "tasks/update", json!({ "taskId": id, "inputResponses": {} })),
                ("other", "tools/list", json!({})),
                ("other", "server/discover", json!({})),
                ("other", "no/such", json!({})),
            ]
        };
        let id = as_owner(&server, "ada").await.create("echo", json!({})).await.unwrap();
        let made = u32::from(kind == "create");
        let mut passed = 0;
        let refused = 'asking: loop {
            for (_, method, params) in methods(&id).into_iter().filter(|(of, ..)| *of == kind) {
                let seen = stateless(&mut client, method, &params).await;
                if seen.is_refused() {
                    break 'asking seen;
                }
                passed += 1;
            }
        };
        assert!(passed + made >= BURST, "{kind}: only {passed} passed");
        let wait = refused.retry_after("TOO_MANY_REQUESTS");
        // Other kinds, and other owners, are not held up.
        for (of, method, params) in methods(&id).into_iter().filter(|(of, ..)| *of != kind) {
            assert!(!stateless(&mut client, method, &params).await.is_refused(), "{of} when {kind} is used up");
        }
        let (_, method, params) = methods(&id).into_iter().find(|(of, ..)| *of == kind).unwrap();
        assert!(!stateless(&mut as_owner(&server, "bob").await, method, &params).await.is_refused());
        tokio::time::sleep(wait).await;
        assert!(!stateless(&mut client, method, &params).await.is_refused(), "{kind} after the wait");
        server.stop().await;
    }
}

#[tokio::test]
async fn what_is_no_message_is_counted_like_one() {
    let limits = RateLimits::off().others_per_second(1).others_burst(BURST);
    let server = Local::start(with_tokens().rate_limits(limits)).await;
    let mut client = as_owner(&server, "ada").await;
    for stateless in [true, false] {
        let (_, headers) = client.message("tools/list", json!({}));
        let headers: Vec<_> =
            headers.into_iter().filter(|(name, _)| stateless || *name != "mcp-protocol-version").collect();
        in_time("a refusal", async { while client.exchange("no message", &headers).await.unwrap().status != 429 {} })
            .await;
    }
    server.stop().await;
}

#[tokio::test]
async fn a_session_counts_each_kind_by_itself() {
    for (kind, limits) in kinds() {
        let server = Local::start(with_tokens().rate_limits(limits)).await;
        let mut client = Stateful::new(server.address);
        client.token = Some("ada".into());
        let client = client.initialize("2025-11-25", json!({})).await;
        let id = client.create("echo", json!({})).await;
        let task = json!({ "taskId": id });
        let methods = [
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
        let ours = || methods.iter().filter(|(of, ..)| *of == kind);
        // The handshake is one of the others, and the task was made.
        let mut passed = u32::from(kind == "create" || kind == "other");
        let refused = 'asking: loop {
            for (_, method, params) in ours() {
                let seen = stateful(&client, method, params).await;
                if seen.is_refused() {
                    break 'asking seen;
                }
                passed += 1;
            }
        };
        assert!(passed >= BURST, "{kind}: only {passed} passed");
        let wait = refused.retry_after("TOO_MANY_REQUESTS");
        for (of, method, params) in methods.iter().filter(|(of, ..)| *of != kind) {
            assert!(!stateful(&client, method, params).await.is_refused(), "{of} when {kind} is used up");
        }
        tokio::time::sleep(wait).await;
        let (_, method, params) = ours().next().unwrap();
        assert!(!stateful(&client, method, params).await.is_refused(), "{kind} after the wait");
        server.stop().await;
    }
}

#[tokio::test]
async fn every_member_of_a_batch_counts() {
    let limits = RateLimits::off().others_per_second(1).others_burst(1 + BURST);
    let server = Local::start(server().rate_limits(limits)).await;
    let client = Stateful::new(server.address).initialize("2025-03-26", json!({})).await;
    let pings: Vec<Value> = (0..50).map(|_| client.message("ping", json!({}))).collect();
    let answers = client.post(Value::from(pings).to_string()).await.rest().await;
    let (passed, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.get("result").is_some());
    assert_eq!(answers.len(), 50);
    assert!(passed.len() >= BURST as usize, "{passed:?}");
    assert!(!refused.is_empty());
    assert!(refused.iter().all(|answer| answer["error"]["data"]["code"] == "TOO_MANY_REQUESTS"), "{refused:?}");
    server.stop().await;
}

#[tokio::test]
async fn whoever_asks_in_a_session_that_is_gone_is_counted_too() {
    let limits = RateLimits::off().others_per_second(1).others_burst(1 + BURST);
    let server = Local::start(server().rate_limits(limits)).await;
    let mut client = Stateful::open(server.address, json!({})).await;
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
    server.stop().await;
}

/// For how long a request is refused, if it is.
fn refused_for(answer: &Value) -> Option<Duration> {
    let error = answer.get("error")?;
    assert_eq!(error["data"]["code"], "TOO_MANY_REQUESTS", "{answer}");
    Some(Duration::from_millis(error["data"]["retryAfterMs"].as_u64().expect("a number")))
}

#[tokio::test]
async fn a_stdio_client_is_refused_in_both_eras_and_served_again() {
    let limits = RateLimits::off().others_per_second(1).others_burst(BURST);
    let store = longhaul::StoreUrl::Memory.open().await.unwrap();
    let started = server().rate_limits(limits).start(store).await.unwrap();
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let (input, output) = tokio::io::split(theirs);
    let (caller, stop) = (longhaul_server::local(), CancellationToken::new());
    let limits = longhaul::Limits::default();
    let serving = stdio::serve(started.receiver().clone(), caller, BufReader::new(input), output, limits, stop);
    let serving = tokio::spawn(serving);
    let (read, mut write) = tokio::io::split(ours);
    let mut lines = BufReader::new(read).lines();

    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": VERSION, "io.modelcontextprotocol/clientCapabilities": {},
    });
    let hello = json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
    });
    let mut ask = async |method: &str, params: &Value| -> Value {
        let message = json!({ "jsonrpc": "2.0", "id": method, "method": method, "params": params });
        write.write_all(format!("{message}\n").as_bytes()).await.unwrap();
        let line = in_time("an answer", lines.next_line()).await.unwrap().unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(answer["id"], method, "{answer}");
        answer
    };
    for (method, params) in [("tools/list", json!({ "_meta": meta })), ("ping", json!({}))] {
        if method == "ping" {
            // The stateful era begins here, and its first word counts, too.
            while let Some(wait) = refused_for(&ask("initialize", &hello).await) {
                tokio::time::sleep(wait).await;
            }
        }
        let wait = loop {
            if let Some(wait) = refused_for(&ask(method, &params).await) {
                break wait;
            }
        };
        tokio::time::sleep(wait).await;
        assert_eq!(refused_for(&ask(method, &params).await), None, "{method} after the wait");
    }
    write.shutdown().await.unwrap();
    in_time("the end of the session", serving).await.unwrap().unwrap();
}

/// Asks for what is not there until it is refused, and then for what is: the same, but for the time.
async fn miss_until_refused(ask: impl AsyncFn(&str) -> Seen, theirs: &str, own: &str) {
    in_time("two refusals in a row", async {
        loop {
            let mut missed = 0;
            while !ask(theirs).await.is_refused() {
                missed += 1;
            }
            assert!(missed > 0);
            let (on_theirs, on_own) = (ask(theirs).await, ask(own).await);
            // Else a slow machine has let the time pass.
            if on_theirs.is_refused() && on_own.is_refused() {
                let wait = on_own.retry_after("TOO_MANY_FAILED_LOOKUPS");
                on_theirs.retry_after("TOO_MANY_FAILED_LOOKUPS");
                assert_eq!(on_theirs.error["message"], on_own.error["message"]);
                tokio::time::sleep(wait).await;
                assert!(!ask(own).await.is_refused(), "after the wait");
                return;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn whoever_asks_for_too_many_tasks_of_others_learns_nothing_more_in_any_era() {
    let limits = RateLimits::off().failed_lookups_per_second(1).failed_lookups_burst(BURST);
    let server = Local::start(with_tokens().rate_limits(limits)).await;
    let mut ada = as_owner(&server, "ada").await;
    let theirs = ada.create("echo", json!({})).await.unwrap();
    let bob = tokio::sync::Mutex::new(as_owner(&server, "bob").await);
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
    let mut session = Stateful::new(server.address);
    session.token = Some("bob".into());
    let session = session.initialize("2025-11-25", json!({})).await;
    for method in ["tasks/get", "tasks/cancel", "tasks/result"] {
        miss_until_refused(async |id: &str| stateful(&session, method, &json!({ "taskId": id })).await, &theirs, &own)
            .await;
    }
    // Whose tasks they are is not held up by that.
    assert_eq!(ada.settled(&theirs).await.result_text(), "echo");
    server.stop().await;
}

//! Limits of connections and messages.

use std::time::Duration;

use longhaul::{Ctx, NoArgs, RateLimits, Server, ServerLimits, TaskSupport, Tool};
use longhaul_testkit::raw::{RawConnection, RawRequest};
use longhaul_testkit::tools::Door;
use longhaul_testkit::{TestServer, conformance, in_time};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[tokio::test]
async fn a_connection_past_the_limit_waits_and_is_then_served() {
    let limits = ServerLimits::default().connections_max(2);
    let server = TestServer::listen(Server::new("test").limits(limits)).await;
    let (mut first, mut second) = (server.client().await, server.client().await);
    for client in [&mut first, &mut second] {
        client.request("tools/list", json!({})).await.unwrap();
    }
    // The system accepts the connection and its bytes before the server does.
    let mut third = server.client().await;
    let waiting = tokio::spawn(async move { third.request("tools/list", json!({})).await.map(drop) });
    for _ in 0..100 {
        first.request("tools/list", json!({})).await.unwrap();
        assert!(!waiting.is_finished(), "three were served at once");
    }
    drop(second);
    in_time("the third to be served", waiting).await.unwrap().unwrap();
    server.stop().await;
}

#[tokio::test]
async fn connections_that_send_nothing_keep_no_client_out() {
    let limits = ServerLimits::default().connections_max(4);
    let server = TestServer::listen(Server::new("test").limits(limits)).await;
    let mut first = server.client().await;
    first.request("tools/list", json!({})).await.unwrap();
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(TcpStream::connect(server.address()).await.unwrap());
    }
    let mut late = server.client().await;
    in_time("the late client to be served", late.request("tools/list", json!({}))).await.unwrap();
    first.request("tools/list", json!({})).await.expect("a connection with an owner stays");
    in_time("the oldest silent connection to be closed", silent[0].read_u8()).await.unwrap_err();
    server.stop().await;
}

#[tokio::test]
async fn a_message_far_too_large_gets_a_response() {
    let server = TestServer::listen(Server::new("test")).await;
    let mut client = server.client().await;
    let (_, headers) = client.message("tools/list", json!({}));
    let answer = client.exchange(" ".repeat(50_000_000), &headers).await.unwrap();
    assert_eq!(answer.status, 413);
    server.stop().await;
}

#[tokio::test]
async fn a_sender_that_does_not_stop_is_cut_off() {
    let server = TestServer::listen(Server::new("test")).await;
    let mut socket = TcpStream::connect(server.address()).await.unwrap();
    let bytes: usize = 1 << 30;
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {bytes}\r\n\r\n"
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    let chunk = vec![b' '; 1 << 20];
    let mut sent = 0;
    in_time("the end of the connection", async {
        while sent < bytes && socket.write_all(&chunk).await.is_ok() {
            sent += chunk.len();
        }
    })
    .await;
    assert!((64 << 20..bytes).contains(&sent), "{sent} bytes were taken");
    server.client().await.request("tools/list", json!({})).await.unwrap();
    server.stop().await;
}

#[tokio::test]
async fn a_message_is_taken_up_to_its_last_byte() {
    let limits = ServerLimits::default().message_bytes_max(1_000);
    let server = TestServer::listen(Server::new("test").limits(limits)).await;
    let mut client = server.client().await;
    for (bytes, status) in [(1_000, 200), (1_001, 413), (100_000, 413)] {
        let mut client = client.again().await;
        let (message, headers) = client.message("tools/list", json!({}));
        let message = message.to_string();
        let padded = format!("{message}{}", " ".repeat(bytes - message.len()));
        let reply = client.exchange(padded, &headers).await.unwrap();
        assert_eq!(reply.status, status, "{bytes} bytes");
        if status == 413 {
            let refusal = reply.json();
            assert_eq!(refusal["error"]["code"], -32600);
            assert!(refusal["error"]["message"].as_str().unwrap().contains("1000"), "{refusal}");
            assert!(refusal.get("id").is_none());
        }
    }
    client.request("tools/list", json!({})).await.unwrap();
    server.stop().await;
}

#[tokio::test]
async fn a_quiet_stream_is_kept_alive_by_comments() {
    let limits = ServerLimits::default().keep_alive(Duration::from_millis(10));
    let server = TestServer::listen(Server::new("test").limits(limits)).await;
    let mut client = server.client().await;
    let (message, headers) = client.message("subscriptions/listen", json!({ "notifications": { "taskIds": [] } }));
    let mut reply = client.post(message.to_string(), &headers).await.unwrap();
    assert!(reply.event().await.unwrap().data.contains("acknowledged"));
    for _ in 0..3 {
        assert_eq!(reply.event().await.expect("a comment").data, "");
    }
    drop(reply);
    server.stop().await;
}

#[tokio::test]
async fn a_refusal_for_now_says_in_whole_seconds_when_to_try_again() {
    let limits = RateLimits::off().others_per_second(1).others_burst(1);
    let server = TestServer::listen(Server::new("test").rate_limits(limits)).await;
    let mut client = server.client().await;
    let refused = loop {
        let reply = client.send("tools/list", json!({})).await;
        if reply.status == 429 {
            break reply;
        }
    };
    let ms = refused.json()["error"]["data"]["retryAfterMs"].as_u64().expect("a number");
    assert_eq!(refused.headers["retry-after"].to_str().unwrap(), ms.div_ceil(1_000).to_string());
    server.stop().await;
}

#[tokio::test]
async fn a_client_that_is_too_slow_is_cut_off_and_others_are_served() {
    let limits =
        ServerLimits::default().head_time_max(Duration::from_millis(200)).body_time_max(Duration::from_millis(200));
    let greet = Tool::new("greet", |_: Ctx, _: NoArgs| async move { Ok("hello") });
    let server = TestServer::listen(Server::new("test").tool(greet).limits(limits)).await;
    let request = RawRequest::discover();

    let mut half_a_head = RawConnection::open(server.address());
    half_a_head.write(&request.bytes()[..40]);
    let mut half_a_body = RawConnection::open(server.address());
    let bytes = request.bytes();
    half_a_body.write(&bytes[..bytes.len() - 10]);
    let mut silent = RawConnection::open(server.address());

    assert_eq!(request.send(&server).await.status, 200, "another client is served");
    let (head, body, nothing) =
        tokio::task::spawn_blocking(move || (half_a_head.answer(), half_a_body.answer(), silent.answer()))
            .await
            .unwrap();
    assert!(head.is_none_or(|answer| answer.status == 408), "half a head was answered");
    assert!(nothing.is_none_or(|answer| answer.status == 408), "silence was answered");
    let body = body.expect("a body that does not come is answered, because its head was whole");
    assert_eq!((body.status, &body.json()["error"]["code"]), (408, &json!(-32600)));
    assert_eq!(request.send(&server).await.status, 200);
    server.stop().await;
}

#[tokio::test]
async fn a_client_that_hangs_up_leaves_nothing_behind_and_its_tasks_go_on() {
    let server = TestServer::listen(conformance()).await;
    let mut client = server.client().await;
    let id = client.create("slow_compute", json!({ "seconds": 1_000 })).await.unwrap();
    let mut streams = Vec::new();
    for _ in 0..20 {
        let mut events = client.listen(&[&id]).await;
        events.must_next().await;
        events.must_next().await;
        streams.push(events);
    }
    client.until_metric("longhaul_streams_open", 20.0).await;
    drop(streams);
    client.until_metric("longhaul_streams_open", 0.0).await;
    assert_eq!(client.get(&id).await.unwrap().status(), "working");
    client.cancel(&id).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_followed_by_a_half_close_is_answered() {
    let greet = Tool::new("greet", |_: Ctx, _: NoArgs| async move {
        tokio::task::yield_now().await;
        Ok("hello")
    });
    let server = TestServer::listen(Server::new("test").tool(greet)).await;
    let mut client = server.client().await;
    let (call, headers) = client.message("tools/call", json!({ "name": "greet", "arguments": {} }));
    let request =
        headers.iter().fold(RawRequest::post(call.to_string()), |request, (name, value)| request.set(name, value));
    for _ in 0..100 {
        let (address, bytes) = (server.address(), request.bytes());
        let answer = tokio::task::spawn_blocking(move || {
            let mut connection = RawConnection::open(address);
            connection.write(&bytes);
            connection.finish();
            connection.answer()
        });
        assert_eq!(answer.await.unwrap().expect("an answer").status, 200);
    }
    server.stop().await;
}

#[tokio::test]
async fn an_ordinary_call_ends_when_its_client_disconnects() {
    /// Opens the door when the call is dropped.
    struct Ended(Door);
    impl Drop for Ended {
        fn drop(&mut self) {
            self.0.open(1);
        }
    }
    let (begun, ended) = (Door::closed(), Door::closed());
    let (begins, ends) = (begun.clone(), ended.clone());
    let endless = Tool::new("endless", move |_: Ctx, _: NoArgs| {
        let (begun, ended) = (begins.clone(), Ended(ends.clone()));
        async move {
            begun.open(1);
            std::future::pending::<()>().await;
            drop(ended);
            Ok("never")
        }
    });
    let server = TestServer::listen(Server::new("test").tool(endless.task_support(TaskSupport::Forbidden))).await;
    let mut client = server.client().await;
    let call = tokio::spawn(async move { client.call("endless", json!({})).await.map(drop) });
    begun.pass().await;
    call.abort();
    in_time("the end of the call", ended.pass()).await;
    server.stop().await;
}

//! What connections and messages may use.

use std::time::Duration;

use longhaul::{Limits, Server};
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::support::{Local, in_time};

#[tokio::test]
async fn a_connection_past_the_limit_waits_and_is_then_served() {
    let limits = Limits::default().connections_max(2);
    let server = Local::start(Server::new("test").limits(limits)).await;
    let (mut first, mut second) = (server.client().await, server.client().await);
    for client in [&mut first, &mut second] {
        client.request("tools/list", json!({})).await.unwrap();
    }
    // The system takes the connection and its bytes; the server does not look at them yet.
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
async fn a_message_is_taken_up_to_its_last_byte() {
    let limits = Limits::default().message_bytes_max(1_000);
    let server = Local::start(Server::new("test").limits(limits)).await;
    let mut client = server.client().await;
    for (bytes, status) in [(1_000, 200), (1_001, 413), (100_000, 413)] {
        let mut client = client.again().await;
        let (message, headers) = client.message("tools/list", json!({}));
        let message = message.to_string();
        let padded = format!("{message}{}", " ".repeat(bytes - message.len()));
        assert_eq!(client.exchange(padded, &headers).await.unwrap().status, status, "{bytes} bytes");
    }
    client.request("tools/list", json!({})).await.unwrap();
    server.stop().await;
}

#[tokio::test]
async fn a_message_far_too_large_is_refused_with_a_word_and_not_with_a_broken_connection() {
    let server = Local::start(Server::new("test")).await;
    let mut client = server.client().await;
    let (_, headers) = client.message("tools/list", json!({}));
    let answer = client.exchange(" ".repeat(50_000_000), &headers).await.unwrap();
    assert_eq!(answer.status, 413);
    server.stop().await;
}

#[tokio::test]
async fn a_sender_that_does_not_stop_is_cut_off() {
    let server = Local::start(Server::new("test")).await;
    let mut socket = TcpStream::connect(server.address).await.unwrap();
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
async fn an_id_that_is_longer_than_any_is_no_task_of_anybody() {
    let server = Local::start(Server::new("test")).await;
    let mut client = server.client().await;
    let unknown = client.error("tasks/get", json!({ "taskId": "never was" })).await;
    for bytes in [256, 257, 10_000] {
        assert_eq!(client.error("tasks/get", json!({ "taskId": "x".repeat(bytes) })).await, unknown, "{bytes} bytes");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_quiet_stream_is_kept_alive_by_comments() {
    use http_body_util::BodyExt;
    let limits = Limits::default().keep_alive(Duration::from_millis(10));
    let server = Local::start(Server::new("test").limits(limits)).await;
    let mut client = server.client().await;
    let (message, headers) = client.message("subscriptions/listen", json!({ "notifications": { "taskIds": [] } }));
    let mut body = client.post(message.to_string(), &headers).await.unwrap().into_body();
    let mut comments = 0;
    while comments < 3 {
        let frame = in_time("a comment", body.frame()).await.unwrap().unwrap().into_data().unwrap();
        comments += usize::from(frame.starts_with(b":"));
    }
    drop(body);
    server.stop().await;
}

//! Requests that HTTP refuses before the receiver sees them.

use longhaul_testkit::raw::RawRequest;
use longhaul_testkit::{RequestCase, TestServer, conformance};
use serde_json::json;

/// Requests that are wrong before their body is read.
fn rows() -> Vec<RequestCase> {
    let good = RawRequest::discover;
    let mut rows: Vec<RequestCase> = ["GET", "PUT", "DELETE", "PATCH", "OPTIONS"]
        .into_iter()
        .map(|method| {
            let row = RequestCase::new(method, good().method(method), 405, -32600, None);
            RequestCase { header: Some(("allow", "POST")), ..row }
        })
        .collect();
    for kind in ["text/plain", "application/jsonp", "application/x-www-form-urlencoded", "json", "", "*/*"] {
        rows.push(RequestCase::new(
            format!("content type {kind:?}"),
            good().set("Content-Type", kind),
            415,
            -32600,
            None,
        ));
    }
    rows.push(RequestCase::new("no content type", good().without("Content-Type"), 415, -32600, None));
    for kind in ["application/json; charset=utf-8", "Application/JSON", "application/json;"] {
        rows.push(RequestCase::fine(format!("content type {kind:?}"), good().set("Content-Type", kind)));
    }
    rows.push(RequestCase::new("no host", good().without("Host"), 403, -32600, None));
    rows.push(RequestCase::new("a foreign host", good().set("Host", "evil.example"), 403, -32600, None));
    rows.push(RequestCase::new("a foreign origin", good().with("Origin", "http://evil.example"), 403, -32600, None));
    rows
}

#[tokio::test]
async fn every_bad_request_gets_its_status_and_the_server_lives() {
    let server = TestServer::listen(conformance()).await;
    for row in rows() {
        row.check(&server).await;
    }
    let mut client = server.client().await;
    let greeting = client.call("greet", json!({ "name": "Ada" })).await.unwrap();
    assert_eq!(greeting["content"][0]["text"], "Hello, Ada!");
    client.until_metric("longhaul_streams_open", 0.0).await;
}

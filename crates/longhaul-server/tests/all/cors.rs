//! Pages of other origins that the operator allows.

use longhaul::Server;
use longhaul_testkit::raw::RawRequest;
use longhaul_testkit::{LATEST, TestServer, initialize_params};
use serde_json::json;

const PAGE: &str = "https://app.example";

async fn listen() -> TestServer {
    TestServer::listen(Server::new("test").origin(PAGE)).await
}

/// What a browser asks before it lets a page of this origin call.
fn preflight(origin: &str) -> RawRequest {
    RawRequest::get("/mcp")
        .method("OPTIONS")
        .with("Origin", origin)
        .with("Access-Control-Request-Method", "POST")
        .with("Access-Control-Request-Headers", "authorization,content-type,mcp-protocol-version,mcp-session-id")
}

fn initialize(origin: &str) -> RawRequest {
    let params = initialize_params(LATEST, json!({}));
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
    RawRequest::post(message.to_string()).with("Origin", origin)
}

#[tokio::test]
async fn a_browser_lets_a_page_of_an_allowed_origin_call() {
    let server = listen().await;
    let reply = preflight(PAGE).send(&server).await;
    assert_eq!((reply.status, reply.header("access-control-allow-origin")), (204, Some(PAGE)));
    let allowed = |name: &str| reply.header(name).unwrap_or_default().to_ascii_lowercase();
    for method in ["post", "get", "delete"] {
        assert!(allowed("access-control-allow-methods").contains(method), "{reply:?}");
    }
    for header in ["authorization", "content-type", "mcp-protocol-version", "mcp-session-id"] {
        assert!(allowed("access-control-allow-headers").contains(header), "{reply:?}");
    }
    let reply = initialize(PAGE).send(&server).await;
    assert_eq!((reply.status, reply.header("access-control-allow-origin")), (200, Some(PAGE)));
    assert!(reply.header("mcp-session-id").is_some());
    let exposed = reply.header("access-control-expose-headers").unwrap_or_default();
    assert!(exposed.contains("mcp-session-id") && exposed.contains("retry-after"), "{exposed}");
    server.stop().await;
}

#[tokio::test]
async fn a_browser_does_not_let_other_pages_call() {
    let server = listen().await;
    for origin in ["https://evil.example", "http://app.example", "null"] {
        let reply = preflight(origin).send(&server).await;
        assert_eq!(reply.header("access-control-allow-origin"), None, "{origin}");
        let reply = initialize(origin).send(&server).await;
        assert_eq!((reply.status, reply.header("access-control-allow-origin")), (403, None), "{origin}");
    }
    server.stop().await;
}

//! Browsers and pages of configured origins (CORS): a browser asks before it passes a page's request on, and lets the page read
//! only what the response allows. The server's own origin needs none of this, and other local pages get none.

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Method, Request, StatusCode};

use super::{HttpResponse, whole};

/// Whether a browser asks if a page may send a request.
pub(super) fn is_preflight(request: &Request<Incoming>) -> bool {
    *request.method() == Method::OPTIONS && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// Allows what the browser asks for. A request that then comes is checked like any other.
pub(super) fn preflight(asked: &HeaderMap) -> HttpResponse {
    let mut response = whole(Bytes::new());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST, DELETE"));
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("3600"));
    // Clients repeat arguments in headers of any name.
    if let Some(names) = asked.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, names.clone());
    }
    // A public page calls a server in a private network.
    if asked.contains_key("access-control-request-private-network") {
        headers.insert("access-control-allow-private-network", HeaderValue::from_static("true"));
    }
    response
}

/// Lets pages of this origin read the response.
pub(super) fn allow(response: &mut HttpResponse, origin: HeaderValue) {
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::VARY, HeaderValue::from_static("origin"));
    let exposed = HeaderValue::from_static("mcp-session-id, retry-after, www-authenticate");
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
}

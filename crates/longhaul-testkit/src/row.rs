//! Rows of the tables of bad requests.

use crate::TestEndpoint;
use crate::raw::RawRequest;

/// A request, and the status, code and ID that it is answered with.
pub struct RequestCase {
    pub what: String,
    pub request: RawRequest,
    pub status: u16,
    /// The code of the JSON-RPC error; `None` if there must be no error.
    pub code: Option<i64>,
    /// The ID in the response, exactly as it was sent; `None` if there must be no ID.
    pub id: Option<String>,
    pub header: Option<(&'static str, &'static str)>,
}

impl RequestCase {
    pub fn new(what: impl Into<String>, request: RawRequest, status: u16, code: i64, id: Option<&str>) -> Self {
        let id = id.map(str::to_owned);
        Self { what: what.into(), request, status, code: Some(code), id, header: None }
    }

    pub fn fine(what: impl Into<String>, request: RawRequest) -> Self {
        Self { code: None, ..Self::new(what, request, 200, 0, Some("1")) }
    }

    pub async fn check(&self, endpoint: impl Into<TestEndpoint>) {
        let reply = self.request.send(endpoint).await;
        let context = format!("{}: {} {}", self.what, reply.status, reply.text());
        assert_eq!(reply.status, self.status, "{context}");
        if let Some((name, value)) = self.header {
            assert_eq!(reply.header(name), Some(value), "{context}");
        }
        if self.code.is_none() && self.status != 200 {
            assert_eq!(reply.text(), "", "{context}");
            return;
        }
        assert_eq!(reply.header("content-type"), Some("application/json"), "{context}");
        let body = reply.json();
        assert_eq!(body["jsonrpc"], "2.0", "{context}");
        match &self.id {
            // Compared as text, because a number may be larger than a parser supports.
            Some(id) => assert!(reply.text().starts_with(&format!(r#"{{"jsonrpc":"2.0","id":{id},"#)), "{context}"),
            None => assert!(body.get("id").is_none(), "{context}"),
        }
        match self.code {
            Some(code) => {
                assert_eq!(body["error"]["code"], code, "{context}");
                assert!(body["error"]["message"].as_str().is_some_and(|message| !message.is_empty()), "{context}");
                assert!(body.get("result").is_none(), "{context}");
            }
            None => assert!(body.get("result").is_some(), "{context}"),
        }
    }
}

//! Rows of the tables of bad requests.

use crate::Endpoint;
use crate::raw::Request;

/// A request, and the status, code and ID that it is answered with.
pub struct Row {
    pub what: String,
    pub request: Request,
    pub status: u16,
    /// The JSON-RPC error; none when there is no error.
    pub code: Option<i64>,
    /// The ID that comes back, as the very text that was sent; none when there must not be one.
    pub id: Option<String>,
    pub header: Option<(&'static str, &'static str)>,
}

impl Row {
    pub fn new(what: impl Into<String>, request: Request, status: u16, code: i64, id: Option<&str>) -> Self {
        let id = id.map(str::to_owned);
        Self { what: what.into(), request, status, code: Some(code), id, header: None }
    }

    pub fn fine(what: impl Into<String>, request: Request) -> Self {
        Self { code: None, ..Self::new(what, request, 200, 0, Some("1")) }
    }

    pub async fn check(&self, endpoint: impl Into<Endpoint>) {
        let reply = self.request.send(endpoint).await;
        let shown = format!("{}: {} {}", self.what, reply.status, reply.text());
        assert_eq!(reply.status, self.status, "{shown}");
        if let Some((name, value)) = self.header {
            assert_eq!(reply.header(name), Some(value), "{shown}");
        }
        if self.code.is_none() && self.status != 200 {
            assert_eq!(reply.text(), "", "{shown}");
            return;
        }
        assert_eq!(reply.header("content-type"), Some("application/json"), "{shown}");
        let body = reply.json();
        assert_eq!(body["jsonrpc"], "2.0", "{shown}");
        match &self.id {
            // As text: a number may be larger than a reader can hold.
            Some(id) => assert!(reply.text().starts_with(&format!(r#"{{"jsonrpc":"2.0","id":{id},"#)), "{shown}"),
            None => assert!(body.get("id").is_none(), "{shown}"),
        }
        match self.code {
            Some(code) => {
                assert_eq!(body["error"]["code"], code, "{shown}");
                assert!(body["error"]["message"].as_str().is_some_and(|message| !message.is_empty()), "{shown}");
                assert!(body.get("result").is_none(), "{shown}");
            }
            None => assert!(body.get("result").is_some(), "{shown}"),
        }
    }
}

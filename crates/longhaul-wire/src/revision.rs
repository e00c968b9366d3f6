use serde::{Deserialize, Serialize};

use crate::jsonrpc::RpcError;
use crate::{HeaderValue, refusal};

/// Revision of the protocol, oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Revision {
    /// Has batches; has no elicitation, structured output or titles.
    #[serde(rename = "2025-03-26")]
    V2025_03_26,
    /// Adds elicitation by form, structured output, titles and the version header; removes batches.
    #[serde(rename = "2025-06-18")]
    V2025_06_18,
    /// Adds tasks, elicitation by URL and sampling with tools.
    #[serde(rename = "2025-11-25")]
    V2025_11_25,
    /// Stateless: every request describes its client, and there is no session. Tasks are an extension.
    #[serde(rename = "2026-07-28")]
    V2026_07_28,
}

impl Revision {
    /// The revisions of sessions, the newest first.
    pub const SESSIONS: [Self; 3] = [Self::V2025_11_25, Self::V2025_06_18, Self::V2025_03_26];

    /// The stateless revisions, the newest first.
    pub const STATELESS: [Self; 1] = [Self::V2026_07_28];

    /// Offered to a client that asks for a revision without sessions, or for an unknown one.
    pub const LATEST_SESSION: Self = Self::V2025_11_25;

    /// Assumed for a request with neither a session nor a version header.
    pub const ASSUMED: Self = Self::V2025_03_26;

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::STATELESS.into_iter().chain(Self::SESSIONS).find(|revision| revision.as_str() == name)
    }

    /// The revision of a session whose client asked for `requested`: always one of [`SESSIONS`](Self::SESSIONS).
    pub fn negotiate(requested: &str) -> Self {
        Self::parse_session(requested).unwrap_or(Self::LATEST_SESSION)
    }

    /// The revision of an HTTP request after the handshake, by its `MCP-Protocol-Version` header. The negotiated revision
    /// outranks a header that is missing or names another revision of sessions. Any other name refuses the request.
    pub fn of_request(header: HeaderValue<'_>, session: Option<Self>) -> Result<Self, RpcError> {
        let sent = match header {
            HeaderValue::Absent => return Ok(session.unwrap_or(Self::ASSUMED)),
            HeaderValue::Once(bytes) => String::from_utf8_lossy(bytes.trim_ascii()),
            HeaderValue::Repeated => {
                return Err(RpcError::invalid_request("MCP-Protocol-Version is sent more than once"));
            }
        };
        let named = Self::parse_session(&sent)
            .ok_or_else(|| refusal::unsupported_header(&sent, &Self::SESSIONS.map(Self::as_str)))?;
        Ok(session.unwrap_or(named))
    }

    fn parse_session(name: &str) -> Option<Self> {
        Self::parse(name).filter(|revision| !revision.is_stateless())
    }

    pub fn is_stateless(self) -> bool {
        self >= Self::V2026_07_28
    }

    /// Whether tasks are part of the revision itself: a call may ask for one, and tools declare whether they run as one.
    pub fn has_tasks(self) -> bool {
        self == Self::V2025_11_25
    }

    /// Whether several messages may come as one array.
    pub fn has_batches(self) -> bool {
        self == Self::V2025_03_26
    }

    pub fn has_elicitation(self) -> bool {
        self >= Self::V2025_06_18
    }

    pub fn has_url_elicitation(self) -> bool {
        self >= Self::V2025_11_25
    }

    /// Whether sampling may offer tools to the model, and clients declare whether they supply context.
    pub fn has_sampling_tools(self) -> bool {
        self >= Self::V2025_11_25
    }

    /// Whether tools have `outputSchema`, and results `structuredContent` and links to resources. In the revisions of
    /// sessions both the schema and the content must be objects.
    pub fn has_structured_content(self) -> bool {
        self >= Self::V2025_06_18
    }

    /// Whether tools, prompts, resources and servers have a `title`; prompts and resources then have `_meta`, too.
    pub fn has_titles(self) -> bool {
        self >= Self::V2025_06_18
    }

    /// Whether prompts and resources have icons.
    pub fn has_icons(self) -> bool {
        self >= Self::V2025_11_25
    }
}

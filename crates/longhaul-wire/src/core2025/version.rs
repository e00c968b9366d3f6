use serde::{Deserialize, Serialize};

use crate::jsonrpc::RpcError;
use crate::{HeaderValue, refusal};

/// A revision of the protocol in its stateful era, oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Revision {
    /// Batches; no elicitation, no structured output, no titles.
    #[serde(rename = "2025-03-26")]
    V2025_03_26,
    /// No batches any more; elicitation by form, structured output, titles, the version header.
    #[serde(rename = "2025-06-18")]
    V2025_06_18,
    /// Tasks; elicitation by URL, sampling with tools.
    #[serde(rename = "2025-11-25")]
    V2025_11_25,
}

impl Revision {
    /// All that are spoken, the newest first.
    pub const ALL: [Self; 3] = [Self::V2025_11_25, Self::V2025_06_18, Self::V2025_03_26];

    /// Their names, the newest first.
    pub const NAMES: [&'static str; 3] = ["2025-11-25", "2025-06-18", "2025-03-26"];

    /// What is offered to whoever asks for something else.
    pub const LATEST: Self = Self::V2025_11_25;

    /// What a request is taken for that says nothing and belongs to no session.
    pub const ASSUMED: Self = Self::V2025_03_26;

    /// The revision's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
        }
    }

    /// The revision of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.as_str() == name)
    }

    /// What a session speaks whose client asked for `requested`: that, if it is spoken here, else the newest.
    pub fn negotiate(requested: &str) -> Self {
        Self::parse(requested).unwrap_or(Self::LATEST)
    }

    /// The revision of an HTTP request after the handshake, by its `MCP-Protocol-Version` header. What the session
    /// negotiated counts for more than a header that is missing or names another revision of this era; a name that
    /// is not spoken here refuses the request.
    pub fn of_request(header: HeaderValue<'_>, session: Option<Self>) -> Result<Self, RpcError> {
        let sent = match header {
            HeaderValue::Absent => return Ok(session.unwrap_or(Self::ASSUMED)),
            HeaderValue::Once(bytes) => String::from_utf8_lossy(bytes.trim_ascii()),
            HeaderValue::Repeated => {
                return Err(RpcError::invalid_request("MCP-Protocol-Version is sent more than once"));
            }
        };
        let named = Self::parse(&sent).ok_or_else(|| refusal::unsupported_header(&sent, &Self::NAMES))?;
        Ok(session.unwrap_or(named))
    }

    /// Whether requests may ask for a task, and tools say whether they can become one.
    pub fn has_tasks(self) -> bool {
        self >= Self::V2025_11_25
    }

    /// Whether several messages may come as one array.
    pub fn has_batches(self) -> bool {
        self == Self::V2025_03_26
    }

    /// Whether users can be asked.
    pub fn has_elicitation(self) -> bool {
        self >= Self::V2025_06_18
    }

    /// Whether users can be sent to a URL.
    pub fn has_url_elicitation(self) -> bool {
        self >= Self::V2025_11_25
    }

    /// Whether models that are asked can be given tools, and say whether they take context.
    pub fn has_sampling_tools(self) -> bool {
        self >= Self::V2025_11_25
    }

    /// Whether tools have `outputSchema` and results `structuredContent` (objects, both) and links to resources.
    pub fn has_structured_content(self) -> bool {
        self >= Self::V2025_06_18
    }

    /// Whether tools and servers have a `title`.
    pub fn has_titles(self) -> bool {
        self >= Self::V2025_06_18
    }
}

//! Resources and resource templates: what clients see of them, and what reading them gives.
//!
//! ```
//! use longhaul_wire::resource::{ResourceAddress, ResourceDeclaration};
//!
//! let report = ResourceDeclaration::draft("report://2026").name("The report").declare().unwrap();
//! assert!(matches!(report.address(), ResourceAddress::Uri(uri) if uri == "report://2026"));
//!
//! let reports = ResourceDeclaration::template_draft("report://{year}").declare().unwrap();
//! assert!(reports.matches("report://2025"));
//! ```

mod contents;
mod draft;
mod template;

pub(crate) use contents::as_tool_result;
pub use contents::{ResourceContent, ResourceContents};
pub use draft::{ResourceDraft, ResourceError, is_uri};
use longhaul_task::Json;
pub use template::{TEMPLATE_VARIABLES_MAX, UriTemplate};

use crate::jsonrpc::{RequestId, RpcError, code, quote};
use crate::list::{self, PageEnd};
use crate::presentation::Presentation;
use crate::{ReplyTo, Revision, jsonrpc, subscription, text};

/// The longest URI, in bytes: of a resource, of a template, and of a request for either.
pub const URI_BYTES_MAX: usize = 4_096;

/// How clients should treat a resource. All of these are hints.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ResourceAnnotations {
    /// For the user.
    pub for_user: bool,
    /// For the model.
    pub for_assistant: bool,
    /// From 0 (optional) to 1 (required); other values are brought into this range.
    pub priority: Option<f64>,
    /// The time of the last change, as in `2026-07-28T10:30:00Z`.
    pub last_modified: Option<String>,
}

impl ResourceAnnotations {
    /// As JSON; `None` if nothing is set.
    fn to_json(&self) -> Option<String> {
        let mut members = String::new();
        let audience = [(self.for_user, "user"), (self.for_assistant, "assistant")];
        if self.for_user || self.for_assistant {
            members.push_str(",\"audience\":");
            let named = audience.iter().filter(|(is_named, _)| *is_named);
            text::push_array(&mut members, named, |out, (_, name)| text::push_str(out, name));
        }
        if let Some(priority) = self.priority.filter(|priority| !priority.is_nan()) {
            text::push_raw_member(&mut members, "priority", &priority.clamp(0.0, 1.0).to_string());
        }
        if let Some(last_modified) = &self.last_modified {
            text::push_str_member(&mut members, "lastModified", last_modified);
        }
        (!members.is_empty()).then(|| format!("{{{}}}", members.trim_start_matches(',')))
    }
}

/// What a declaration stands for: one resource, or all whose URIs match a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResourceAddress {
    Uri(String),
    Template(UriTemplate),
}

impl ResourceAddress {
    /// The URI or the text of the template.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Uri(uri) => uri,
            Self::Template(template) => template.as_str(),
        }
    }
}

/// A resource, or a template of resources, that may be listed and read.
#[derive(Debug)]
pub struct ResourceDeclaration {
    address: ResourceAddress,
    name: String,
    presentation: Presentation,
    mime_type: Option<String>,
    size: Option<u64>,
    annotations: Option<String>,
}

impl ResourceDeclaration {
    /// Begins the declaration of one resource.
    pub fn draft(uri: impl Into<String>) -> ResourceDraft {
        ResourceDraft::new(uri.into(), false)
    }

    /// Begins the declaration of a template.
    pub fn template_draft(template: impl Into<String>) -> ResourceDraft {
        ResourceDraft::new(template.into(), true)
    }

    pub fn address(&self) -> &ResourceAddress {
        &self.address
    }

    pub fn mime_type(&self) -> Option<&str> {
        self.mime_type.as_deref()
    }

    /// Whether a URI is the resource's, or matches the template.
    pub fn matches(&self, uri: &str) -> bool {
        match &self.address {
            ResourceAddress::Uri(own) => own == uri,
            ResourceAddress::Template(template) => uri.len() <= URI_BYTES_MAX && template.matches(uri).is_some(),
        }
    }

    fn write(&self, out: &mut String, revision: Revision) {
        out.push_str(match &self.address {
            ResourceAddress::Uri(_) => "{\"uri\":",
            ResourceAddress::Template(_) => "{\"uriTemplate\":",
        });
        text::push_str(out, self.address.as_str());
        text::push_str_member(out, "name", &self.name);
        self.presentation.write_title_and_description(out, revision);
        if let Some(mime_type) = &self.mime_type {
            text::push_str_member(out, "mimeType", mime_type);
        }
        if let Some(annotations) = &self.annotations {
            text::push_raw_member(out, "annotations", annotations);
        }
        if let Some(size) = self.size {
            text::push_number_member(out, "size", size);
        }
        self.presentation.write_icons_and_meta(out, revision);
        out.push('}');
    }
}

/// The response to `resources/list`.
pub fn list(to: &ReplyTo<'_>, resources: &[&ResourceDeclaration], end: PageEnd<'_>) -> String {
    list::page(to, "resources", resources.iter(), end, |out, resource| resource.write(out, to.revision))
}

/// The response to `resources/templates/list`.
pub fn list_templates(to: &ReplyTo<'_>, templates: &[&ResourceDeclaration], end: PageEnd<'_>) -> String {
    list::page(to, "resourceTemplates", templates.iter(), end, |out, template| template.write(out, to.revision))
}

/// The notification that the contents of a resource have changed; `subscription` is the request of the stream that
/// carries it, in the stateless era.
pub fn updated(uri: &str, subscription: Option<&RequestId>) -> String {
    jsonrpc::notification("notifications/resources/updated", uri.len() + 128, |out| {
        out.push_str("{\"uri\":");
        text::push_str(out, uri);
        if let Some(id) = subscription {
            out.push(',');
            subscription::write_id(out, id);
        }
        out.push('}');
    })
}

/// The error for a URI that no resource has.
pub fn not_found(uri: &str, revision: Revision) -> RpcError {
    let mut data = String::from("{\"uri\":");
    text::push_str(&mut data, &quote(uri));
    data.push('}');
    let error = RpcError::new(code::RESOURCE_NOT_FOUND, "Resource not found").with_data(Json::from_text(data));
    of_revision(error, revision)
}

/// An error of a read in the form of a revision: the stateless ones have no code of its own for a missing resource.
pub(crate) fn of_revision(mut error: RpcError, revision: Revision) -> RpcError {
    if error.code == code::RESOURCE_NOT_FOUND && revision.is_stateless() {
        error.code = code::INVALID_PARAMS;
    }
    error
}

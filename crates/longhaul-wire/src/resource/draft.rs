use longhaul_task::Json;

use super::{ResourceAddress, ResourceAnnotations, ResourceDeclaration, URI_BYTES_MAX, UriTemplate};
use crate::Icon;
use crate::presentation::Presentation;

/// A declaration in the making.
#[derive(Debug, Clone)]
pub struct ResourceDraft {
    address: String,
    is_template: bool,
    name: Option<String>,
    presentation: Presentation,
    mime_type: Option<String>,
    size: Option<u64>,
    annotations: ResourceAnnotations,
}

/// Why a resource or a template cannot be declared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResourceError {
    /// Clients would refuse the whole list for it.
    #[error("{0:?} is not a URI: it needs a scheme and `:`, has at most {URI_BYTES_MAX} bytes, and no spaces")]
    Uri(String),
    /// The template cannot be used.
    #[error("the URI template {template:?} cannot be used: {why}")]
    Template {
        /// The text of the template.
        template: String,
        /// What is wrong.
        why: &'static str,
    },
    /// The variables of a template are not those that its function takes, or that it completes.
    #[error("the URI template {template:?} has no variable {variable:?}, which its function or a completion needs")]
    Variable {
        /// The text of the template.
        template: String,
        /// The name of the variable.
        variable: String,
    },
    /// `_meta` is not an object.
    #[error("the `_meta` of the resource {0:?} must be an object")]
    Meta(String),
}

impl ResourceDraft {
    pub(super) fn new(address: String, is_template: bool) -> Self {
        Self {
            address,
            is_template,
            name: None,
            presentation: Presentation::default(),
            mime_type: None,
            size: None,
            annotations: ResourceAnnotations::default(),
        }
    }

    /// The name. Without it the last part of the URI is the name.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// A name for people.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.presentation.title = Some(title.into());
        self
    }

    /// What it contains.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.presentation.description = Some(description.into());
        self
    }

    /// The type of its contents; of a template only if all resources have it.
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }

    /// The number of bytes of its contents. Templates have none.
    pub fn size(mut self, size: u64) -> Self {
        self.size = Some(size);
        self
    }

    /// Hints for clients.
    pub fn annotations(mut self, annotations: ResourceAnnotations) -> Self {
        self.annotations = annotations;
        self
    }

    /// Adds an icon.
    pub fn icon(mut self, icon: Icon) -> Self {
        self.presentation.icons.push(icon);
        self
    }

    /// Additional data for clients: an object.
    pub fn meta(mut self, meta: Json) -> Self {
        self.presentation.meta = Some(meta);
        self
    }

    /// Checks everything that a client might refuse later.
    pub fn declare(self) -> Result<ResourceDeclaration, ResourceError> {
        if !is_uri(&self.address) {
            return Err(ResourceError::Uri(self.address));
        }
        let Some(presentation) = self.presentation.with_meta_on_one_line() else {
            return Err(ResourceError::Meta(self.address));
        };
        let name = self.name.unwrap_or_else(|| last_part(&self.address).to_owned());
        let address = if self.is_template {
            ResourceAddress::Template(UriTemplate::parse(&self.address)?)
        } else {
            ResourceAddress::Uri(self.address)
        };
        Ok(ResourceDeclaration {
            address,
            name,
            presentation,
            mime_type: self.mime_type,
            size: self.size.filter(|_| !self.is_template),
            annotations: self.annotations.to_json(),
        })
    }
}

/// Whether a text can be the URI of a resource, or a URI template: a scheme, a colon and a rest, of at most [`URI_BYTES_MAX`]
/// bytes, without whitespace and control characters.
pub fn is_uri(text: &str) -> bool {
    let is_scheme = |scheme: &str| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    };
    text.len() <= URI_BYTES_MAX
        && text.split_once(':').is_some_and(|(scheme, rest)| is_scheme(scheme) && !rest.is_empty())
        && !text.chars().any(|character| character.is_whitespace() || character.is_control())
}

fn last_part(uri: &str) -> &str {
    let last = uri.rsplit(['/', ':']).find(|part| !part.is_empty());
    last.unwrap_or(uri)
}

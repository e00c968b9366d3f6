use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use longhaul_engine::{Ctx, EngineTool, Failure, ToolLimits};
use longhaul_receiver::CatalogueEntry;
use longhaul_task::{Json, OnCrash};
use longhaul_wire::Icon;
use longhaul_wire::resource::{
    ResourceAddress, ResourceAnnotations, ResourceDeclaration, ResourceDraft, ResourceError, UriTemplate,
};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::{IntoResourceContents, ReadFuture, ResourceParts};
use crate::CompletionRequest;
use crate::completion::Completers;
use crate::text_arguments::TextArguments;

/// Many resources whose URIs differ in variables: `report://{year}/{month}`.
///
/// A variable `{name}` matches text without `/`, `?` and `#`; `{+name}` matches these characters, too. Values are
/// percent-decoded, so they may contain any character: check them before you build a file path from them.
///
/// ```
/// use longhaul::{Ctx, JsonSchema, ResourceTemplate};
///
/// #[derive(serde::Deserialize, JsonSchema)]
/// struct Month {
///     year: u16,
///     month: u8,
/// }
///
/// let reports = ResourceTemplate::new("report://{year}/{month}", |_: Ctx, Month { year, month }| async move {
///     Ok((1..=12).contains(&month).then(|| format!("The report of {month}/{year}")))
/// })
/// .description("Monthly reports.")
/// .complete_from("year", ["2025", "2026"]);
/// ```
pub struct ResourceTemplate {
    template: String,
    draft: ResourceDraft,
    variables: TextArguments,
    completers: Completers,
    parts: ResourceParts,
}

impl ResourceTemplate {
    /// A template from an async function that gets a [`Ctx`] and the typed variables. A client that reads a URI is told that
    /// there is no such resource if the variables do not fit their types, or if the function returns `None`.
    pub fn new<V, R, F, Fut>(template: impl Into<String>, function: F) -> Self
    where
        V: DeserializeOwned + JsonSchema + Send + 'static,
        R: IntoResourceContents + 'static,
        F: Fn(Ctx, V) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, Failure>> + Send + 'static,
    {
        let template = template.into();
        let variables = TextArguments::of::<V>();
        let (matcher, read, function) = (UriTemplate::parse(&template).ok(), variables.clone(), Arc::new(function));
        let function = move |ctx: Ctx, uri: &str| -> ReadFuture {
            let values = matcher.as_ref().and_then(|template| template.matches(uri));
            let values =
                values.map(|values| values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect());
            let variables = values.and_then(|values| read.read::<V>(values).ok());
            let function = Arc::clone(&function);
            Box::pin(async move {
                match variables {
                    Some(variables) => function(ctx, variables).await?.into_contents(),
                    None => Ok(None),
                }
            })
        };
        Self {
            draft: ResourceDeclaration::template_draft(template.as_str()),
            template,
            variables,
            completers: Completers::default(),
            parts: ResourceParts::new(Arc::new(function)),
        }
    }

    /// The name. The default is the last part of the template.
    pub fn name(self, name: impl Into<String>) -> Self {
        Self { draft: self.draft.name(name), ..self }
    }

    /// A name for people.
    pub fn title(self, title: impl Into<String>) -> Self {
        Self { draft: self.draft.title(title), ..self }
    }

    /// What the resources contain, for models and people.
    pub fn description(self, description: impl Into<String>) -> Self {
        Self { draft: self.draft.description(description), ..self }
    }

    /// The type of the contents, if all of the resources have the same.
    pub fn mime_type(self, mime_type: impl Into<String>) -> Self {
        Self { draft: self.draft.mime_type(mime_type), ..self }
    }

    /// Hints for clients.
    pub fn annotations(self, annotations: ResourceAnnotations) -> Self {
        Self { draft: self.draft.annotations(annotations), ..self }
    }

    /// Adds an icon.
    pub fn icon(self, icon: Icon) -> Self {
        Self { draft: self.draft.icon(icon), ..self }
    }

    /// Additional data for clients: an object, sent as `_meta`.
    pub fn meta(self, meta: &serde_json::Value) -> Self {
        Self { draft: self.draft.meta(Json::from_text(meta.to_string())), ..self }
    }

    /// How long clients may cache what they read, at protocol revisions with caching. Without this they may not cache it.
    pub fn cache(mut self, time: Duration) -> Self {
        self.parts.cache.ttl_ms = crate::tool::ms(time);
        self
    }

    /// Allows caches to share the contents between users. Use it only if every caller gets the same contents.
    pub fn public(mut self) -> Self {
        self.parts.cache.is_public = true;
        self
    }

    /// Completes a variable while the user types it. The function returns the matching values, the best first; clients get
    /// at most 100 of them.
    pub fn complete<F, Fut>(mut self, variable: impl Into<String>, function: F) -> Self
    where
        F: Fn(CompletionRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<String>, Failure>> + Send + 'static,
    {
        self.completers.add(variable.into(), function);
        self
    }

    /// Completes a variable from a fixed list of values.
    pub fn complete_from<V: Into<String>>(
        mut self,
        variable: impl Into<String>,
        values: impl IntoIterator<Item = V>,
    ) -> Self {
        self.completers.add_values(variable.into(), values.into_iter().map(Into::into).collect());
        self
    }

    /// Limits of the function: how many reads run at once, and their sizes.
    pub fn limits(mut self, limits: ToolLimits) -> Self {
        self.parts.rules.limits = limits;
        self
    }

    /// Reads its resources as tasks for clients that ask for one, as [`Resource::durable`](super::Resource::durable) does.
    pub fn durable(mut self, on_crash: OnCrash) -> Self {
        self.parts.rules.on_crash = Some(on_crash);
        self
    }

    pub(crate) fn split(self) -> Result<(CatalogueEntry, Vec<EngineTool>), ResourceError> {
        let declaration = self.draft.declare()?;
        if let ResourceAddress::Template(template) = declaration.address() {
            let required = self.variables.iter().filter(|variable| variable.is_required);
            let mut needed = required.map(|variable| variable.name.as_str()).chain(self.completers.arguments());
            if let Some(variable) = needed.find(|name| !template.variables().any(|known| known == *name)) {
                return Err(ResourceError::Variable { template: self.template, variable: variable.to_owned() });
            }
        }
        Ok(self.parts.split(declaration, self.completers))
    }
}

impl fmt::Debug for ResourceTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResourceTemplate").field("template", &self.template).finish_non_exhaustive()
    }
}

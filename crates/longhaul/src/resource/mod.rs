//! Declaring resources and resource templates.

mod contents;
mod template;

use std::fmt;
use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use longhaul_engine::{Ctx, EngineTool, Failure, ToolLimits};
use longhaul_receiver::{CatalogueEntry, CatalogueResource};
use longhaul_task::{Json, OnCrash, TaskError};
use longhaul_wire::call_result::function_name;
use longhaul_wire::resource::{
    ResourceAnnotations, ResourceContent, ResourceContents, ResourceDeclaration, ResourceDraft, ResourceError,
    not_found,
};
use longhaul_wire::{Cache, Icon, Revision};
use serde::Deserialize;

pub use self::contents::IntoResourceContents;
pub use self::template::ResourceTemplate;
use crate::completion::Completers;
use crate::function::{self, FunctionRules};
use crate::regular_file::read_regular_file;

/// How long the contents of a static resource may be cached.
const STATIC_CACHE_MS: u64 = 60_000;

/// A resource: something with a URI that clients can read, such as a report, a file or a table.
///
/// ```
/// use longhaul::{Ctx, Resource};
///
/// let fixed = Resource::text("report://2025", "Sales have doubled.").title("The report of 2025");
/// let file = Resource::file("docs://readme", "README.md").mime_type("text/markdown");
/// let made = Resource::new("report://today", |_: Ctx| async { Ok("Nothing was sold yet.") });
/// ```
///
/// Its function is async, gets a [`Ctx`], and may ask the client, like that of a [`Tool`](crate::Tool). Tell subscribers
/// of a change with [`ServerHandle::resource_updated`](crate::ServerHandle::resource_updated).
pub struct Resource {
    uri: String,
    draft: ResourceDraft,
    parts: ResourceParts,
}

type ReadFuture = Pin<Box<dyn Future<Output = Result<Option<ResourceContents>, Failure>> + Send>>;
/// Reads the resource of a URI.
type ReadFunction = dyn Fn(Ctx, &str) -> ReadFuture + Send + Sync;

/// What resources and templates have in common.
struct ResourceParts {
    function: Arc<ReadFunction>,
    cache: Cache,
    rules: FunctionRules,
}

impl ResourceParts {
    fn new(function: Arc<ReadFunction>) -> Self {
        Self { function, cache: Cache::NONE, rules: FunctionRules::default() }
    }

    /// What clients see, and what the engine runs.
    fn split(self, declaration: ResourceDeclaration, completers: Completers) -> (CatalogueEntry, Vec<EngineTool>) {
        #[derive(Deserialize)]
        struct ReadInput {
            uri: String,
        }
        let engine_name = function_name("resources/read", declaration.address().as_str());
        let mime_type: Option<Arc<str>> = declaration.mime_type().map(Into::into);
        let (function, is_durable) = (self.function, self.rules.on_crash.is_some());
        let read = move |ctx, ReadInput { uri }: ReadInput| {
            let (reading, mime_type) = (function(ctx, &uri), mime_type.clone());
            async move {
                let contents = reading.await?.ok_or_else(|| missing(&uri))?;
                Ok(contents.into_json(&uri, mime_type.as_deref()))
            }
        };
        let own = function::engine_tool(engine_name.clone(), "resource", self.rules, read);
        let (completions, completing) = completers.split(&engine_name).unzip();
        let (engine_name, cache) = (engine_name.into(), self.cache);
        let resource = CatalogueResource { declaration, engine_name, is_durable, cache, completions };
        (CatalogueEntry::Resource(Arc::new(resource)), [Some(own), completing].into_iter().flatten().collect())
    }
}

/// The failure of a read whose resource does not exist. Revisions with another code for this get theirs when the response is
/// made.
fn missing(uri: &str) -> Failure {
    let error = not_found(uri, Revision::LATEST_SESSION);
    Failure::Protocol(TaskError { code: Some(error.code), message: error.message.into(), data: error.data })
}

impl Resource {
    /// A resource whose contents an async function makes at each read: a text, bytes, [`ResourceContent`] or several of
    /// them, or an `Option` of these, where `None` means that the resource does not exist.
    pub fn new<R, F, Fut>(uri: impl Into<String>, function: F) -> Self
    where
        R: IntoResourceContents + 'static,
        F: Fn(Ctx) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, Failure>> + Send + 'static,
    {
        let uri = uri.into();
        let function = move |ctx: Ctx, _: &str| -> ReadFuture {
            let reading = function(ctx);
            Box::pin(async move { reading.await?.into_contents() })
        };
        Self { draft: ResourceDeclaration::draft(uri.as_str()), uri, parts: ResourceParts::new(Arc::new(function)) }
    }

    /// A text that does not change.
    pub fn text(uri: impl Into<String>, text: impl Into<String>) -> Self {
        let text: Arc<str> = text.into().into();
        let size = text.len();
        let content = move || ResourceContent::text(&*text);
        Self::fixed(uri, size, content).mime_type("text/plain")
    }

    /// Bytes that do not change.
    pub fn blob(uri: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        let bytes: Arc<[u8]> = bytes.into().into();
        let size = bytes.len();
        let content = move || ResourceContent::blob(&bytes);
        Self::fixed(uri, size, content).mime_type("application/octet-stream")
    }

    fn fixed(
        uri: impl Into<String>,
        size: usize,
        content: impl Fn() -> ResourceContent + Send + Sync + 'static,
    ) -> Self {
        let mut resource = Self::new(uri, move |_| std::future::ready(Ok(content())));
        resource.draft = resource.draft.size(size as u64);
        resource.cache(Duration::from_millis(STATIC_CACHE_MS)).public()
    }

    /// A regular file of this machine, which is read at each request. Contents that are not UTF-8 are sent as bytes. If
    /// there is no such file, the resource does not exist for clients.
    pub fn file(uri: impl Into<String>, path: impl Into<PathBuf>) -> Self {
        let path: Arc<PathBuf> = Arc::new(path.into());
        Self::new(uri, move |_| {
            let path = Arc::clone(&path);
            async move {
                match read_regular_file(&path).await {
                    Ok(bytes) => Ok(Some(match String::from_utf8(bytes) {
                        Ok(text) => ResourceContent::text(text),
                        Err(other) => ResourceContent::blob(other.as_bytes()),
                    })),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                    Err(error) => {
                        // The cause may name files, so it is not sent to clients.
                        tracing::warn!(path = %path.display(), %error, "a resource cannot be read");
                        Err(Failure::tool("the file cannot be read"))
                    }
                }
            }
        })
    }

    /// The name. The default is the last part of the URI.
    pub fn name(self, name: impl Into<String>) -> Self {
        Self { draft: self.draft.name(name), ..self }
    }

    /// A name for people.
    pub fn title(self, title: impl Into<String>) -> Self {
        Self { draft: self.draft.title(title), ..self }
    }

    /// What it contains, for models and people.
    pub fn description(self, description: impl Into<String>) -> Self {
        Self { draft: self.draft.description(description), ..self }
    }

    /// The type of its contents.
    pub fn mime_type(self, mime_type: impl Into<String>) -> Self {
        Self { draft: self.draft.mime_type(mime_type), ..self }
    }

    /// The number of bytes of its contents. Static resources know it.
    pub fn size(self, size: u64) -> Self {
        Self { draft: self.draft.size(size), ..self }
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

    /// How long clients may cache what they read, at revisions with caching. By default not at all, and static resources
    /// for a minute.
    pub fn cache(mut self, time: Duration) -> Self {
        self.parts.cache.ttl_ms = crate::tool::ms(time);
        self
    }

    /// Allows caches to share the contents between users: every caller gets the same ones.
    pub fn public(mut self) -> Self {
        self.parts.cache.is_public = true;
        self
    }

    /// Limits of its function: reads at once, sizes.
    pub fn limits(mut self, limits: ToolLimits) -> Self {
        self.parts.rules.limits = limits;
        self
    }

    /// Reads it as a task for clients that ask for one, in the generations where a read can be a task: SEP-1686 and the
    /// dialect of the lesson. `on_crash` says what happens to such a task when the server crashes. Other clients wait for
    /// the contents, and without this call all clients do: the request for a task is ignored. So it is for static
    /// resources, which need no task.
    ///
    /// A task of a read has no subtasks, because their results would have to be contents of resources, too; use
    /// [`step`](Ctx::step)s.
    pub fn durable(mut self, on_crash: OnCrash) -> Self {
        self.parts.rules.on_crash = Some(on_crash);
        self
    }

    pub(crate) fn split(self) -> Result<(CatalogueEntry, Vec<EngineTool>), ResourceError> {
        Ok(self.parts.split(self.draft.declare()?, Completers::default()))
    }
}

impl fmt::Debug for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resource").field("uri", &self.uri).finish_non_exhaustive()
    }
}

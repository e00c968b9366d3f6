//! What a server offers: tools, prompts, resources and resource templates, as clients see them.
//!
//! A request reads one snapshot of the catalogue from its start to its end. A change makes a new snapshot
//! ([`shared`]), so that readers never wait for a change.

mod entries;
mod shared;

use std::sync::Arc;

use longhaul_wire::prompt::PromptDeclaration;
use longhaul_wire::resource::{ResourceAddress, ResourceDeclaration};
use longhaul_wire::tool::ToolDeclaration;
use longhaul_wire::{Cache, ServerFeatures};

use crate::CallRules;

pub(crate) use self::entries::Entries;
pub(crate) use self::shared::{CatalogueChange, CatalogueChanges, SharedCatalogue};

/// One tool.
#[derive(Debug)]
pub struct CatalogueTool {
    pub name: Arc<str>,
    pub declaration: ToolDeclaration,
    /// A sentence for the model to continue with while the tool runs as a task.
    pub immediate_response: Option<String>,
    pub rules: CallRules,
}

/// One prompt.
#[derive(Debug)]
pub struct CataloguePrompt {
    pub declaration: PromptDeclaration,
    /// The name under which the engine runs it.
    pub engine_name: Arc<str>,
    /// Whether it can run as a task.
    pub is_durable: bool,
    pub completions: Option<Completions>,
}

/// One resource, or one template.
#[derive(Debug)]
pub struct CatalogueResource {
    pub declaration: ResourceDeclaration,
    /// The name under which the engine runs it.
    pub engine_name: Arc<str>,
    /// Whether it can be read as a task.
    pub is_durable: bool,
    /// How long what is read may be cached.
    pub cache: Cache,
    pub completions: Option<Completions>,
}

/// How arguments are completed.
#[derive(Debug)]
pub struct Completions {
    /// The name under which the engine runs the function that completes them.
    pub engine_name: Arc<str>,
    /// The names of the arguments that are completed.
    pub arguments: Vec<String>,
}

/// Anything that a catalogue holds.
#[derive(Debug, Clone)]
pub enum CatalogueEntry {
    Tool(Arc<CatalogueTool>),
    Prompt(Arc<CataloguePrompt>),
    Resource(Arc<CatalogueResource>),
}

/// The name of an entry: of a tool, of a prompt, or the URI or template of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryName<'a> {
    Tool(&'a str),
    Prompt(&'a str),
    Resource(&'a str),
}

/// Why an entry cannot be added.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogueError {
    /// Another entry of the same kind has the same name.
    #[error("there are two {kind} named {name:?}")]
    Twice {
        /// What both are.
        kind: &'static str,
        /// Their name.
        name: Arc<str>,
    },
}

/// What a server offers, in the order in which it was added.
#[derive(Debug, Default, Clone)]
pub struct Catalogue {
    pub(crate) tools: Entries<CatalogueTool>,
    pub(crate) prompts: Entries<CataloguePrompt>,
    pub(crate) resources: Entries<CatalogueResource>,
    pub(crate) templates: Entries<CatalogueResource>,
    /// What is declared to clients. Kept up to date by changes, because every request reads it.
    features: ServerFeatures,
}

impl CatalogueEntry {
    pub fn tool(declaration: ToolDeclaration, immediate_response: Option<String>, rules: CallRules) -> Self {
        Self::Tool(Arc::new(CatalogueTool { name: declaration.name().into(), declaration, immediate_response, rules }))
    }

    /// The names under which the engine runs it.
    pub(crate) fn engine_names(&self) -> Vec<Arc<str>> {
        let (own, completions) = match self {
            Self::Tool(tool) => (&tool.name, None),
            Self::Prompt(prompt) => (&prompt.engine_name, prompt.completions.as_ref()),
            Self::Resource(resource) => (&resource.engine_name, resource.completions.as_ref()),
        };
        [Some(own), completions.map(|completions| &completions.engine_name)].into_iter().flatten().cloned().collect()
    }
}

impl Catalogue {
    /// Adds an entry whose name is new.
    pub fn add(&mut self, entry: CatalogueEntry) -> Result<(), CatalogueError> {
        let (kind, name) = match &entry {
            CatalogueEntry::Tool(tool) => ("tools", Arc::clone(&tool.name)),
            CatalogueEntry::Prompt(prompt) => ("prompts", prompt.declaration.name().into()),
            CatalogueEntry::Resource(resource) => ("resources", resource.declaration.address().as_str().into()),
        };
        match self.put(entry) {
            None => Ok(()),
            Some(_) => Err(CatalogueError::Twice { kind, name }),
        }
    }

    /// Adds an entry, or replaces the one of its name, which is returned.
    pub(crate) fn put(&mut self, entry: CatalogueEntry) -> Option<CatalogueEntry> {
        let replaced = match entry {
            CatalogueEntry::Tool(tool) => {
                let name = Arc::clone(&tool.name);
                self.tools.put(name, tool).map(CatalogueEntry::Tool)
            }
            CatalogueEntry::Prompt(prompt) => {
                self.offer_prompts();
                let name = prompt.declaration.name().into();
                self.prompts.put(name, prompt).map(CatalogueEntry::Prompt)
            }
            CatalogueEntry::Resource(resource) => {
                self.offer_resources();
                let name = resource.declaration.address().as_str().into();
                let entries = match resource.declaration.address() {
                    ResourceAddress::Uri(_) => &mut self.resources,
                    ResourceAddress::Template(_) => &mut self.templates,
                };
                entries.put(name, resource).map(CatalogueEntry::Resource)
            }
        };
        self.count_completions();
        replaced
    }

    pub(crate) fn remove(&mut self, name: EntryName<'_>) -> Option<CatalogueEntry> {
        let removed = match name {
            EntryName::Tool(name) => self.tools.remove(name).map(CatalogueEntry::Tool),
            EntryName::Prompt(name) => self.prompts.remove(name).map(CatalogueEntry::Prompt),
            EntryName::Resource(address) => {
                let removed = self.resources.remove(address).or_else(|| self.templates.remove(address));
                removed.map(CatalogueEntry::Resource)
            }
        };
        self.count_completions();
        removed
    }

    /// Declares prompts to clients, even if there are none yet.
    pub fn offer_prompts(&mut self) {
        self.features.prompts = true;
    }

    /// Declares resources to clients, even if there are none yet.
    pub fn offer_resources(&mut self) {
        self.features.resources = true;
    }

    /// What is declared to clients.
    pub(crate) fn features(&self) -> ServerFeatures {
        ServerFeatures { tells_changes: true, ..self.features }
    }

    fn count_completions(&mut self) {
        self.features.completions = self.prompts.iter().any(|prompt| prompt.completions.is_some())
            || self.templates.iter().any(|template| template.completions.is_some());
    }

    /// The resource of a URI: the one that has it, else the first template that it matches.
    pub(crate) fn find_resource(&self, uri: &str) -> Option<&Arc<CatalogueResource>> {
        let matches = |template: &&Arc<CatalogueResource>| template.declaration.matches(uri);
        self.resources.find(uri).or_else(|| self.templates.iter().find(matches))
    }
}

//! The tools that are offered: how each looks to clients.

use std::collections::HashMap;
use std::sync::Arc;

use longhaul_wire::tool::ToolDeclaration;

/// The tools of a server, in the order in which they were added.
#[derive(Debug, Default)]
pub struct Catalogue {
    tools: Vec<Offered>,
    by_name: HashMap<Arc<str>, usize>,
}

/// One tool.
#[derive(Debug)]
pub struct Offered {
    /// What clients call it by.
    pub name: Arc<str>,
    /// How it looks to clients.
    pub declaration: ToolDeclaration,
    /// A sentence for the model to go on with while the tool runs as a task.
    pub immediate_response: Option<String>,
}

/// Why a tool cannot be offered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogueError {
    /// There is one already.
    #[error("there are two tools named {0:?}")]
    Twice(Arc<str>),
}

impl Catalogue {
    /// Adds a tool.
    pub fn add(
        &mut self,
        declaration: ToolDeclaration,
        immediate_response: Option<String>,
    ) -> Result<(), CatalogueError> {
        let name: Arc<str> = declaration.name().into();
        if self.by_name.contains_key(&name) {
            return Err(CatalogueError::Twice(name));
        }
        self.by_name.insert(Arc::clone(&name), self.tools.len());
        self.tools.push(Offered { name, declaration, immediate_response });
        Ok(())
    }

    /// The tool of that name.
    pub fn find(&self, name: &str) -> Option<&Offered> {
        self.by_name.get(name).map(|place| &self.tools[*place])
    }

    /// All tools.
    pub fn declarations(&self) -> Vec<&ToolDeclaration> {
        self.tools.iter().map(|offered| &offered.declaration).collect()
    }
}

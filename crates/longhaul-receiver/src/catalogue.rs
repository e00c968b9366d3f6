//! The tools of a server, as clients see them.

use std::collections::HashMap;
use std::sync::Arc;

use longhaul_wire::tool::ToolDeclaration;

/// The tools of a server, in the order in which they were added.
#[derive(Debug, Default)]
pub struct Catalogue {
    tools: Vec<CatalogueTool>,
    by_name: HashMap<Arc<str>, usize>,
}

/// One tool.
#[derive(Debug)]
pub struct CatalogueTool {
    pub name: Arc<str>,
    pub declaration: ToolDeclaration,
    /// A sentence for the model to continue with while the tool runs as a task.
    pub immediate_response: Option<String>,
}

/// Why a tool cannot be added.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogueError {
    /// Another tool has the same name.
    #[error("there are two tools named {0:?}")]
    Twice(Arc<str>),
}

impl Catalogue {
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
        self.tools.push(CatalogueTool { name, declaration, immediate_response });
        Ok(())
    }

    pub fn find(&self, name: &str) -> Option<&CatalogueTool> {
        self.by_name.get(name).map(|index| &self.tools[*index])
    }

    pub fn declarations(&self) -> Vec<&ToolDeclaration> {
        self.tools.iter().map(|offered| &offered.declaration).collect()
    }
}

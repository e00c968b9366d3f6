//! Why a server does not start, or had to stop.

use std::net::SocketAddr;

use longhaul_engine::EngineError;
use longhaul_receiver::CatalogueError;
use longhaul_wire::prompt::PromptError;
use longhaul_wire::resource::ResourceError;
use longhaul_wire::tool::ToolError;

/// Why a server does not start, or had to stop.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The declaration of a tool is wrong.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// The declaration of a prompt is wrong.
    #[error(transparent)]
    Prompt(#[from] PromptError),
    /// The declaration of a resource or a resource template is wrong.
    #[error(transparent)]
    Resource(#[from] ResourceError),
    /// What the server offers could not be changed.
    #[error("the server could not be changed: {0}")]
    Change(#[source] EngineError),
    /// A handle was used before its server was started, or after it had stopped.
    #[error("the server does not run; a handle works from its start to its end")]
    NotRunning,
    /// Two tools, two prompts or two resources have the same name.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// The tasks of a dead process could not be recovered.
    #[error("the tasks of the last run could not be recovered: {0}")]
    Engine(#[from] EngineError),
    /// The address cannot be listened on.
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, std::io::Error),
    /// Other machines could connect, and without tokens all of them would be let in.
    #[error("without a token file the server listens on this machine only, and {0} is not an address of it alone")]
    Open(SocketAddr),
    /// Standard input or output broke.
    #[error("cannot read or write the standard streams: {0}")]
    Stdio(std::io::Error),
    /// The store has stopped while the server was running.
    #[error("the store has stopped: {0}")]
    Stopped(String),
    /// Tasks have ended and the store could not store their ends before the server stopped, for example because its disk is
    /// full. The next server treats these tasks as if they had been running: they fail or run again, as their tools say.
    #[error(
        "the results or last steps of {tasks} task{} could not be stored before the stop; the next server fails or repeats what it \
         does not know the end of, as the tools say",
        if *.tasks == 1 { "" } else { "s" }
    )]
    ResultsLost {
        /// The number of these tasks.
        tasks: usize,
    },
}

impl Error {
    /// A stable code for scripts.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Tool(_) | Self::Catalogue(_) => "BAD_TOOL",
            Self::Prompt(_) => "BAD_PROMPT",
            Self::Resource(_) => "BAD_RESOURCE",
            Self::Engine(error) | Self::Change(error) => error.code(),
            Self::NotRunning => "NOT_RUNNING",
            Self::Listen(..) => "CANNOT_LISTEN",
            Self::Open(_) => "TOKEN_NEEDED",
            Self::Stdio(_) => "STDIO",
            Self::Stopped(_) => "STORE_STOPPED",
            Self::ResultsLost { .. } => "STORE_RESULTS_LOST",
        }
    }
}

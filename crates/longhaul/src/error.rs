//! Why a server does not start.

use std::net::SocketAddr;

use longhaul_engine::EngineError;
use longhaul_receiver::CatalogueError;
use longhaul_wire::tool::ToolError;

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A tool's declaration is wrong.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// Two tools have the same name.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// The store cannot be opened.
    #[cfg(feature = "sqlite")]
    #[error(transparent)]
    Store(#[from] longhaul_store_sqlite::OpenError),
    /// The store was left out of this build.
    #[error("this build has no {0} store")]
    NotBuiltIn(&'static str),
    /// What a dead process left behind could not be dealt with.
    #[error("the tasks of the last run could not be recovered: {0}")]
    Engine(#[from] EngineError),
    /// The address cannot be listened on.
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, std::io::Error),
    /// Without tokens everybody would be let in.
    #[error("without a token file the server listens on this machine only, and {0} is not an address of it alone")]
    Open(SocketAddr),
    /// The system gave no thread.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
    /// Standard input or output broke.
    #[error("cannot read or write the standard streams: {0}")]
    Stdio(std::io::Error),
    /// The store has stopped while serving.
    #[error("the store has stopped: {0}")]
    Stopped(String),
}

impl Error {
    /// A word that scripts can rely on.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Tool(_) | Self::Catalogue(_) => "BAD_TOOL",
            #[cfg(feature = "sqlite")]
            Self::Store(error) => error.code(),
            Self::NotBuiltIn(_) => "NOT_BUILT_IN",
            Self::Engine(error) => error.code(),
            Self::Listen(..) => "CANNOT_LISTEN",
            Self::Open(_) => "TOKEN_NEEDED",
            Self::Thread(_) => "NO_THREAD",
            Self::Stdio(_) => "STDIO",
            Self::Stopped(_) => "STORE_STOPPED",
        }
    }
}

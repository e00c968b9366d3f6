//! What the program says when it fails, and the exit codes.

use std::net::SocketAddr;
use std::process::ExitCode;

use longhaul_store::{BackupError, OpenError, StoreError};

use crate::say::tell;

/// The exit codes, as the help shows them.
pub const HELP: &str = "\
Exit codes:
  0  done
  1  failed
  2  the command line is wrong
  3  there is no such task
  4  the store cannot be used (locked, damaged, full, of a newer version)
  5  the address cannot be listened on";

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// The server did not start, or had to stop.
    #[error(transparent)]
    Server(#[from] longhaul::Error),
    /// The store cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The store cannot be copied.
    #[error(transparent)]
    Backup(#[from] BackupError),
    /// The store did not do it.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A running server said no.
    #[error("{message}")]
    Operator {
        /// Its sentence.
        message: String,
        /// Its code.
        code: String,
    },
    /// The token file cannot be used.
    #[error("the token file {path} cannot be used: {cause}")]
    Tokens {
        /// Which one.
        path: String,
        /// Why.
        cause: String,
    },
    /// The audit log cannot be written to.
    #[error("the audit log {path} cannot be written to: {cause}")]
    Audit {
        /// Which one.
        path: String,
        /// Why.
        cause: std::io::Error,
    },
    /// Other machines could connect, and nobody would ask them who they are.
    #[error(
        "{0} can be reached from other machines, so callers need tokens: add --token-file FILE (made if it does not \
         exist), or listen on 127.0.0.1"
    )]
    TokenNeeded(SocketAddr),
    /// The command line asks for what cannot be.
    #[error("{0}")]
    Usage(String),
    /// The system did not do it.
    #[error("{0}: {1}")]
    System(&'static str, std::io::Error),
}

impl Failed {
    fn code(&self) -> &str {
        match self {
            Self::Server(error) => error.code(),
            Self::Open(error) => error.code(),
            Self::Backup(error) => error.code(),
            Self::Store(error) => error.code(),
            Self::Operator { code, .. } => code,
            Self::Tokens { .. } => "BAD_TOKEN_FILE",
            Self::Audit { .. } => "BAD_AUDIT_FILE",
            Self::TokenNeeded(_) => "TOKEN_NEEDED",
            Self::Usage(_) => "USAGE",
            Self::System(..) => "SYSTEM",
        }
    }

    fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) | Self::Open(OpenError::Unsupported { .. }) => 2,
            Self::Store(StoreError::NotFound) => 3,
            Self::Operator { code, .. } if code == "NOT_FOUND" => 3,
            Self::Open(_)
            | Self::Backup(BackupError::From(_) | BackupError::To(_))
            | Self::Store(StoreError::Full(_) | StoreError::Stopped(_))
            | Self::Server(longhaul::Error::Stopped(_)) => 4,
            Self::TokenNeeded(_) | Self::Server(longhaul::Error::Listen(..) | longhaul::Error::Open(_)) => 5,
            _ => 1,
        }
    }
}

/// One sentence and a stable code on standard error, and the exit code.
pub fn report(result: Result<(), Failed>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failed) => {
            tell!("longhaul: {failed} [{}]", failed.code());
            ExitCode::from(failed.exit_code())
        }
    }
}

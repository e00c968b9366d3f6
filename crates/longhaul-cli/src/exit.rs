//! Errors of commands, and the exit codes.

use std::net::SocketAddr;
use std::process::ExitCode;

use longhaul_store::{BackupError, OpenError, StoreError};

use crate::say::tell;

/// The exit codes, for the help.
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
pub enum CommandError {
    #[error(transparent)]
    Server(#[from] longhaul::Error),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Backup(#[from] BackupError),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The running server refused an order.
    #[error("{message}")]
    Operator { message: String, code: String },
    #[error("the token file {path} cannot be used: {cause}")]
    Tokens { path: String, cause: String },
    #[error("the audit log {path} cannot be written to: {cause}")]
    Audit { path: String, cause: std::io::Error },
    #[error(
        "{0} can be reached from other machines, so callers need tokens: add --token-file FILE (made if it does not \
         exist), or listen on 127.0.0.1"
    )]
    TokenNeeded(SocketAddr),
    #[error("{0}")]
    Usage(String),
    /// What could not be done, and what the system said.
    #[error("{0}: {1}")]
    System(&'static str, std::io::Error),
}

impl CommandError {
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
            | Self::Server(longhaul::Error::Stopped(_) | longhaul::Error::ResultsLost { .. }) => 4,
            Self::TokenNeeded(_) | Self::Server(longhaul::Error::Listen(..) | longhaul::Error::Open(_)) => 5,
            _ => 1,
        }
    }
}

/// Writes the error and its stable code to standard error, and returns the exit code.
pub fn report(result: Result<(), CommandError>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failed) => {
            tell!("longhaul: {failed} [{}]", failed.code());
            ExitCode::from(failed.exit_code())
        }
    }
}

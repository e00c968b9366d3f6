//! Errors of commands, and the exit codes.

use std::net::SocketAddr;
use std::process::ExitCode;

use longhaul_store::{BackupError, OpenError, StoreError};

use crate::config::ConfigError;
use crate::output::{escape, stderr_line};

/// The exit codes, for the help.
pub const HELP: &str = "\
Exit codes:
  0  done
  1  failed
  2  the command line is wrong
  3  there is no such task
  4  the store cannot be used (locked, damaged, full, of a newer version)
  5  the address cannot be listened on
  6  the config file is wrong";

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
    /// The running server took an order and did not say what became of it.
    #[error(
        "the server did not reply ({0}), so it is unknown whether the task was cancelled; run the command again, which \
         does no harm"
    )]
    NoReply(std::io::Error),
    #[error("the token file {path} cannot be used: {cause}")]
    Tokens { path: String, cause: String },
    #[error("the audit log {path} cannot be written to: {cause}")]
    Audit { path: String, cause: std::io::Error },
    #[error(
        "{0} can be reached from other machines, so callers need tokens: add --token-file FILE (made if it does not \
         exist), or listen on 127.0.0.1"
    )]
    TokenNeeded(SocketAddr),
    #[error("the token file {path} has no token of {owner}")]
    NoSuchToken { path: String, owner: String },
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("the config file {path} cannot be made: {cause}")]
    NewConfig { path: String, cause: String },
    #[error("{0}")]
    Usage(String),
    #[error("cannot write the output: {0}")]
    Output(std::io::Error),
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
            Self::NoReply(_) => "NO_REPLY",
            Self::Tokens { .. } => "BAD_TOKEN_FILE",
            Self::Audit { .. } => "BAD_AUDIT_FILE",
            Self::TokenNeeded(_) => "TOKEN_NEEDED",
            Self::NoSuchToken { .. } => "NO_SUCH_TOKEN",
            Self::Config(_) => "BAD_CONFIG",
            Self::NewConfig { .. } => "NO_NEW_CONFIG",
            Self::Usage(_) => "USAGE",
            Self::Output(_) => "OUTPUT",
            Self::System(..) => "SYSTEM",
        }
    }

    /// Decided by the stable code alone, so that an error has the same exit code on every way that it takes.
    fn exit_code(&self) -> u8 {
        match self.code() {
            "USAGE" | "STORE_UNSUPPORTED" => 2,
            "NOT_FOUND" => 3,
            "BAD_CONFIG" => 6,
            "CANNOT_LISTEN" | "TOKEN_NEEDED" => 5,
            code if code.starts_with("STORE_") || code == "NOT_BUILT_IN" => 4,
            _ => 1,
        }
    }
}

/// Writes the error and its stable code to standard error, and returns the exit code.
pub fn report(result: Result<(), CommandError>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failed) => {
            // An error of the config file has several lines.
            let lines: Vec<String> = failed.to_string().lines().map(|line| escape(line).into_owned()).collect();
            stderr_line!("longhaul: {} [{}]", lines.join("\n"), failed.code());
            ExitCode::from(failed.exit_code())
        }
    }
}

#[cfg(test)]
mod tests {
    use longhaul_engine::EngineError;

    use super::*;

    #[test]
    fn a_store_that_cannot_be_used_has_one_exit_code_on_every_way() {
        let full = || StoreError::Full("no room".into());
        let open = || OpenError::Full { store: "tasks.db".into(), cause: "no room".into() };
        for error in [
            CommandError::Store(full()),
            CommandError::Store(StoreError::Stopped("a failed fsync".into())),
            CommandError::Operator { message: full().to_string(), code: full().code().into() },
            CommandError::Server(longhaul::Error::Engine(EngineError::Store(full()))),
            CommandError::Server(longhaul::Error::Stopped("a failed fsync".into())),
            CommandError::Open(open()),
            CommandError::Backup(BackupError::To(open())),
        ] {
            assert_eq!(error.exit_code(), 4, "{error}");
        }
    }
}

//! A token file that is reread when it changes: added tokens are accepted and removed ones refused within moments.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use longhaul_receiver::Caller;
use parking_lot::{Mutex, RwLock};

use super::tokens::{TokenError, Tokens, hash};
use super::{Credentials, Identify, NotIdentified};
use crate::followed_file::{FileCheck, FollowedFile, FollowedFileError};

/// The largest token file: about 200,000 tokens.
const TOKEN_FILE_BYTES_MAX: u64 = 16 << 20;

/// How often the file is checked for changes.
const TOKEN_FILE_LOOK_TIME_MAX: Duration = Duration::from_secs(1);

/// The tokens of a file, which is checked for changes about once a second.
///
/// If the file becomes invalid or disappears, the tokens that were read last stay valid, and the log says why, once. With an
/// empty file no caller is accepted.
#[derive(Debug)]
pub struct TokenFile {
    file: FollowedFile,
    tokens: RwLock<Tokens>,
    /// The error that was logged last.
    last_error: Mutex<Option<String>>,
}

/// Why a token file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenFileError {
    /// It cannot be read.
    #[error("{0}")]
    Read(#[from] FollowedFileError),
    /// A line of it is wrong.
    #[error("{0}")]
    Tokens(#[from] TokenError),
}

/// The result of a check for changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CheckResult {
    Unchanged,
    /// New tokens, or the same ones after an error.
    Reloaded,
    /// A new error was logged.
    Failed,
}

impl TokenFile {
    /// Reads a file, which must be valid.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, TokenFileError> {
        let (file, bytes) = FollowedFile::open(path, TOKEN_FILE_BYTES_MAX)?;
        let tokens = RwLock::new(Tokens::parse_bytes(&bytes)?);
        Ok(Self { file, tokens, last_error: Mutex::default() })
    }

    /// Whether it has no tokens, so that no caller is accepted.
    pub fn is_empty(&self) -> bool {
        self.tokens.read().is_empty()
    }

    /// Reads the file if it has changed.
    fn check(&self) -> CheckResult {
        let mut last_error = self.last_error.lock();
        match self.file.check() {
            FileCheck::Unchanged => CheckResult::Unchanged,
            FileCheck::Failed(error) => self.fail(&mut last_error, &error.into()),
            FileCheck::Read(bytes) => match Tokens::parse_bytes(&bytes) {
                Ok(tokens) => self.reload(&mut last_error, tokens),
                Err(error) => self.fail(&mut last_error, &error.into()),
            },
        }
    }

    fn reload(&self, last_error: &mut Option<String>, others: Tokens) -> CheckResult {
        let (tokens, (new, ended)) = {
            let mut tokens = self.tokens.write();
            let replaced = tokens.replace(others);
            (tokens.len(), replaced)
        };
        let file = self.file.path().display();
        let had_failed = last_error.take().is_some();
        if had_failed {
            tracing::warn!(%file, tokens, "the token file is valid again and was read");
        }
        let has_changed = new > 0 || !ended.is_empty();
        if has_changed {
            tracing::info!(%file, tokens, new, ended = ended.len(), "the token file has changed and was read");
            if tokens == 0 {
                tracing::warn!(%file, "the token file has no tokens, so no caller is accepted");
            }
        }
        // After the replacement: a caller that comes back at once is refused.
        for caller in ended {
            caller.revoked.cancel();
        }
        if had_failed || has_changed { CheckResult::Reloaded } else { CheckResult::Unchanged }
    }

    /// Logs an error, unless it was the last one that was logged.
    fn fail(&self, last_error: &mut Option<String>, error: &TokenFileError) -> CheckResult {
        let cause = error.to_string();
        if last_error.as_ref() == Some(&cause) {
            return CheckResult::Unchanged;
        }
        let file = self.file.path().display();
        tracing::error!(%file, %cause, "the token file cannot be used; the tokens that were read before stay valid");
        *last_error = Some(cause);
        CheckResult::Failed
    }
}

impl Identify for TokenFile {
    fn identify(&self, request: &Credentials<'_>) -> Result<Arc<Caller>, NotIdentified> {
        let hash = hash(request.bearer().ok_or(NotIdentified::Missing)?);
        self.tokens.read().find(&hash)
    }

    fn keep_up(self: Arc<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            loop {
                tokio::time::sleep(TOKEN_FILE_LOOK_TIME_MAX).await;
                let file = Arc::clone(&self);
                // It fails only when the process ends.
                let _ = tokio::task::spawn_blocking(move || file.check()).await;
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::SystemTime;

    use longhaul_task::Owner;

    use super::*;

    fn line(owner: &str, token: &str) -> String {
        Tokens::line(&Owner::parse(owner).unwrap(), token)
    }

    fn owner(file: &TokenFile, token: &str) -> Option<String> {
        file.tokens.read().find(&hash(token.as_bytes())).ok().map(|caller| caller.owner.to_string())
    }

    fn adas() -> (tempfile::TempDir, TokenFile) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tokens");
        std::fs::write(&path, line("ada", "a")).unwrap();
        (directory, TokenFile::open(path).unwrap())
    }

    #[test]
    fn an_error_is_logged_once_and_so_is_its_end() {
        let (_directory, file) = adas();
        let good = std::fs::read(file.file.path()).unwrap();
        for (bad, again) in [(Some("nonsense"), 3), (None, 3), (Some("ada 12"), 1)] {
            match bad {
                Some(text) => std::fs::write(file.file.path(), text).unwrap(),
                None => std::fs::remove_file(file.file.path()).unwrap(),
            }
            assert_eq!(file.check(), CheckResult::Failed, "{bad:?}");
            for _ in 0..again {
                assert_eq!(file.check(), CheckResult::Unchanged, "{bad:?}");
            }
            assert_eq!(owner(&file, "a").as_deref(), Some("ada"));
        }
        std::fs::write(file.file.path(), good).unwrap();
        assert_eq!([file.check(), file.check()], [CheckResult::Reloaded, CheckResult::Unchanged]);
    }

    #[test]
    fn a_change_is_noticed_even_if_size_and_modification_time_stay() {
        let (_directory, file) = adas();
        let at = SystemTime::now();
        for (name, token) in [("bob", "a"), ("ada", "b"), ("ada", "a")] {
            std::fs::write(file.file.path(), line(name, token)).unwrap();
            File::options().write(true).open(file.file.path()).unwrap().set_modified(at).unwrap();
            assert_eq!(file.check(), CheckResult::Reloaded, "{name} {token}");
            assert_eq!(owner(&file, token).as_deref(), Some(name));
        }
        assert_eq!(owner(&file, "b"), None);
    }

    #[test]
    fn a_directory_or_too_large_a_file_is_refused() {
        let (directory, _) = adas();
        assert!(matches!(TokenFile::open(directory.path()), Err(TokenFileError::Read(FollowedFileError::NotAFile))));
        let large = directory.path().join("large");
        File::create(&large).unwrap().set_len(TOKEN_FILE_BYTES_MAX + 1).unwrap();
        assert!(matches!(TokenFile::open(large), Err(TokenFileError::Read(FollowedFileError::TooLarge(_)))));
    }
}

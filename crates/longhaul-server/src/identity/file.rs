//! A token file that is followed: whoever is added may call a moment later, whoever is taken out may not any more.

use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::future::BoxFuture;
use longhaul_receiver::Caller;
use parking_lot::{Mutex, RwLock};

use super::tokens::{TokenError, Tokens, hash};
use super::{Identify, NotIdentified, Presented};

/// The largest token file: about 200,000 tokens.
const TOKEN_FILE_BYTES_MAX: u64 = 16 << 20;

/// How long it takes until somebody looks whether the file has changed.
const TOKEN_FILE_LOOK_TIME_MAX: Duration = Duration::from_secs(1);

/// How long a file that has changed must have been left alone before it is read: an editor may have emptied it and not
/// filled it yet.
const UNTOUCHED: Duration = Duration::from_millis(50);

/// How coarse a file system's clock may be: what was changed this short a time before it was read may have been changed
/// again since, and look the same.
const COARSE: Duration = Duration::from_secs(2);

/// The tokens of a file, which is looked at about once a second.
///
/// A file that cannot be used, or is gone, changes nothing: the tokens that were read last still hold, and the log says
/// why, once. One that is empty lets nobody in.
#[derive(Debug)]
pub struct TokenFile {
    path: PathBuf,
    tokens: RwLock<Tokens>,
    seen: Mutex<Seen>,
}

/// Why a token file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenFileError {
    /// It cannot be read.
    #[error("{0}")]
    Read(#[from] io::Error),
    /// It is something that cannot be read again.
    #[error("it is not a regular file")]
    NotAFile,
    /// It is too large.
    #[error("it has more than {TOKEN_FILE_BYTES_MAX} bytes")]
    TooLarge,
    /// A line of it is wrong.
    #[error("{0}")]
    Tokens(#[from] TokenError),
    /// Somebody is writing it.
    #[error("it changes while it is read")]
    InMotion,
}

/// What is known of the file.
#[derive(Debug)]
struct Seen {
    /// How it looked when it was last read.
    stamp: Option<Stamp>,
    /// Whether it would look different if it had changed since.
    is_sure: bool,
    /// Why it cannot be used, as it was said.
    trouble: Option<String>,
}

/// What a look at the file came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    /// Nothing new.
    Same,
    /// Other tokens, or the same after some trouble.
    Taken,
    /// Trouble that was not there before.
    Complained,
}

impl TokenFile {
    /// Reads a file, which must be in good order now.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, TokenFileError> {
        let path = path.into();
        let (bytes, stamp) = read(&path)?;
        let tokens = RwLock::new(Tokens::parse_bytes(&bytes)?);
        let seen = Seen { stamp: Some(stamp), is_sure: stamp.is_old(), trouble: None };
        Ok(Self { path, tokens, seen: Mutex::new(seen) })
    }

    /// Whether it lets nobody in.
    pub fn is_empty(&self) -> bool {
        self.tokens.read().is_empty()
    }

    /// Looks whether the file has changed, and reads it if so.
    fn look(&self) -> Look {
        let mut seen = self.seen.lock();
        let before = stamp(&self.path).ok();
        if seen.is_sure && before.is_some() && before == seen.stamp {
            return Look::Same;
        }
        std::thread::sleep(UNTOUCHED);
        let (bytes, now) = match read(&self.path) {
            Ok((bytes, now)) if before == Some(now) => (bytes, now),
            // Somebody is at it: the next look will tell.
            Ok(_) | Err(TokenFileError::InMotion) => return Look::Same,
            Err(error) => {
                seen.stamp = None;
                return self.complain(&mut seen, &error);
            }
        };
        seen.stamp = Some(now);
        seen.is_sure = now.is_old();
        match Tokens::parse_bytes(&bytes) {
            Ok(tokens) => self.take(&mut seen, tokens),
            Err(error) => self.complain(&mut seen, &error.into()),
        }
    }

    fn take(&self, seen: &mut Seen, others: Tokens) -> Look {
        let (tokens, (new, ended)) = {
            let mut tokens = self.tokens.write();
            let replaced = tokens.replace(others);
            (tokens.len(), replaced)
        };
        let file = self.path.display();
        let was_in_trouble = seen.trouble.take().is_some();
        if was_in_trouble {
            tracing::warn!(%file, tokens, "the token file is in order again and was read");
        }
        let has_changed = new > 0 || !ended.is_empty();
        if has_changed {
            tracing::info!(%file, tokens, new, ended = ended.len(), "the token file has changed and was read");
            if tokens == 0 {
                tracing::warn!(%file, "the token file has no tokens, so nobody is let in");
            }
        }
        // After the change: whoever comes back at once is told no.
        for caller in ended {
            caller.revoked.cancel();
        }
        if was_in_trouble || has_changed { Look::Taken } else { Look::Same }
    }

    /// Says what is wrong, unless that was said.
    fn complain(&self, seen: &mut Seen, error: &TokenFileError) -> Look {
        let cause = error.to_string();
        if seen.trouble.as_ref() == Some(&cause) {
            return Look::Same;
        }
        let file = self.path.display();
        tracing::error!(%file, %cause, "the token file cannot be used; the tokens that it had still hold");
        seen.trouble = Some(cause);
        Look::Complained
    }
}

impl Identify for TokenFile {
    fn identify(&self, shown: &Presented<'_>) -> Result<Arc<Caller>, NotIdentified> {
        let hash = hash(shown.bearer().ok_or(NotIdentified::Missing)?);
        self.tokens.read().find(&hash)
    }

    fn keep_up(self: Arc<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            loop {
                tokio::time::sleep(TOKEN_FILE_LOOK_TIME_MAX).await;
                let file = Arc::clone(&self);
                // It fails only when the process ends.
                let _ = tokio::task::spawn_blocking(move || file.look()).await;
            }
        })
    }
}

/// By what a changed file is known, without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: SystemTime,
    /// When anything about it changed. A file can be made to look as old as it was; this cannot.
    changed: (i64, i64),
}

impl Stamp {
    fn of(file: &Metadata) -> Result<Self, TokenFileError> {
        if !file.is_file() {
            return Err(TokenFileError::NotAFile);
        }
        Ok(Self {
            device: file.dev(),
            inode: file.ino(),
            bytes: file.len(),
            modified: file.modified()?,
            changed: (file.ctime(), file.ctime_nsec()),
        })
    }

    /// Whether it was left alone for so long that a change from now on shows.
    fn is_old(&self) -> bool {
        self.modified.elapsed().is_ok_and(|age| age > COARSE)
    }
}

fn stamp(path: &Path) -> Result<Stamp, TokenFileError> {
    Stamp::of(&std::fs::metadata(path)?)
}

/// The bytes of a file, and how it looked.
fn read(path: &Path) -> Result<(Vec<u8>, Stamp), TokenFileError> {
    // Opening what is not a file may wait for ever.
    stamp(path)?;
    let file = File::open(path)?;
    let before = Stamp::of(&file.metadata()?)?;
    let mut bytes = Vec::new();
    (&file).take(TOKEN_FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > TOKEN_FILE_BYTES_MAX {
        return Err(TokenFileError::TooLarge);
    }
    let after = Stamp::of(&file.metadata()?)?;
    if before == after { Ok((bytes, after)) } else { Err(TokenFileError::InMotion) }
}

#[cfg(test)]
mod tests {
    use longhaul_task::Owner;

    use super::*;

    fn line(owner: &str, token: &str) -> String {
        Tokens::line(&Owner::parse(owner).unwrap(), token)
    }

    fn owner(file: &TokenFile, token: &str) -> Option<String> {
        file.tokens.read().find(&hash(token.as_bytes())).ok().map(|caller| caller.owner.to_string())
    }

    /// A file that has Ada's token, and the directory around it.
    fn adas() -> (tempfile::TempDir, TokenFile) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tokens");
        std::fs::write(&path, line("ada", "a")).unwrap();
        (directory, TokenFile::open(path).unwrap())
    }

    #[test]
    fn trouble_is_said_once_and_so_is_its_end() {
        let (_directory, file) = adas();
        let good = std::fs::read(&file.path).unwrap();
        for (bad, again) in [(Some("nonsense"), 3), (None, 3), (Some("ada 12"), 1)] {
            match bad {
                Some(text) => std::fs::write(&file.path, text).unwrap(),
                None => std::fs::remove_file(&file.path).unwrap(),
            }
            assert_eq!(file.look(), Look::Complained, "{bad:?}");
            for _ in 0..again {
                assert_eq!(file.look(), Look::Same, "{bad:?}");
            }
            assert_eq!(owner(&file, "a").as_deref(), Some("ada"));
        }
        std::fs::write(&file.path, good).unwrap();
        assert_eq!([file.look(), file.look()], [Look::Taken, Look::Same]);
    }

    #[test]
    fn a_change_that_leaves_the_files_times_and_size_as_they_were_is_noticed_all_the_same() {
        let (_directory, file) = adas();
        let at = SystemTime::now();
        for (name, token) in [("bob", "a"), ("ada", "b"), ("ada", "a")] {
            std::fs::write(&file.path, line(name, token)).unwrap();
            File::options().write(true).open(&file.path).unwrap().set_modified(at).unwrap();
            assert_eq!(file.look(), Look::Taken, "{name} {token}");
            assert_eq!(owner(&file, token).as_deref(), Some(name));
        }
        assert_eq!(owner(&file, "b"), None);
    }

    #[test]
    fn a_file_without_tokens_lets_nobody_in() {
        let (_directory, file) = adas();
        let ada = file.tokens.read().find(&hash(b"a")).unwrap();
        std::fs::write(&file.path, "").unwrap();
        assert_eq!(file.look(), Look::Taken);
        assert!(file.is_empty() && ada.revoked.is_cancelled());
        assert_eq!(owner(&file, "a"), None);
    }

    #[test]
    fn what_is_no_file_or_too_large_is_refused() {
        let (directory, _) = adas();
        assert!(matches!(TokenFile::open(directory.path()), Err(TokenFileError::NotAFile)));
        let large = directory.path().join("large");
        File::create(&large).unwrap().set_len(TOKEN_FILE_BYTES_MAX + 1).unwrap();
        assert!(matches!(TokenFile::open(large), Err(TokenFileError::TooLarge)));
    }
}

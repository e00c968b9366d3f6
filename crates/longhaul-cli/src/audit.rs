//! `--audit FILE`: where the audit log goes.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tracing_subscriber::fmt::MakeWriter;

/// A place for lines.
#[derive(Debug)]
pub(crate) enum Audit {
    /// Standard error.
    Stderr,
    /// A file, which grows.
    File(AuditFile),
}

/// A file that others may rename away: the next line then goes to a new one under the old name.
#[derive(Debug)]
pub(crate) struct AuditFile {
    path: PathBuf,
    open: Mutex<Open>,
}

#[derive(Debug)]
struct Open {
    file: File,
    /// The last line could not be written, and that was said.
    failed: bool,
}

impl Audit {
    /// `-` is standard error.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        if path == Path::new("-") {
            return Ok(Self::Stderr);
        }
        let open = Mutex::new(Open { file: append(path)?, failed: false });
        Ok(Self::File(AuditFile { path: path.to_owned(), open }))
    }
}

/// Owners and what they do are nobody else's business, so only we can read it.
fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

impl AuditFile {
    /// Writes one line. It is with the system before the request is answered; there it survives a crash of this process.
    fn write(&self, line: &[u8]) {
        // Whoever panicked here has at worst written half a line.
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let written = open.keep_up(&self.path).and_then(|()| open.file.write_all(line));
        let failed = written.is_err();
        if let Err(error) = written
            && !open.failed
        {
            let path = self.path.display().to_string();
            // Elsewhere, because whoever writes a line of one log must not write to the other in the middle of it.
            std::thread::spawn(move || {
                tracing::error!(path, %error, "cannot write to the audit log: lines are lost until this is mended");
            });
        }
        open.failed = failed;
    }
}

impl Open {
    /// Opens the file anew if the one that is open is not there any more under its name.
    fn keep_up(&mut self, path: &Path) -> io::Result<()> {
        let ours = self.file.metadata()?;
        let is_ours = std::fs::metadata(path).is_ok_and(|there| (there.dev(), there.ino()) == (ours.dev(), ours.ino()));
        if !is_ours {
            self.file = append(path)?;
        }
        Ok(())
    }
}

/// One line on its way.
#[derive(Debug)]
pub(crate) struct Line<'a>(&'a Audit);

impl Write for Line<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match self.0 {
            Audit::Stderr => io::stderr().write_all(line)?,
            Audit::File(file) => file.write(line),
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Audit {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        Line(self)
    }
}

//! `--audit FILE`: the destination of the audit log.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::OFlags;
use rustix::io::Errno;
use tracing_subscriber::fmt::MakeWriter;

/// Where the lines of the audit log go.
#[derive(Debug)]
pub(crate) enum Audit {
    Stderr,
    File(AuditFile),
}

/// A file that may be renamed at any time, for example to rotate it: the next line then goes to a new file.
#[derive(Debug)]
pub(crate) struct AuditFile {
    path: PathBuf,
    open: Mutex<OpenFile>,
}

#[derive(Debug)]
struct OpenFile {
    file: File,
    /// The last line could not be written, and the log says so.
    failed: bool,
}

impl Audit {
    /// `-` is standard error.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        if path == Path::new("-") {
            return Ok(Self::Stderr);
        }
        let open = Mutex::new(OpenFile { file: append(path)?, failed: false });
        Ok(Self::File(AuditFile { path: path.to_owned(), open }))
    }
}

/// Only the user who runs the server can read it: it names owners and what they do.
///
/// A pipe is not waited for: it must have a reader, and a line that does not fit into it is lost and reported, as on a full
/// disk.
fn append(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let opened = OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(flags).open(path);
    opened.map_err(|error| match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NXIO) => io::Error::other("it is a pipe that no program reads from"),
        _ => error,
    })
}

impl AuditFile {
    /// Writes one line. The system has it before the request is answered, so it survives a crash of this process.
    fn write(&self, line: &[u8]) {
        // A panic in here has written half a line at worst.
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let written = open.keep_up(&self.path).and_then(|()| open.file.write_all(line));
        let failed = written.is_err();
        if let Err(error) = written
            && !open.failed
        {
            let path = self.path.display().to_string();
            // On another thread, because a log must not be written to while a line of the other is being written.
            std::thread::spawn(move || {
                tracing::error!(path, %error, "cannot write to the audit log: lines are lost until this is fixed");
            });
        }
        open.failed = failed;
    }
}

impl OpenFile {
    /// Opens the file again if the open one no longer has this name.
    fn keep_up(&mut self, path: &Path) -> io::Result<()> {
        let ours = self.file.metadata()?;
        let is_ours = std::fs::metadata(path).is_ok_and(|there| (there.dev(), there.ino()) == (ours.dev(), ours.ino()));
        if !is_ours {
            self.file = append(path)?;
        }
        Ok(())
    }
}

#[derive(Debug)]
pub(crate) struct AuditWriter<'a>(&'a Audit);

impl Write for AuditWriter<'_> {
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
    type Writer = AuditWriter<'a>;

    fn make_writer(&'a self) -> AuditWriter<'a> {
        AuditWriter(self)
    }
}

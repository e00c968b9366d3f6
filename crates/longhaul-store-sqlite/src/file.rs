//! Files and directories: created private, and durable with their names.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// Files created with these options can be read by their owner only.
pub(crate) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

/// Creates an empty private file if there is none. Returns whether it did.
///
/// SQLite gives its log and its shared memory the mode of the database, so they become private with it.
pub(crate) fn create(path: &Path) -> io::Result<bool> {
    match private(OpenOptions::new().write(true).create_new(true)).open(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// Creates the directory of `path`, private, with everything above it.
pub(crate) fn create_directory(path: &Path) -> io::Result<()> {
    let directory = directory(path);
    if directory.is_dir() {
        return Ok(());
    }
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)?;
    // A new directory is an entry of the one above. Which of them are new is not known, so all are synced.
    directory.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()).try_for_each(sync_directory)
}

/// The path of the file itself, with symbolic links resolved, so that the lock is always beside the file. The directory of
/// a new file must exist.
pub(crate) fn own_name(path: &Path) -> io::Result<PathBuf> {
    match (path.canonicalize(), path.file_name()) {
        (Err(error), Some(name)) if error.kind() == io::ErrorKind::NotFound => {
            Ok(directory(path).canonicalize()?.join(name))
        }
        (resolved, _) => resolved,
    }
}

/// Whether the file has hard links under other names. A process that opens it by another name would not see the lock
/// beside this one, and two logs for one file destroy it.
pub(crate) fn has_other_names(path: &Path) -> io::Result<bool> {
    let metadata = std::fs::metadata(path)?;
    #[cfg(unix)]
    let names = std::os::unix::fs::MetadataExt::nlink(&metadata);
    #[cfg(not(unix))]
    let names = 1;
    // A directory always has several; it is refused elsewhere.
    Ok(metadata.is_file() && names > 1)
}

/// Whether users other than its owner and group can replace files in this directory. In a sticky directory they cannot.
#[cfg(unix)]
pub(crate) fn others_can_write(directory: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(directory).is_ok_and(|metadata| metadata.permissions().mode() & 0o1_002 == 0o002)
}

#[cfg(not(unix))]
pub(crate) fn others_can_write(_directory: &Path) -> bool {
    false
}

/// Makes the name of a new file durable.
pub(crate) fn sync_name(path: &Path) -> io::Result<()> {
    sync_directory(directory(path))
}

/// Syncs the log of a dead process. Its last writes may still be only in the system's memory, and what is read from it
/// from here on must be durable.
pub(crate) fn sync_log(path: &Path) -> io::Result<()> {
    match OpenOptions::new().write(true).open(beside(path, "-wal")) {
        Ok(log) => log.sync_all(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(unix)]
fn sync_directory(path: &Path) -> io::Result<()> {
    match File::open(path) {
        Ok(directory) => directory.sync_all(),
        // A directory that may be passed through but not read was not created here.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(not(unix))]
fn sync_directory(_path: &Path) -> io::Result<()> {
    Ok(())
}

/// Removes a new file that did not become a store, with the files that SQLite has put beside it.
pub(crate) fn remove(path: &Path) {
    for file in [beside(path, "-wal"), beside(path, "-shm"), beside(path, "-journal"), path.to_owned()] {
        // The error that is reported is the one of opening, not of this.
        let _ = std::fs::remove_file(file);
    }
}

/// Whether there is a log that is not empty.
pub(crate) fn has_log(path: &Path) -> bool {
    std::fs::metadata(beside(path, "-wal")).is_ok_and(|log| log.len() > 0)
}

/// `path` with an ending appended to its name.
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// The directory that holds `path`.
pub(crate) fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

//! Files and directories: created private, and durable with their names.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// Makes what is created with these options readable by its owner alone.
pub(crate) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

/// Creates an empty private file, unless there is one; says whether there was none.
///
/// SQLite gives its log and its shared memory the mode of the database, so they become private with it.
pub(crate) fn create(path: &Path) -> io::Result<bool> {
    match private(OpenOptions::new().write(true).create_new(true)).open(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// Makes the directory that will hold `path`, private, with everything above it.
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
    // New directories are entries of older ones; up to the root, because nobody knows where the new ones began.
    directory.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()).try_for_each(sync_directory)
}

/// The file's own name: links to it are followed, so that the lock stands beside the file itself whatever it was called
/// by. The directory of a new one must be there.
pub(crate) fn own_name(path: &Path) -> io::Result<PathBuf> {
    match (path.canonicalize(), path.file_name()) {
        (Err(error), Some(name)) if error.kind() == io::ErrorKind::NotFound => {
            Ok(directory(path).canonicalize()?.join(name))
        }
        (resolved, _) => resolved,
    }
}

/// Whether the file has names that nobody can find by looking at this one. A lock beside it would not be seen by
/// whoever uses another, and two logs on one file destroy it.
pub(crate) fn has_other_names(path: &Path) -> io::Result<bool> {
    let metadata = std::fs::metadata(path)?;
    #[cfg(unix)]
    let names = std::os::unix::fs::MetadataExt::nlink(&metadata);
    #[cfg(not(unix))]
    let names = 1;
    // Every directory has several, and is refused for what it is.
    Ok(metadata.is_file() && names > 1)
}

/// Makes the name of a new file as durable as what is in it.
pub(crate) fn sync_name(path: &Path) -> io::Result<()> {
    sync_directory(directory(path))
}

/// Brings the log that a dead process left to the disk. What it wrote last may only be in the system's memory yet, and
/// whoever reads it from here on must be able to rely on it.
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
        // A directory that we may pass through but not read is none that we made.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(not(unix))]
fn sync_directory(_path: &Path) -> io::Result<()> {
    Ok(())
}

/// Removes a file that was made here and did not become a store, with what SQLite has put beside it.
pub(crate) fn remove(path: &Path) {
    for file in [beside(path, "-wal"), beside(path, "-shm"), beside(path, "-journal"), path.to_owned()] {
        // That it cannot be removed, or was never there, is not what went wrong.
        let _ = std::fs::remove_file(file);
    }
}

/// Whether there is a log with something in it.
pub(crate) fn has_log(path: &Path) -> bool {
    std::fs::metadata(beside(path, "-wal")).is_ok_and(|log| log.len() > 0)
}

/// The file beside `path` whose name ends so.
fn beside(path: &Path, ending: &str) -> PathBuf {
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

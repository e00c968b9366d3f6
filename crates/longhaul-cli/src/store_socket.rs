//! Sockets beside the store's file that only the user who runs the server can open.

use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::{UnixListener, UnixSocket};
use tokio::task::JoinHandle;

/// The pause after a connection could not be accepted, for example because the process has too many files open.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The path of a socket: that of the store's file, with a suffix.
pub(crate) fn socket_path(store: &Path, suffix: &str) -> PathBuf {
    // If `store` is a link, the socket is beside the file that it points to.
    let file = store.canonicalize().unwrap_or_else(|_| store.to_owned());
    let mut name = file.into_os_string();
    name.push(suffix);
    name.into()
}

/// A listening socket beside the store's file. Dropping it removes the socket file, so drop it while the store's lock is
/// held: later, another server may have created a socket at the same path.
#[derive(Debug)]
pub(crate) struct StoreSocket {
    path: PathBuf,
    /// The device and inode of the socket file.
    inode: Option<(u64, u64)>,
    accept_loop: JoinHandle<()>,
}

impl Drop for StoreSocket {
    fn drop(&mut self) {
        self.accept_loop.abort();
        // If the files of this store were moved away, the path may lead to the socket of another server, which must stay.
        if inode(&self.path) == self.inode {
            // If it cannot be removed, the next server replaces it.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn inode(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

impl StoreSocket {
    /// Opens a socket in place of one that a dead process has left. The future that `accept` returns accepts connections
    /// until the socket is dropped.
    pub(crate) fn open<F>(path: PathBuf, accept: impl FnOnce(UnixListener) -> F) -> io::Result<Self>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let _ = std::fs::remove_file(&path);
        let listener = bind(&path)?;
        let inode = inode(&path);
        Ok(Self { path, inode, accept_loop: tokio::spawn(accept(listener)) })
    }
}

/// Binds a socket that only this user can open. Its mode is set before it listens, because the umask may let everyone open
/// a new socket.
fn bind(path: &Path) -> io::Result<UnixListener> {
    let socket = UnixSocket::new_stream()?;
    socket.bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    socket.listen(1_024)
}

//! The socket by which other processes pass the messages of their clients on.

use std::path::Path;

use longhaul::{CancellationToken, PipeServer};
use tokio::net::UnixListener;

use super::SOCKET_SUFFIX;
use crate::store_socket::{ACCEPT_PAUSE, StoreSocket, socket_path};

/// Opens the socket. The caller holds the store's lock. `None` if it cannot be opened.
pub(crate) fn listen(store: &Path, pipes: PipeServer, stop: CancellationToken) -> Option<StoreSocket> {
    let path = socket_path(store, SOCKET_SUFFIX);
    match StoreSocket::open(path.clone(), |listener| accept(listener, pipes, stop)) {
        Ok(socket) => Some(socket),
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "other processes cannot pass their clients on to this server");
            None
        }
    }
}

/// Accepts until the server stops: a client that came later would only be told that it stops.
async fn accept(listener: UnixListener, pipes: PipeServer, stop: CancellationToken) {
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                let pipes = pipes.clone();
                tokio::spawn(async move {
                    let (read, write) = stream.into_split();
                    if let Err(error) = pipes.serve(read, write).await {
                        tracing::debug!(%error, "the connection of a passed-on client broke");
                    }
                });
            }
            Err(error) => {
                tracing::debug!(%error, "a passed-on client could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

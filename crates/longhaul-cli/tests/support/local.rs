//! A server in the test's own process, for limits that the program has no flags for.

use std::net::SocketAddr;
use std::sync::Arc;

use longhaul::{Server, StoreUrl};
use longhaul_store::Store;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{Client, in_time};

/// A server that listens on a port of its own.
pub(crate) struct Local {
    pub(crate) address: SocketAddr,
    stop: CancellationToken,
    serving: JoinHandle<Result<(), longhaul::Error>>,
}

impl Local {
    /// Starts it with a store in memory.
    pub(crate) async fn start(server: Server) -> Self {
        Self::start_on(server, StoreUrl::Memory.open().await.expect("a store in memory")).await
    }

    /// Starts it on this store.
    pub(crate) async fn start_on(server: Server, store: Arc<dyn Store>) -> Self {
        let started = server.start(store).await.expect("tools in good order");
        let listening = started.listen(([127, 0, 0, 1], 0).into()).await.expect("a free port");
        let (address, stop) = (listening.address(), listening.stop_handle());
        Self { address, stop, serving: tokio::spawn(listening.serve()) }
    }

    pub(crate) async fn client(&self) -> Client {
        Client::connect(self.address).await.expect("a server that listens")
    }

    /// Tells it to stop, and waits for nothing.
    pub(crate) fn tell_to_stop(&self) {
        self.stop.cancel();
    }

    /// Stops it, and waits until it has.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        in_time("the end of a server", self.serving).await.expect("no panic").expect("a graceful end");
    }
}

//! A server in the process of the test.

use std::net::SocketAddr;
use std::sync::Arc;

use longhaul::{Server, StoreUrl};
use longhaul_receiver::Receiver;
use longhaul_store::{ManualClock, Store};
use longhaul_task::Timestamp;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::{StatelessClient, TestEndpoint, in_time};

/// A server in this process, with or without a socket.
pub struct TestServer {
    receiver: Receiver,
    address: Option<SocketAddr>,
    stop: CancellationToken,
    serving: JoinHandle<()>,
}

impl TestServer {
    /// A server without a socket, on a store in memory.
    pub async fn start(server: Server) -> Self {
        Self::start_on(server, memory().await).await
    }

    /// A server without a socket, on a store in memory that goes by this clock.
    pub async fn start_with_clock(server: Server) -> (Self, ManualClock) {
        let clock = ManualClock::at(Timestamp::from_ms(1_000_000));
        let store = longhaul_store::memory::open(clock.clone()).expect("a store in memory");
        (Self::start_on(server, Arc::new(store)).await, clock)
    }

    /// Makes the server notice that its clock was set: it sleeps by the clock of the machine.
    pub fn clock_moved(&self) {
        self.receiver.engine().clock_moved();
    }

    /// A server without a socket, on this store.
    pub async fn start_on(server: Server, store: Arc<dyn Store>) -> Self {
        let started = server.start(store).await.expect("tools in good order");
        let (receiver, stop) = (started.receiver().clone(), started.stop_handle());
        let serving = tokio::spawn(serve_without_socket(receiver.clone(), stop.clone()));
        Self { receiver, address: None, stop, serving }
    }

    /// A server that listens on a free port, on a store in memory.
    pub async fn listen(server: Server) -> Self {
        Self::listen_on(server, memory().await).await
    }

    /// A server that listens on a free port, on this store.
    pub async fn listen_on(server: Server, store: Arc<dyn Store>) -> Self {
        let started = server.start(store).await.expect("tools in good order");
        let listening = started.listen(([127, 0, 0, 1], 0).into()).await.expect("a free port");
        let (receiver, stop, address) =
            (listening.receiver().clone(), listening.stop_handle(), Some(listening.address()));
        let serving = tokio::spawn(async move { listening.serve().await.expect("a graceful end") });
        Self { receiver, address, stop, serving }
    }

    pub fn receiver(&self) -> &Receiver {
        &self.receiver
    }

    pub fn address(&self) -> SocketAddr {
        self.address.expect("a server that listens")
    }

    pub async fn client(&self) -> StatelessClient {
        StatelessClient::connect(self).await.expect("a server that listens")
    }

    /// Tells the server to stop, without waiting.
    pub fn begin_stop(&self) {
        self.stop.cancel();
    }

    pub async fn stop(self) {
        self.stop.cancel();
        in_time("the end of a server", self.serving).await.expect("no panic");
        if self.address.is_none() {
            in_time("the end of its sessions and tasks", end(&self.receiver)).await;
        }
    }
}

impl From<&TestServer> for TestEndpoint {
    fn from(server: &TestServer) -> Self {
        server.address.map_or_else(|| Self::Memory(server.receiver.clone()), Self::Http)
    }
}

async fn memory() -> Arc<dyn Store> {
    StoreUrl::Memory.open().await.expect("a store in memory")
}

/// The shutdown of `longhaul::HttpServer` up to the wait for connections. A server without a socket has no connections.
async fn serve_without_socket(receiver: Receiver, stop: CancellationToken) {
    let tidying = tokio::spawn({
        let (receiver, stop) = (receiver.clone(), stop.clone());
        async move { receiver.tidy_until(stop).await }
    });
    stop.cancelled().await;
    receiver.engine().drain();
    receiver.close();
    tidying.await.expect("no panic");
}

async fn end(receiver: &Receiver) {
    receiver.end_sessions().await;
    receiver.engine().give_up_waiting_tasks().await;
    receiver.engine().shut_down().await;
    receiver.engine().store().close().await;
}

//! The accept loop.

use std::convert::Infallible;
use std::sync::Arc;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_io_timeout::TimeoutStream;
use tokio_util::sync::CancellationToken;

use super::HttpEndpoint;
use super::connection::Ownerless;
use super::half_close::HalfCloseStream;

/// Serves connections until `stop`, then gives open requests some time to finish.
pub async fn serve(listener: TcpListener, endpoint: HttpEndpoint, stop: CancellationToken) {
    let limits = endpoint.limits.clone();
    let endpoint = Arc::new(endpoint);
    let permits = Arc::new(Semaphore::new(limits.connections_max));
    let ownerless = Arc::<Ownerless>::default();
    let graceful = GracefulShutdown::new();
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.head_time_max);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => break,
        };
        let socket = match accepted {
            Ok((socket, _)) => socket,
            Err(error) => {
                // Most likely out of file descriptors, which become free as connections end.
                tracing::warn!(%error, "could not accept a connection");
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                continue;
            }
        };
        if permits.available_permits() == 0 {
            ownerless.close_oldest();
        }
        // The connections that come meanwhile wait in the system's queue.
        let permit = tokio::select! {
            permit = Arc::clone(&permits).acquire_owned() => permit,
            () = stop.cancelled() => break,
        };
        let _ = socket.set_nodelay(true);
        let mut socket = TimeoutStream::new(socket);
        socket.set_write_timeout(Some(limits.write_time_max));
        let socket = HalfCloseStream::new(Box::pin(socket));
        let (endpoint, connection) = (Arc::clone(&endpoint), ownerless.connection());
        let requests_of = connection.clone();
        let service = service_fn(move |request| {
            let (endpoint, connection) = (Arc::clone(&endpoint), requests_of.clone());
            async move { Ok::<_, Infallible>(super::route(&endpoint, &connection, request).await) }
        });
        let served = graceful.watch(http.serve_connection(TokioIo::new(socket), service));
        tokio::spawn(async move {
            tokio::select! {
                biased;
                ended = served => {
                    if let Err(error) = ended {
                        tracing::debug!(%error, "a connection ended early");
                    }
                }
                () = connection.closed() => tracing::debug!("a connection without a request was closed for another"),
            }
            drop(permit);
        });
    }
    drop(listener);
    if tokio::time::timeout(limits.close_time_max, graceful.shutdown()).await.is_err() {
        tracing::info!("some connections did not finish in time and were closed");
    }
}

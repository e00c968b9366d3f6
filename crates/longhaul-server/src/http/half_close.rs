//! Clients that close their sending half after a request and wait for the response.

use std::io::{IoSlice, Result};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// How long a request goes on after the end of its client's input. A client that is gone gives the same signal, so its call
/// ends a little later.
const HALF_CLOSED_TIME_MAX: Duration = Duration::from_secs(2);

/// A socket that hides the end of input while a response is due: the HTTP library drops a request when its client's input
/// ends. A stream of events is not protected, so that a client that has left it is noticed at once.
pub(super) struct HalfCloseStream<S> {
    inner: S,
    /// Bytes of a request were read, and none of its response was written.
    is_response_due: bool,
    /// A part of the response waits for the client.
    is_blocked: bool,
    /// The input has ended; resolves when it is time to say so.
    ended: Option<Pin<Box<Sleep>>>,
}

impl<S> HalfCloseStream<S> {
    pub(super) fn new(inner: S) -> Self {
        Self { inner, is_response_due: false, is_blocked: false, ended: None }
    }

    fn note_write(&mut self, written: &Poll<Result<usize>>) {
        self.is_blocked = written.is_pending();
        if written.is_ready() {
            self.is_response_due = false;
            if let Some(ended) = &mut self.ended {
                ended.as_mut().reset(Instant::now() + HALF_CLOSED_TIME_MAX);
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for HalfCloseStream<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<Result<()>> {
        if self.ended.is_none() {
            let before = buf.filled().len();
            ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
            if buf.filled().len() > before || buf.remaining() == 0 {
                self.is_response_due = true;
                return Poll::Ready(Ok(()));
            }
            self.ended = Some(Box::pin(sleep(HALF_CLOSED_TIME_MAX)));
        }
        let is_busy = self.is_response_due || self.is_blocked;
        if let Some(ended) = self.ended.as_mut().filter(|_| is_busy) {
            ready!(ended.as_mut().poll(cx));
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for HalfCloseStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(cx, bytes);
        self.note_write(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(cx, bytes);
        self.note_write(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

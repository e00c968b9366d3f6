//! Drives the writer: collects waiting requests into a batch, writes it, sends the answers.
//!
//! In production it runs on a thread ([`WriterLoop::run`]). The simulator takes and writes each batch itself.

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use longhaul_task::Timestamp;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};

use super::EmbeddedLimits;
use super::disk::{Disk, Reader};
use super::failure_log::FailureLog;
use super::write_request::{UnsavedProgress, WriteRequest, WriteResponse};
use super::writer::Writer;
use crate::clock::ClockWatch;
use crate::{Clock, StoreError};

/// The longest time between two checks whether the files of the store are still there.
const VERIFY_TIME_MAX: Duration = Duration::from_secs(1);

/// What a handle sends to the writer.
#[allow(
    clippy::large_enum_variant,
    reason = "most messages are requests, and a box would cost each of them an allocation"
)]
pub(super) enum WriterMessage {
    Request {
        request: WriteRequest,
        answer: ResponseSender,
    },
    /// The last message. Later ones are ignored.
    Close,
}

type ResponseSender = oneshot::Sender<Result<WriteResponse, StoreError>>;

/// Requests that are written in one transaction.
pub struct Batch {
    requests: Vec<WriteRequest>,
    answers: Vec<ResponseSender>,
}

impl Batch {
    /// The requests, in the order in which they were sent.
    pub fn requests(&self) -> &[WriteRequest] {
        &self.requests
    }
}

/// The writer of an [`Embedded`](super::Embedded) store and the queue of its requests.
pub struct WriterLoop<D> {
    pub(super) writer: Writer<D>,
    pub(super) waiting: mpsc::Receiver<WriterMessage>,
    pub(super) clock: Arc<dyn Clock>,
    /// Every time that is stored is noted here.
    pub(super) clock_watch: Arc<ClockWatch>,
    pub(super) unsaved_progress: Arc<Mutex<UnsavedProgress>>,
    pub(super) progress_saved_at: Timestamp,
    pub(super) limits: EmbeddedLimits,
    pub(super) reader: Arc<dyn Reader>,
    pub(super) failure_log: Arc<FailureLog>,
    /// Dropped last: [`Store::close`](crate::Store::close) waits for this.
    pub(super) stop: watch::Sender<Option<String>>,
    /// The runtime in which the store was opened, if there was one.
    pub(super) runtime: Option<Handle>,
}

impl<D: Disk> WriterLoop<D> {
    /// Writes until the store is closed or its last handle is dropped.
    pub(super) fn run(mut self) {
        let waker = Waker::from(Arc::new(ThreadWaker(thread::current())));
        let mut context = Context::from_waker(&waker);
        let mut verify_at = Instant::now() + VERIFY_TIME_MAX;
        loop {
            match self.waiting.poll_recv(&mut context) {
                Poll::Ready(Some(first)) => {
                    let batch = self.batch_from(first);
                    self.carry_out(batch);
                    verify_at = Instant::now() + VERIFY_TIME_MAX;
                }
                Poll::Ready(None) => break,
                Poll::Pending => match verify_at.checked_duration_since(Instant::now()) {
                    Some(rest) if !rest.is_zero() => thread::park_timeout(rest),
                    _ => {
                        self.verify();
                        verify_at = Instant::now() + VERIFY_TIME_MAX;
                    }
                },
            }
        }
        self.close();
    }

    /// Checks the files of the store while nothing is written.
    fn verify(&mut self) {
        if self.writer.stopped().is_none() {
            self.writer.verify();
            if self.writer.stopped().is_some() {
                self.failure_log.log_write("verify", 1, self.writer.last_failure(), self.clock.now());
            }
            self.report_stop();
        }
    }

    fn report_stop(&self) {
        if let Some(reason) = self.writer.stopped() {
            self.stop.send_replace(Some(reason.to_owned()));
        }
    }

    /// The requests that wait now, if there are any.
    pub fn try_batch(&mut self) -> Option<Batch> {
        let first = self.waiting.try_recv().ok()?;
        Some(self.batch_from(first))
    }

    fn batch_from(&mut self, first: WriterMessage) -> Batch {
        let expected = self.waiting.len().saturating_add(1).min(self.limits.batch_max);
        let mut batch = Batch { requests: Vec::with_capacity(expected), answers: Vec::with_capacity(expected) };
        let mut next = Some(first);
        while let Some(waiting) = next.take() {
            match waiting {
                WriterMessage::Request { request, answer } => {
                    batch.requests.push(request);
                    batch.answers.push(answer);
                }
                // Requests that were sent before the end are still written.
                WriterMessage::Close => self.waiting.close(),
            }
            if batch.requests.len() < self.limits.batch_max {
                next = self.waiting.try_recv().ok();
            }
        }
        batch
    }

    /// Writes a batch and sends its answers.
    pub fn carry_out(&mut self, batch: Batch) {
        let Batch { requests, answers } = batch;
        let Some(first) = requests.first() else { return };
        let (operation, count) = (first.operation(), requests.len());
        let now = self.clock.now();
        self.clock_watch.note(now);
        let progress = self.progress_to_save(now, requests.iter().any(WriteRequest::saves_progress));
        let responses = self.writer.batch(&requests, &progress, now);
        self.failure_log.log_write(operation, count, self.writer.last_failure(), now);
        match &self.runtime {
            // Waking many tasks from outside their runtime is expensive, so a task in the runtime sends the answers.
            Some(runtime) if answers.len() > 1 => drop(runtime.spawn(async move { send(answers, responses) })),
            _ => send(answers, responses),
        }
        self.report_stop();
    }

    /// Whether the store was closed and every request before that has been taken.
    pub fn is_closed(&self) -> bool {
        self.waiting.is_closed() && self.waiting.is_empty()
    }

    /// Closes the disk.
    pub fn close(self) {
        // Readers are closed first: only the last connection to a file can remove the log.
        self.reader.close();
        self.writer.close();
    }

    /// The progress to write with the next batch, which needs it if `is_needed`. Progress alone causes no commit.
    fn progress_to_save(&mut self, now: Timestamp, is_needed: bool) -> UnsavedProgress {
        let saved_at = self.progress_saved_at;
        // If the clock was set back, the next write does not wait until it has caught up.
        if !is_needed && saved_at <= now && now.ms_since(saved_at) < self.limits.progress_ms_min {
            return UnsavedProgress::new();
        }
        self.progress_saved_at = now;
        std::mem::take(&mut *self.unsaved_progress.lock())
    }
}

/// Wakes the thread of the writer.
struct ThreadWaker(Thread);

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn send(answers: Vec<ResponseSender>, responses: Vec<Result<WriteResponse, StoreError>>) {
    for (answer, response) in answers.into_iter().zip(responses) {
        // The caller may have been dropped. The write stays.
        let _ = answer.send(response);
    }
}

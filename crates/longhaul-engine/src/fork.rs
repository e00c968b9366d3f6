//! The branches of a handler.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::Ctx;
use crate::ctx::Link;
use crate::wait_tracker::BranchStart;

/// A branch of a handler, made by [`Ctx::fork`]. It does nothing until it is polled.
#[must_use = "a fork does nothing until it is awaited"]
#[derive(Debug)]
pub struct Fork<Fut> {
    branch: Pin<Box<Fut>>,
    path: Arc<str>,
    link: Link,
    /// `None` when the branch has started.
    start: Option<BranchStart>,
}

impl<Fut: Future> Fork<Fut> {
    pub(crate) fn new(ctx: Ctx, branch: impl FnOnce(Ctx) -> Fut) -> Self {
        let (path, link, start) = (Arc::clone(&ctx.path), ctx.link.clone(), Some(ctx.branch.start()));
        Self { branch: Box::pin(branch(ctx)), path, link, start }
    }
}

impl<Fut: Future> Future for Fork<Fut> {
    type Output = Fut::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(start) = self.start.take() {
            start.run();
        }
        let poll = self.branch.as_mut().poll(cx);
        if let (Poll::Ready(_), Link::Task(link)) = (&poll, &self.link) {
            link.journal.end_fork(&self.path);
        }
        poll
    }
}

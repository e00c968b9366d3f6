//! The branches of a handler.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::Ctx;
use crate::ctx::Link;

/// A branch of a handler, made by [`Ctx::fork`]. It does nothing until it is polled.
#[must_use = "a fork does nothing until it is awaited"]
#[derive(Debug)]
pub struct Fork<Fut> {
    branch: Pin<Box<Fut>>,
    path: Arc<str>,
    link: Link,
}

impl<Fut: Future> Fork<Fut> {
    pub(crate) fn new(ctx: Ctx, branch: impl FnOnce(Ctx) -> Fut) -> Self {
        let (path, link) = (Arc::clone(&ctx.path), ctx.link.clone());
        Self { branch: Box::pin(branch(ctx)), path, link }
    }
}

impl<Fut: Future> Future for Fork<Fut> {
    type Output = Fut::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let poll = self.branch.as_mut().poll(cx);
        if let (Poll::Ready(_), Link::Task(link)) = (&poll, &self.link) {
            link.journal.end_fork(&self.path);
        }
        poll
    }
}

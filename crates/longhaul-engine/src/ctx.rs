//! The context of a handler: its access to its task, to the requestor and to the engine.

use std::sync::Arc;

use longhaul_task::{JournalPosition, Json, Progress};
use serde_json::Value;

use crate::CtxError;
use crate::amount::{Amount, Total};
use crate::ask::{Ask, digest};
use crate::call::CallLink;
use crate::gate::{ForkGuard, Gate};
use crate::log::{LogLine, Severity};
use crate::task_link::TaskLink;
use crate::unanswered;

/// A handler's context. Operations that the journal records take `&mut self`, so that they have one order.
/// [`fork`](Ctx::fork) makes a context for concurrent work.
#[derive(Debug)]
pub struct Ctx {
    branch: ForkGuard,
    /// The keys of the forks from the root to this branch, joined by `/`.
    path: Arc<str>,
    /// Position of the next recorded operation within this branch, counted from 0.
    seq: u32,
    link: Link,
}

#[derive(Debug, Clone)]
enum Link {
    Task(Arc<TaskLink>),
    Call(Arc<CallLink>),
}

/// A question on its way to the requestor.
#[derive(Debug, Clone)]
pub(crate) struct HandlerQuestion {
    pub(crate) label: Arc<str>,
    pub(crate) kind: longhaul_task::QuestionKind,
    pub(crate) params: Json,
    pub(crate) position: JournalPosition,
    pub(crate) digest: u64,
}

impl Ctx {
    pub(crate) fn for_task(link: Arc<TaskLink>, gate: Arc<Gate>) -> Self {
        Self { branch: ForkGuard::root(gate), path: "".into(), seq: 0, link: Link::Task(link) }
    }

    pub(crate) fn for_call(link: Arc<CallLink>, gate: Arc<Gate>, path: &str) -> Self {
        Self { branch: ForkGuard::root(gate), path: path.into(), seq: 0, link: Link::Call(link) }
    }

    /// Asks the requestor something and waits for the answer, however long that takes. While every branch of the
    /// handler waits, its worker serves other tasks.
    ///
    /// In an ordinary call, where the client did not ask for a task, not every client can be asked while it waits. A
    /// client that cannot gets the question as the result of its call, and calls again with the answer. The handler
    /// then runs from the start, and this function returns the answer at once.
    pub async fn ask<Q: Ask>(&mut self, label: &str, question: Q) -> Result<Q::Answer, CtxError> {
        let kind = question.kind();
        let params = question.params();
        let position = JournalPosition { fork: Arc::clone(&self.path), seq: self.seq };
        self.seq += 1;
        let outgoing = HandlerQuestion { label: label.into(), kind, digest: digest(kind, &params), params, position };
        let answer = match &self.link {
            Link::Task(link) => link.ask(outgoing, &self.branch).await?,
            Link::Call(link) => link.ask(outgoing, &self.branch).await?,
        };
        match unanswered::refusal_reason(&answer) {
            Some(why) => Err(CtxError::NotAnswered(why)),
            None => question.read(&answer),
        }
    }

    /// Whether the client of an ordinary call has declared that it can answer such a question. A task can ask anything:
    /// one of the clients that follow it may be able to answer.
    pub fn can_ask<Q: Ask>(&self, question: &Q) -> bool {
        match &self.link {
            Link::Task(_) => true,
            Link::Call(link) => link.can_ask(question.kind(), &question.params()),
        }
    }

    /// Reports how far the work is, for clients that follow it. This is cheap; a crash may lose the newest report. The
    /// numbers can be of any type, and the total is `None` if it is not known:
    ///
    /// ```no_run
    /// # use longhaul_engine::{Ctx, CtxError};
    /// # async fn handler(mut ctx: Ctx, page: u32, pages: usize) -> Result<(), CtxError> {
    /// ctx.progress(page, pages, &format!("page {page}")).await?;
    /// ctx.progress(0.5, None, "halfway, perhaps").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn progress(
        &mut self,
        done: impl Into<Amount>,
        total: impl Into<Total>,
        message: &str,
    ) -> Result<(), CtxError> {
        let (Amount(done), Total(total)) = (done.into(), total.into());
        let message = (!message.is_empty()).then(|| Progress::message(message));
        match &self.link {
            Link::Task(link) => link.progress(done, total, message).await,
            Link::Call(link) => {
                link.progress(done, total, message);
                Ok(())
            }
        }
    }

    /// Sets the status message of the task, durably. It is shown until the next call. In an ordinary call this does
    /// nothing.
    pub async fn report(&mut self, message: &str) -> Result<(), CtxError> {
        match &self.link {
            Link::Task(link) => link.report(message).await,
            Link::Call(_) => Ok(()),
        }
    }

    /// Sends a line to the clients that follow the work now and want lines of this severity. Lines are not stored, the
    /// handler does not wait, and a slow client misses some. Use [`report`](Ctx::report) for what must not be lost.
    pub fn log(&self, severity: Severity, data: impl Into<Value>) {
        self.send_log(severity, None, &data.into());
    }

    /// Like [`log`](Ctx::log), with the name of the part of the work that logs.
    pub fn log_as(&self, logger: &str, severity: Severity, data: impl Into<Value>) {
        self.send_log(severity, Some(logger), &data.into());
    }

    fn send_log(&self, severity: Severity, logger: Option<&str>, data: &Value) {
        let log_line = LogLine::new(severity, logger, Json::from_text(data.to_string()));
        match &self.link {
            Link::Task(link) => link.log(&log_line),
            Link::Call(link) => link.log(&log_line),
        }
    }

    /// Makes a branch for concurrent work. `key` must be unique among the forks of this context. Run several branches
    /// with `tokio::join!` or a similar macro. A branch owns its context, so the engine sees the end of the branch when
    /// its future ends.
    ///
    /// ```no_run
    /// # use longhaul_engine::{Ask, Ctx, CtxError};
    /// # async fn handler<Q: Ask + Clone>(mut ctx: Ctx, question: Q) -> Result<(), CtxError> {
    /// let (left, right) = (question.clone(), question);
    /// let left = ctx.fork("left", |mut ctx| async move { ctx.ask("approve", left).await });
    /// let right = ctx.fork("right", |mut ctx| async move { ctx.ask("approve", right).await });
    /// let (left, right) = tokio::join!(left, right);
    /// # left?; right?; Ok(())
    /// # }
    /// ```
    pub fn fork<F, Fut>(&mut self, key: &str, branch: F) -> Fut
    where
        F: FnOnce(Self) -> Fut,
        Fut: Future,
    {
        let path = if self.path.is_empty() { key.into() } else { format!("{}/{key}", self.path).into() };
        branch(Self { branch: self.branch.fork(), path, seq: 0, link: self.link.clone() })
    }

    /// Resolves when the task is cancelled, for a handler that waits for something outside of its context. The
    /// handler then has its tool's grace period to tidy up.
    ///
    /// In an ordinary call, where the client did not ask for a task, this never resolves: when the client cancels the call or
    /// goes away, the handler is dropped where it waits. What must be tidied up then belongs into a `Drop`.
    pub async fn cancelled(&self) {
        match &self.link {
            Link::Task(link) => link.cancelled().await,
            Link::Call(_) => std::future::pending().await,
        }
    }

    /// Number of this attempt, counted from 1.
    pub fn attempt(&self) -> u32 {
        match &self.link {
            Link::Task(link) => link.attempt(),
            Link::Call(_) => 1,
        }
    }

    /// The task's public ID; an ordinary call has none.
    pub fn task_id(&self) -> Option<&longhaul_task::TaskId> {
        match &self.link {
            Link::Task(link) => Some(link.id()),
            Link::Call(_) => None,
        }
    }

    /// Random bits from the engine's source of randomness.
    pub fn random(&mut self) -> [u8; 16] {
        match &self.link {
            Link::Task(link) => link.random().bits(),
            Link::Call(link) => link.random().bits(),
        }
    }
}

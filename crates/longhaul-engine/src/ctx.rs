//! The context of a handler: its access to its task, to the requestor and to the engine.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use longhaul_task::{Answer, JournalEntry, JournalPosition, Json, Progress};
use serde_json::Value;

use crate::amount::{Amount, Total};
use crate::ask::{Ask, digest};
use crate::call::CallLink;
use crate::fork::Fork;
use crate::log::{LogLine, Severity};
use crate::task_link::TaskLink;
use crate::wait_tracker::{BranchGuard, WaitTracker};
use crate::{CtxError, RandomSource};

/// A handler's context. Operations that the journal records take `&mut self`, so that they have one order.
/// [`fork`](Ctx::fork) makes a context for concurrent work.
#[derive(Debug)]
pub struct Ctx {
    pub(crate) branch: BranchGuard,
    /// The keys of the forks from the root to this branch, joined by `/`.
    pub(crate) path: Arc<str>,
    /// Position of the next recorded operation within this branch, counted from 0.
    pub(crate) seq: u32,
    /// The keys of the forks of this branch.
    forks: HashSet<String>,
    /// The error that every operation of this branch returns, if the fork could not be made.
    refusal: Option<CtxError>,
    pub(crate) link: Link,
}

/// The longest path of forks, in bytes.
const PATH_BYTES_MAX: usize = 1_024;

/// The task or the ordinary call that a context belongs to.
#[derive(Debug, Clone)]
pub(crate) enum Link {
    Task(Arc<TaskLink>),
    Call(Arc<CallLink>),
}

/// A question that a handler asks, before it has a key.
#[derive(Debug, Clone)]
pub(crate) struct HandlerQuestion {
    pub(crate) label: Arc<str>,
    pub(crate) kind: longhaul_task::QuestionKind,
    pub(crate) params: Json,
    pub(crate) position: JournalPosition,
    pub(crate) digest: u64,
    /// How long the question stays open, and its answer if there is none by then.
    pub(crate) time_limit: Option<(Duration, Answer)>,
}

impl Ctx {
    pub(crate) fn for_task(link: Arc<TaskLink>, wait_tracker: Arc<WaitTracker>) -> Self {
        Self::new(BranchGuard::root(wait_tracker), Arc::default(), Link::Task(link))
    }

    pub(crate) fn for_call(link: Arc<CallLink>, wait_tracker: Arc<WaitTracker>, path: &str) -> Self {
        Self::new(BranchGuard::root(wait_tracker), path.into(), Link::Call(link))
    }

    fn new(branch: BranchGuard, path: Arc<str>, link: Link) -> Self {
        Self { branch, path, seq: 0, forks: HashSet::new(), refusal: None, link }
    }

    /// The position of the next operation.
    pub(crate) fn next_position(&mut self) -> Result<JournalPosition, CtxError> {
        if let Some(refusal) = &self.refusal {
            return Err(refusal.clone());
        }
        let position = JournalPosition { fork: Arc::clone(&self.path), seq: self.seq };
        self.seq += 1;
        Ok(position)
    }

    /// Appends an entry to the journal. An ordinary call has no journal.
    pub(crate) fn append(&self, entry: JournalEntry) -> Result<(), CtxError> {
        match &self.link {
            Link::Task(link) => link.journal.append(entry),
            Link::Call(_) => Ok(()),
        }
    }

    /// Writes the journal entries that are not written yet. An ordinary call has no journal.
    pub(crate) async fn write_entries(&self) -> Result<(), CtxError> {
        match &self.link {
            Link::Task(link) => link.write_entries().await,
            Link::Call(_) => Ok(()),
        }
    }

    pub(crate) fn random_source(&self) -> &dyn RandomSource {
        match &self.link {
            Link::Task(link) => link.random(),
            Link::Call(link) => link.random(),
        }
    }

    /// Asks the requestor something and waits for the answer, however long that takes. While every branch of the
    /// handler waits, its worker serves other tasks.
    ///
    /// In an ordinary call, which has no task, not every client can be asked while the call is open. Such a client receives the
    /// question as the result of its call, and calls again with the answer. The handler then runs from the start, and this
    /// function returns the answer at once.
    pub async fn ask<Q: Ask>(&mut self, label: &str, question: Q) -> Result<Q::Answer, CtxError> {
        self.ask_with(label, question, None).await
    }

    /// Like [`ask`](Ctx::ask), with a deadline. Returns `None`, and closes the question, if there is no answer within
    /// `limit` or if the client refuses to answer. The deadline survives a restart of the server.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use longhaul_engine::{Ask, Ctx, CtxError};
    /// # async fn handler<Q: Ask<Answer = bool>>(mut ctx: Ctx, approve: Q) -> Result<(), CtxError> {
    /// let is_approved = ctx.ask_within("approve", approve, Duration::from_secs(3600)).await?.unwrap_or(false);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// In an ordinary call `limit` has no effect: the client decides how long it waits.
    pub async fn ask_within<Q: Ask>(
        &mut self,
        label: &str,
        question: Q,
        limit: Duration,
    ) -> Result<Option<Q::Answer>, CtxError> {
        let default = Answer::NotGiven("the time for an answer is over".into());
        match self.ask_with(label, question, Some((limit, default))).await {
            Ok(answer) => Ok(Some(answer)),
            Err(CtxError::NotAnswered(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn ask_with<Q: Ask>(
        &mut self,
        label: &str,
        question: Q,
        time_limit: Option<(Duration, Answer)>,
    ) -> Result<Q::Answer, CtxError> {
        let kind = question.kind();
        let params = question.params();
        let position = self.next_position()?;
        let digest = digest(kind, &params);
        let outgoing = HandlerQuestion { label: label.into(), kind, digest, params, position, time_limit };
        let answer = match &self.link {
            Link::Task(link) => link.ask(outgoing, &self.branch).await?,
            Link::Call(link) => Answer::Given(link.ask(outgoing, &self.branch).await?),
        };
        match answer {
            Answer::Given(body) => question.read(&body),
            Answer::NotGiven(reason) => Err(CtxError::NotAnswered(reason.to_string())),
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

    /// Shows clients that follow the work how far it is. This is cheap, and a crash may lose the latest progress. The numbers
    /// can be of any numeric type. The total is `None` if it is not known:
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

    /// Sets the status message of the task, durably. Clients are shown this message or that of
    /// [`progress`](Ctx::progress), whichever is newer. In an ordinary call this does nothing.
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

    /// Like [`log`](Ctx::log), with the name of a logger, for example of the component that logs.
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

    /// Creates a branch for concurrent work. `key` must be unique among the forks of this context, not empty, and without `/`
    /// and `:`; otherwise every operation of the branch fails with [`CtxError::BadFork`]. Run several branches
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
    pub fn fork<F, Fut>(&mut self, key: &str, branch: F) -> Fork<Fut>
    where
        F: FnOnce(Self) -> Fut,
        Fut: Future,
    {
        let refusal = match key {
            "" => Some("its key is empty"),
            key if key.contains(['/', ':']) => Some("its key contains `/` or `:`"),
            _ => None,
        };
        Fork::new(self.fork_with(key, refusal), branch)
    }

    /// The context of a fork. If the fork cannot be made, every operation of the context returns an error with the reason.
    /// `refusal` is what the caller found wrong with the key.
    pub(crate) fn fork_with(&mut self, key: &str, refusal: Option<&'static str>) -> Self {
        let path = if self.path.is_empty() { key.into() } else { format!("{}/{key}", self.path).into() };
        let mut fork = Self::new(self.branch.fork(), path, self.link.clone());
        let refusal = if !self.forks.insert(key.to_owned()) {
            Some("this context has another fork with the same key")
        } else if fork.path.len() > PATH_BYTES_MAX {
            Some("its key is too long together with the keys of the forks around it; use shorter keys")
        } else {
            refusal
        };
        let refusal = refusal.map(|reason| CtxError::BadFork { key: key.into(), reason });
        fork.refusal = self.refusal.clone().or(refusal);
        if let Link::Task(link) = &fork.link {
            link.journal.begin_fork(&fork.path);
        }
        fork
    }

    /// Resolves when the task is cancelled, for a handler that waits for something outside of its context. The
    /// handler then has its tool's grace period to tidy up.
    ///
    /// In an ordinary call, which has no task, this never resolves: when the client cancels the call or disconnects, the
    /// handler's future is dropped. Clean up in a `Drop` implementation if that must happen in this case, too.
    pub async fn cancelled(&self) {
        match &self.link {
            Link::Task(link) => link.cancelled().await,
            Link::Call(_) => std::future::pending().await,
        }
    }

    /// The number of this attempt, counted from 1. Always 1 in an ordinary call.
    pub fn attempt(&self) -> u32 {
        match &self.link {
            Link::Task(link) => link.attempt(),
            Link::Call(_) => 1,
        }
    }

    /// The ID of the task; `None` in an ordinary call.
    pub fn task_id(&self) -> Option<&longhaul_task::TaskId> {
        match &self.link {
            Link::Task(link) => Some(link.id()),
            Link::Call(_) => None,
        }
    }
}

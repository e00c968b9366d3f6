//! Ordinary calls: a handler that runs while its client waits, with nothing stored.
//!
//! A client that can be asked while it waits is asked, and the handler goes on with the answer. For any other, a question
//! ends the call: its client is asked to call again with the answer, and the handler runs from the start. What was
//! answered before comes along with the call, so each round gets further.

use std::collections::HashMap;
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use futures_util::future::BoxFuture;
use longhaul_task::{Json, Outcome, Owner, Progress, QuestionKind, Timestamp};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::ctx::HandlerQuestion;
use crate::shell::EngineInner;
use crate::tool::Handler;
use crate::wait_tracker::{BranchGuard, WaitFor, WaitTracker};
use crate::{Ctx, CtxError, LogLine, RandomSource, token};

/// What a call brings along beside its arguments.
pub struct CallOptions {
    /// The calls under way of a tool are shared between owners.
    pub owner: Owner,
    /// Identifies the call: the same in all of its rounds, and different for every other call.
    pub id: Arc<str>,
    /// Answers to questions, by their keys: those of earlier rounds and those of this one.
    pub answers: HashMap<String, Json>,
    pub requestor: Arc<dyn Requestor>,
    /// Where progress goes. Progress that was not read yet is replaced by the newest.
    pub progress: Option<watch::Sender<Option<Progress>>>,
}

/// What a call has to know of its client. The wire knows how.
pub trait Requestor: Send + Sync + 'static {
    /// Whether the client said that it can answer such a question.
    fn can_answer(&self, kind: QuestionKind, params: &Json) -> bool;

    /// Whether an answer fits its question; the text says why not.
    fn fits(&self, kind: QuestionKind, params: &Json, answer: &Json) -> Result<(), String>;

    /// Asks the client a question while its call goes on. `None` if the client can only be asked to call again.
    fn ask(&self, question: OpenQuestion) -> Option<BoxFuture<'_, Result<Json, CtxError>>> {
        let _ = question;
        None
    }

    /// Sends the client a log line, if it wants it and there is room; does not wait.
    fn log(&self, line: &LogLine) {
        let _ = line;
    }
}

impl fmt::Debug for CallOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallOptions").field("answers", &self.answers.keys()).finish_non_exhaustive()
    }
}

/// How a call ended.
#[derive(Debug)]
pub enum CallEnd {
    /// It is done.
    Done(Outcome),
    /// It needs answers first.
    Asks {
        questions: Vec<OpenQuestion>,
        /// What was answered already, and has to come along again.
        answered: Vec<(String, Json)>,
    },
    /// It cannot go on.
    Stopped(CtxError),
}

/// A question that a call has put to its client.
#[derive(Debug, Clone)]
pub struct OpenQuestion {
    pub key: String,
    /// What kind of thing is asked for.
    pub kind: QuestionKind,
    pub params: Json,
}

/// A context's way to its call.
#[derive(Debug)]
pub(crate) struct CallLink {
    call: CallOptions,
    pub(crate) engine: Arc<EngineInner>,
    rounds: Mutex<Rounds>,
}

#[derive(Debug, Default)]
struct Rounds {
    /// How often each label was used: the first is its own key.
    used: HashMap<Arc<str>, u32>,
    answered: Vec<(String, Json)>,
    open: Vec<OpenQuestion>,
}

impl CallLink {
    pub(crate) fn new(call: CallOptions, engine: Arc<EngineInner>) -> Self {
        Self { call, engine, rounds: Mutex::default() }
    }

    pub(crate) async fn ask(&self, asked: HandlerQuestion, branch: &BranchGuard) -> Result<Json, CtxError> {
        let (question, answer) = self.named(asked);
        let requestor = &self.call.requestor;
        if let Some(answer) = answer {
            requestor.fits(question.kind, &question.params, &answer).map_err(CtxError::BadAnswer)?;
            self.rounds.lock().answered.push((question.key, answer.clone()));
            return Ok(answer);
        }
        if !self.can_ask(question.kind, &question.params) {
            let OpenQuestion { key, kind, params } = question;
            return Err(CtxError::CannotAsk { kind, label: key.into(), params });
        }
        if let Some(answer) = requestor.ask(question.clone()) {
            return answer.await;
        }
        self.rounds.lock().open.push(question);
        // The question goes out with the end of this call; `drive` drops the handler here.
        let _waits = branch.wait(WaitFor::NextCall);
        std::future::pending().await
    }

    pub(crate) fn token(&self) -> String {
        token::of(&self.call.owner, &self.call.id)
    }

    pub(crate) fn can_ask(&self, kind: QuestionKind, params: &Json) -> bool {
        self.call.requestor.can_answer(kind, params)
    }

    /// The question with its key in this call, and the answer that the call brings for it.
    fn named(&self, asked: HandlerQuestion) -> (OpenQuestion, Option<Json>) {
        let mut rounds = self.rounds.lock();
        let uses = rounds.used.entry(Arc::clone(&asked.label)).or_default();
        *uses += 1;
        let key = if *uses == 1 { asked.label.to_string() } else { format!("{}-{uses}", asked.label) };
        let answer = self.call.answers.get(&key).cloned();
        (OpenQuestion { key, kind: asked.kind, params: asked.params }, answer)
    }

    pub(crate) fn progress(&self, done: f64, total: Option<f64>, message: Option<Arc<str>>) {
        if let Some(progress) = &self.call.progress {
            progress.send_replace(Some(Progress { done, total, message, at: Timestamp::ZERO }));
        }
    }

    pub(crate) fn log(&self, line: &LogLine) {
        self.call.requestor.log(line);
    }

    pub(crate) fn random(&self) -> &dyn RandomSource {
        &*self.engine.random
    }
}

/// Runs a handler until it ends or until it only waits for answers.
pub(crate) async fn drive(handler: Arc<dyn Handler>, link: &Arc<CallLink>, path: &str, input: Json) -> CallEnd {
    let wait_tracker = Arc::new(WaitTracker::default());
    let ctx = Ctx::for_call(Arc::clone(link), Arc::clone(&wait_tracker), path);
    let mut running = crate::attempt::catch_panic(handler, ctx, input);
    let end = poll_fn(|cx| {
        wait_tracker.set_waker(cx.waker());
        match running.as_mut().poll(cx) {
            Poll::Ready(end) => Poll::Ready(Some(end)),
            Poll::Pending if wait_tracker.all_wait() => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    });
    match end.await {
        Some(Ok(outcome)) => CallEnd::Done(outcome),
        Some(Err(CtxError::Final(outcome))) => CallEnd::Done(*outcome),
        Some(Err(stop)) => CallEnd::Stopped(stop),
        None => {
            drop(running);
            let rounds = std::mem::take(&mut *link.rounds.lock());
            CallEnd::Asks { questions: rounds.open, answered: rounds.answered }
        }
    }
}

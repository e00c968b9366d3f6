//! What the server has acknowledged and shown, and what must hold because of it.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use longhaul_testkit::GetTaskResult;
use rand::RngExt;
use rand::rngs::StdRng;
use tokio::sync::watch;

use crate::job::{self, LoadCall};
use crate::operator::Listed;

/// How much is known about a cancellation, from little to much.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CancelProgress {
    /// Not requested.
    No,
    /// Requested, with or without a response.
    Sent,
    /// Acknowledged: the task has ended, by the cancellation or before it.
    Acknowledged,
    /// The task was ended by the cancellation, because it could not have ended before.
    Certain,
}

/// What is known of a task whose creation was acknowledged.
#[derive(Debug, Clone)]
pub(crate) struct KnownTask {
    pub(crate) job: LoadCall,
    /// The end of the task, byte for byte as it was first read.
    pub(crate) end: Option<String>,
    pub(crate) cancel: CancelProgress,
    pub(crate) answered: BTreeSet<String>,
    /// The state in the store after the last kill.
    pub(crate) left: Option<Listed>,
    /// Whether a process was killed while the task ran.
    pub(crate) crashed: bool,
    /// Whether the disk was full while the task was open.
    on_full_disk: bool,
    /// The longest `ttlMs` that was read. It may not become shorter.
    ttl_ms: u64,
    /// The number of attempts when the task was found cancelled after a kill.
    started_before_cancel: Option<usize>,
}

impl KnownTask {
    fn new(job: LoadCall) -> Self {
        Self {
            job,
            end: None,
            cancel: CancelProgress::No,
            answered: BTreeSet::new(),
            left: None,
            crashed: false,
            on_full_disk: false,
            ttl_ms: 0,
            started_before_cancel: None,
        }
    }

    pub(crate) fn set_cancelled(&mut self) {
        let failed_before = self.crashed && !self.job.is_retried();
        let is_certain = self.job.is_endless() && !failed_before;
        self.cancel = self.cancel.max(if is_certain { CancelProgress::Certain } else { CancelProgress::Acknowledged });
    }

    /// Checks a response against what was known before the request.
    pub(crate) fn check(&self, view: &GetTaskResult) -> Result<(), String> {
        if let Some(end) = &self.end
            && *end != view.text
        {
            return Err(format!("it had ended as\n  {end}"));
        }
        let is_cancelled = match self.cancel {
            CancelProgress::No | CancelProgress::Sent => true,
            CancelProgress::Acknowledged => view.is_settled(),
            CancelProgress::Certain => view.status() == "cancelled",
        };
        if !is_cancelled {
            return Err("its cancellation was acknowledged".into());
        }
        if let Some(again) = view.questions().iter().find(|key| self.answered.contains(*key)) {
            return Err(format!("the answer to {again} was acknowledged"));
        }
        let ttl_ms = view.value["ttlMs"].as_u64().unwrap_or(u64::MAX);
        if ttl_ms < self.ttl_ms {
            return Err(format!("its ttlMs was {}", self.ttl_ms));
        }
        match view.status() {
            "working" => Ok(()),
            "input_required" if self.job.asks() => Ok(()),
            "completed" if self.job.is_result(view.result_text()) => Ok(()),
            "cancelled" if self.cancel >= CancelProgress::Sent => Ok(()),
            "failed" if self.failed_to_ask(view) => Ok(()),
            "failed" if self.crashed && !self.job.is_retried() => is_crash_recovery(view),
            status => Err(format!("it cannot be {status}: {self:?}")),
        }
    }

    /// Whether the task failed because its question could not be stored.
    fn failed_to_ask(&self, view: &GetTaskResult) -> bool {
        self.on_full_disk && self.job.asks() && is_store_error(&view.text)
    }

    /// Checks the first response after a restart against the state in the store after the kill.
    pub(crate) fn check_after_start(&self, view: &GetTaskResult) -> Result<(), String> {
        self.check(view)?;
        let Some(left) = &self.left else { return Err("it was never in a file".into()) };
        match left.status.as_str() {
            "completed" | "failed" | "cancelled" if left.status == view.status() => Ok(()),
            "running" | "waiting" if !self.job.is_retried() && view.status() == "failed" => is_crash_recovery(view),
            "running" | "waiting" if self.job.is_retried() && view.status() != "failed" => Ok(()),
            "queued" if view.status() != "failed" => Ok(()),
            status => Err(format!("a dead process left it {status}")),
        }
    }
}

/// Whether a task failed because the store could not be written. A limit on files is an error of the device for SQLite, and
/// not a full disk.
fn is_store_error(text: &str) -> bool {
    [r#""code":"STORE_FULL""#, r#""code":"STORE_UNAVAILABLE""#].iter().any(|code| text.contains(code))
}

fn is_crash_recovery(view: &GetTaskResult) -> Result<(), String> {
    let says_why = view.value["statusMessage"].as_str().is_some_and(|message| message.contains("server stopped"));
    if view.value["error"]["data"]["code"] == "CRASH_RECOVERY" && says_why {
        Ok(())
    } else {
        Err("it failed without saying that its process died".into())
    }
}

pub(crate) struct Ledger {
    directory: PathBuf,
    tasks: Mutex<(HashMap<String, KnownTask>, Vec<String>)>,
    calls: AtomicU64,
    reads: AtomicU64,
    unacknowledged: AtomicU64,
    /// The number of responses to clients under load.
    answers: watch::Sender<u64>,
    is_disk_full: AtomicBool,
    removed: AtomicU64,
}

impl Ledger {
    pub(crate) fn new(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            tasks: Mutex::default(),
            calls: AtomicU64::new(0),
            reads: AtomicU64::new(0),
            unacknowledged: AtomicU64::new(0),
            answers: watch::Sender::new(0),
            is_disk_full: AtomicBool::new(false),
            removed: AtomicU64::new(0),
        }
    }

    /// Counts a response to a client under load.
    pub(crate) fn answered(&self) {
        self.answers.send_modify(|answers| *answers += 1);
    }

    /// Waits for this many more responses.
    pub(crate) async fn answers(&self, more: u64) {
        let mut answers = self.answers.subscribe();
        let enough = *answers.borrow() + more;
        answers.wait_for(|answers| *answers >= enough).await.expect("the ledger lives");
    }

    /// Waits for this many more tasks.
    pub(crate) async fn creations(&self, more: usize) {
        let mut answers = self.answers.subscribe();
        let enough = self.len() + more;
        answers.wait_for(|_| self.len() >= enough).await.expect("the ledger lives");
    }

    fn len(&self) -> usize {
        self.tasks.lock().unwrap().1.len()
    }

    /// The disk becomes full, or a new process finds room on it.
    pub(crate) fn disk_full(&self, is_full: bool) {
        let mut tasks = self.tasks.lock().unwrap();
        self.is_disk_full.store(is_full, Ordering::SeqCst);
        for known in tasks.0.values_mut().filter(|known| is_full && known.end.is_none()) {
            known.on_full_disk = true;
        }
    }

    /// The file with all tasks was removed, as the server has said.
    pub(crate) fn file_removed(&self) {
        let mut tasks = self.tasks.lock().unwrap();
        self.removed.fetch_add(tasks.1.len() as u64, Ordering::Relaxed);
        *tasks = Default::default();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tasks.lock().unwrap().1.is_empty()
    }

    pub(crate) fn ids(&self) -> Vec<String> {
        self.tasks.lock().unwrap().1.clone()
    }

    pub(crate) fn any_id(&self, rng: &mut StdRng) -> Option<String> {
        let tasks = self.tasks.lock().unwrap();
        (!tasks.1.is_empty()).then(|| tasks.1[rng.random_range(0..tasks.1.len())].clone())
    }

    pub(crate) fn new_job(&self, rng: &mut StdRng) -> LoadCall {
        LoadCall::random(rng, self.calls.fetch_add(1, Ordering::Relaxed), &self.directory)
    }

    pub(crate) fn created(&self, id: &str, job: LoadCall) {
        let mut tasks = self.tasks.lock().unwrap();
        let mut known = KnownTask::new(job);
        known.on_full_disk = self.is_disk_full.load(Ordering::SeqCst);
        assert!(tasks.0.insert(id.to_owned(), known).is_none(), "{id} was given out twice");
        tasks.1.push(id.to_owned());
    }

    pub(crate) fn known(&self, id: &str) -> KnownTask {
        self.tasks.lock().unwrap().0[id].clone()
    }

    pub(crate) fn change(&self, id: &str, change: impl FnOnce(&mut KnownTask)) {
        change(self.tasks.lock().unwrap().0.get_mut(id).expect("a task of this ledger"));
    }

    /// Records a response that was checked.
    pub(crate) fn saw(&self, id: &str, view: &GetTaskResult) {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.change(id, |known| {
            known.ttl_ms = known.ttl_ms.max(view.value["ttlMs"].as_u64().unwrap_or(u64::MAX));
            if view.is_settled() {
                known.end.get_or_insert_with(|| view.text.clone());
            }
        });
    }

    /// Records the state in the store after a kill.
    pub(crate) fn died(&self, left: &HashMap<String, Listed>) {
        let mut tasks = self.tasks.lock().unwrap();
        self.unacknowledged.store((left.len() - tasks.1.len().min(left.len())) as u64, Ordering::Relaxed);
        for (id, known) in &mut tasks.0 {
            let left = left.get(id).unwrap_or_else(|| panic!("{id} was acknowledged and is lost: {known:?}"));
            let is_open = matches!(left.status.as_str(), "queued" | "running" | "waiting");
            assert!(
                !(known.cancel >= CancelProgress::Acknowledged && is_open),
                "{id} was acknowledged as cancelled and is not: {known:?}"
            );
            known.crashed |= matches!(left.status.as_str(), "running" | "waiting");
            known.left = Some(left.clone());
            if left.status == "cancelled" && known.started_before_cancel.is_none() {
                known.started_before_cancel = known.job.trace().map(|trace| starts(trace).len());
            }
        }
    }

    /// Checks the lines of the attempts: no number twice, and none after the end.
    pub(crate) fn check_traces(&self) {
        for (id, known) in &self.tasks.lock().unwrap().0 {
            let Some(trace) = known.job.trace() else { continue };
            let starts = starts(trace);
            assert!(starts.is_sorted_by(|a, b| a < b), "{id} had attempts {starts:?}");
            let end: serde_json::Value = serde_json::from_str(known.end.as_deref().unwrap_or("null")).unwrap();
            if let Some(won) = end["result"]["content"][0]["text"].as_str().and_then(job::attempt) {
                assert_eq!(starts.last(), Some(&won), "{id} was started after its end: {starts:?}");
            }
            if let Some(count) = known.started_before_cancel {
                assert_eq!(starts.len(), count, "{id} was started after it was cancelled");
            }
        }
    }

    /// The counts in words.
    pub(crate) fn counts(&self) -> String {
        let tasks = self.tasks.lock().unwrap();
        let (mut completed, mut cancelled, mut failed, mut retried, mut unasked) = (0, 0, 0, 0, 0);
        let (mut answered, mut anew) = (0, 0);
        for known in tasks.0.values() {
            let ended = |how: &str| {
                let status = format!("\"status\":\"{how}\"");
                u64::from(known.end.as_ref().is_some_and(|end| end.contains(&status)))
            };
            completed += ended("completed");
            cancelled += ended("cancelled");
            failed += ended("failed");
            unasked += u64::from(known.end.as_deref().is_some_and(is_store_error));
            if known.crashed && known.job.is_retried() {
                retried += ended("completed");
            }
            answered += u64::from(!known.answered.is_empty());
            anew += u64::from(known.answered.len() > 1);
        }
        let (created, removed) = (tasks.1.len(), self.removed.load(Ordering::Relaxed));
        let unacknowledged = self.unacknowledged.load(Ordering::Relaxed);
        let reads = self.reads.load(Ordering::Relaxed);
        format!(
            "{created} tasks acknowledged (and {unacknowledged} durable without; {removed} more were removed with their \
             file): {completed} completed, {retried} of them retried after a crash, {cancelled} cancelled, {failed} failed \
             by recovery, {unasked} of them because a full disk had no room for their question; {answered} with \
             acknowledged answers, {anew} of them to a new question after a crash; {reads} reads compared"
        )
    }
}

/// The numbers of the started attempts, in order.
fn starts(trace: &Path) -> Vec<u32> {
    let text = std::fs::read_to_string(trace).unwrap_or_default();
    text.lines().map(|line| job::attempt(line).unwrap_or_else(|| panic!("{line:?} is no attempt"))).collect()
}

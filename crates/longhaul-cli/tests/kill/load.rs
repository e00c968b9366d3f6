//! Clients that send all kinds of requests until the server is killed.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use longhaul_testkit::{FailureReport, GetTaskResult, StatelessClient};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::ledger::{CancelProgress, KnownTask, Ledger};

/// What the test does to a server, and what its clients must therefore expect.
#[derive(Debug, Default)]
pub(crate) struct Situation {
    /// The process is killed or ends: connections break.
    pub(crate) ends: AtomicBool,
    /// The store cannot be written: requests are refused, from here on to the end of the process.
    pub(crate) refuses: AtomicBool,
    /// A file of the store is gone: no request that is sent from here on may create a task.
    pub(crate) has_lost_file: AtomicBool,
    refusals: watch::Sender<u64>,
}

impl Situation {
    /// Waits for this many refusals.
    pub(crate) async fn refusals(&self, count: u64) {
        self.refusals.subscribe().wait_for(|refusals| *refusals >= count).await.expect("the situation lives");
    }

    /// Whether a client can go on after this failure. Panics if nothing that the test did explains it.
    fn outlives(&self, failure: &FailureReport) -> bool {
        match failure {
            FailureReport::Lost(_) if self.ends.load(Ordering::SeqCst) => false,
            FailureReport::Refused { body, .. }
                if self.refuses.load(Ordering::SeqCst)
                    && (body.contains("\"STORE_") || body.contains("\"DRAINING")) =>
            {
                self.refusals.send_modify(|refusals| *refusals += 1);
                true
            }
            _ => panic!("in {self:?} a client got {failure:?}"),
        }
    }
}

/// The pause of a client that was refused.
const PAUSE: Duration = Duration::from_millis(20);

pub(crate) struct Worker {
    ledger: Arc<Ledger>,
    rng: StdRng,
    situation: Arc<Situation>,
}

impl Worker {
    pub(crate) fn new(ledger: Arc<Ledger>, seed: u64, situation: Arc<Situation>) -> Self {
        Self { ledger, rng: StdRng::seed_from_u64(seed), situation }
    }

    /// Sends requests until the connection breaks.
    pub(crate) async fn run(mut self, address: SocketAddr) {
        let mut client = match StatelessClient::connect(address).await {
            Ok(client) => client,
            Err(failure) => {
                self.situation.outlives(&failure);
                return;
            }
        };
        loop {
            if let Err(failure) = self.step(&mut client).await {
                if !self.situation.outlives(&failure) {
                    return;
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    async fn step(&mut self, client: &mut StatelessClient) -> Result<(), FailureReport> {
        match self.rng.random_range(0..100) {
            0..75 => self.create(client).await,
            75..92 => match self.ledger.any_id(&mut self.rng) {
                Some(id) => look(&self.ledger, client, &id).await.map(drop),
                None => Ok(()),
            },
            _ => match self.ledger.any_id(&mut self.rng) {
                Some(id) => cancel(&self.ledger, client, &id).await,
                None => Ok(()),
            },
        }
    }

    async fn create(&mut self, client: &mut StatelessClient) -> Result<(), FailureReport> {
        let job = self.ledger.new_job(&mut self.rng);
        let had_lost_file = self.situation.has_lost_file.load(Ordering::SeqCst);
        let id = client.create(job.tool(), job.arguments()).await?;
        assert!(!had_lost_file, "{id} was acknowledged after a file of its store was gone");
        self.ledger.created(&id, job.clone());
        self.ledger.answered();
        if job.is_endless() && self.rng.random_ratio(4, 5) {
            return cancel(&self.ledger, client, &id).await;
        }
        if job.asks() && self.rng.random_ratio(4, 5) {
            loop {
                let view = look(&self.ledger, client, &id).await?;
                if view.is_settled() {
                    return Ok(());
                }
                if !view.questions().is_empty() {
                    return answer(&self.ledger, client, &id, &view).await;
                }
            }
        }
        for _ in 0..self.rng.random_range(0..4) {
            look(&self.ledger, client, &id).await?;
        }
        Ok(())
    }
}

/// Reads a task and checks it against what was known before the read.
pub(crate) async fn look(
    ledger: &Ledger,
    client: &mut StatelessClient,
    id: &str,
) -> Result<GetTaskResult, FailureReport> {
    let mut known = ledger.known(id);
    let view = client.get(id).await?;
    // A fact that forbids a state counts if it was known before the read; one that allows a state, also after it.
    if ledger.known(id).cancel >= CancelProgress::Sent {
        known.cancel = known.cancel.max(CancelProgress::Sent);
    }
    if let Err(why) = known.check(&view) {
        panic!("task {id} is now\n  {}\nbut {why}", view.text);
    }
    ledger.saw(id, &view);
    ledger.answered();
    Ok(view)
}

/// Cancels a task, and checks that it has ended.
pub(crate) async fn cancel(ledger: &Ledger, client: &mut StatelessClient, id: &str) -> Result<(), FailureReport> {
    ledger.change(id, |known| known.cancel = known.cancel.max(CancelProgress::Sent));
    client.cancel(id).await?;
    ledger.answered();
    ledger.change(id, KnownTask::set_cancelled);
    look(ledger, client, id).await.map(drop)
}

/// Answers every open question of a task, and checks that it is not asked again.
pub(crate) async fn answer(
    ledger: &Ledger,
    client: &mut StatelessClient,
    id: &str,
    view: &GetTaskResult,
) -> Result<(), FailureReport> {
    let keys = view.questions();
    let yes = json!({ "action": "accept", "content": { "confirm": true } });
    let answers: serde_json::Map<String, Value> = keys.iter().map(|key| (key.clone(), yes.clone())).collect();
    client.update(id, answers.into()).await?;
    ledger.answered();
    ledger.change(id, |known| known.answered.extend(keys));
    look(ledger, client, id).await.map(drop)
}

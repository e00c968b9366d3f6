//! Checks after a restart: every task is there, unchanged, and none belongs to the killed process.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use longhaul_testkit::{FailureReport, StatelessClient};

use crate::CONNECTIONS;
use crate::ledger::Ledger;
use crate::load::{answer, cancel, look};
use crate::operator;

/// Checks every task as soon as the server listens, as the operator and as a client.
pub(crate) async fn after_start(ledger: &Arc<Ledger>, file: &Path, address: SocketAddr) {
    let ids = ledger.ids();
    if ids.is_empty() {
        return;
    }
    let listed = Arc::new(operator::list(file));
    for id in &ids {
        let known = ledger.known(id);
        let is_dead = known.crashed && !known.job.is_retried() && listed[id].status != "failed";
        // A task that was claimed by a process that was killed before the end of the task has no other outcome.
        let ended_before =
            known.left.as_ref().is_some_and(|left| matches!(left.status.as_str(), "completed" | "cancelled"));
        assert!(!is_dead || ended_before, "{id} still belongs to a dead process: {:?}", listed[id]);
    }
    each(ledger, ids, address, move |ledger, mut client, id| {
        let listed = Arc::clone(&listed);
        async move {
            let known = ledger.known(&id);
            let view = client.get(&id).await?;
            if let Err(why) = known.check_after_start(&view) {
                panic!("after a restart task {id} is\n  {}\nbut {why}", view.text);
            }
            let seen = listed[&id].status.as_str();
            let agree = seen == view.status() || matches!(seen, "queued" | "running" | "waiting");
            assert!(agree, "the operator saw {id} {seen}, its owner {}", view.text);
            ledger.saw(&id, &view);
            Ok(client)
        }
    })
    .await;
}

/// Cancels endless tasks, answers questions, and waits for the end of all tasks.
pub(crate) async fn let_everything_end(ledger: &Arc<Ledger>, address: SocketAddr) {
    let endless = ledger.ids().into_iter().filter(|id| ledger.known(id).job.is_endless()).collect();
    each(ledger, endless, address, |ledger, mut client, id| async move {
        cancel(&ledger, &mut client, &id).await?;
        Ok(client)
    })
    .await;
    each(ledger, ledger.ids(), address, |ledger, mut client, id| async move {
        loop {
            let view = look(&ledger, &mut client, &id).await?;
            if view.is_settled() {
                return Ok(client);
            }
            if !view.questions().is_empty() {
                answer(&ledger, &mut client, &id, &view).await?;
            }
        }
    })
    .await;
}

/// Checks at the end that every task has ended, also for the operator, and that there was no attempt too many.
pub(crate) fn settled(ledger: &Ledger, file: &Path) {
    let listed = operator::list(file);
    for id in ledger.ids() {
        let end = ledger.known(&id).end.expect("every task was seen to end");
        let status = format!("\"status\":\"{}\"", listed[&id].status);
        assert!(end.contains(&status), "the operator sees {:?}, its owner {end}", listed[&id]);
    }
    ledger.check_traces();
}

/// Runs this for every task, over many connections. The server is not killed meanwhile.
async fn each<F, Fut>(ledger: &Arc<Ledger>, ids: Vec<String>, address: SocketAddr, work: F)
where
    F: Fn(Arc<Ledger>, StatelessClient, String) -> Fut + Clone + Send + 'static,
    Fut: Future<Output = Result<StatelessClient, FailureReport>> + Send,
{
    let share = ids.len().div_ceil(usize::try_from(CONNECTIONS).unwrap_or(1)).max(1);
    let mut clients = Vec::new();
    for ids in ids.chunks(share) {
        let (ledger, ids, work) = (Arc::clone(ledger), ids.to_vec(), work.clone());
        clients.push(tokio::spawn(async move {
            let mut client = StatelessClient::connect(address).await?;
            for id in ids {
                client = work(Arc::clone(&ledger), client, id).await?;
            }
            Ok::<_, FailureReport>(())
        }));
    }
    for client in clients {
        client.await.expect("what was seen is right").expect("the server lives");
    }
}

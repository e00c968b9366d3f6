//! Creates a given number of tasks, for runs with a server that retains many.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Instant;

use anyhow::Context;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::answer::Status;
use crate::scenario::ids::Ids;
use crate::session::{Server, Session};
use crate::window::{on_one_thread, round};

/// Flags of `load fill`.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    server: Server,
    /// How many connections to keep busy.
    #[arg(long, default_value_t = 128)]
    connections: usize,
    /// How many tasks to create.
    #[arg(long)]
    count: usize,
    /// Write the IDs of the created tasks to this file.
    #[arg(long)]
    ids_out: Option<PathBuf>,
    /// Afterwards, read every task until it is completed.
    #[arg(long)]
    settle: bool,
    /// At the end, create this number of tasks that do not end during the run (`slow_compute`).
    #[arg(long, default_value_t = 0)]
    live: usize,
}

/// # Errors
/// If a response is not a task.
pub fn run(args: &Args) -> anyhow::Result<Value> {
    let started = Instant::now();
    let created = Rc::new(RefCell::new(Ids::default()));
    on_one_thread(each(args, |session| create(session, args.count, Rc::clone(&created))))?;
    let created_s = started.elapsed().as_secs_f64();
    let mut created = Rc::new(created.take());
    if args.settle {
        let next = Rc::new(Cell::new(0));
        on_one_thread(each(args, |session| settle(session, Rc::clone(&created), Rc::clone(&next))))?;
    }
    if args.live > 0 {
        let live = on_one_thread(live(args))?;
        let created = Rc::get_mut(&mut created).context("a client is still there")?;
        for id in &live {
            created.push(id);
        }
    }
    if let Some(path) = &args.ids_out {
        created.write(path)?;
    }
    #[expect(clippy::cast_precision_loss, reason = "a count of tasks is far below 2^52")]
    let rate = created.len() as f64 / created_s;
    Ok(json!({
        "connections": args.connections,
        "count": created.len(),
        "errors": 0,
        "settled": args.settle,
        "seconds": round(started.elapsed().as_secs_f64()),
        "rate_per_s": round(rate),
    }))
}

async fn each<Running>(args: &Args, mut client: impl FnMut(Session) -> Running) -> anyhow::Result<()>
where
    Running: Future<Output = anyhow::Result<()>> + 'static,
{
    let mut clients = JoinSet::new();
    for _ in 0..args.connections {
        clients.spawn_local(client(Session::open(&args.server).await?));
    }
    while let Some(ended) = clients.join_next().await {
        ended.context("a client panicked")??;
    }
    Ok(())
}

async fn create(mut session: Session, count: usize, ids: Rc<RefCell<Ids>>) -> anyhow::Result<()> {
    let mut task_id = String::new();
    while ids.borrow().len() < count {
        session.create(&mut task_id).await?;
        // Other connections may have reached the count meanwhile; then this task is not in the file.
        let mut ids = ids.borrow_mut();
        if ids.len() < count {
            ids.push(&task_id);
        }
    }
    Ok(())
}

async fn live(args: &Args) -> anyhow::Result<Vec<String>> {
    let mut session = Session::open(&args.server).await?;
    let mut ids = vec![String::new(); args.live];
    for id in &mut ids {
        session.create_live(id).await?;
    }
    Ok(ids)
}

async fn settle(mut session: Session, ids: Rc<Ids>, next: Rc<Cell<usize>>) -> anyhow::Result<()> {
    while next.get() < ids.len() {
        let index = next.replace(next.get() + 1);
        while session.get(ids.get(index)).await? != Status::Completed {}
    }
    Ok(())
}

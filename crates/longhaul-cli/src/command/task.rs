//! `longhaul task list|get|history|cancel`: the operator's view of a store, while a server uses it or not.

use clap::{Args, Subcommand};
use jiff::Timestamp as Time;
use longhaul::StoreUrl;
use longhaul_engine::audit;
use longhaul_store::{ListQuery, ReadOnlyStore, Snapshot, StoreError};
use longhaul_task::transition::Cancel;
use longhaul_task::{Event, Outcome, Owner, Phase, TaskId, TaskKey, Timestamp};
use serde_json::{Value, json};

use crate::exit::{self, CommandError};
use crate::operator;
use crate::output::{stdout_line, write_stdout_raw};
use crate::shown_id;
use crate::store::OperatorStoreArgument;

/// The statuses of the operator and of clients, for the help.
const STATUSES: &str = "\
Statuses, and what a client sees:
  queued     waits for a worker                     working
  running    a worker has it                        working
  parked     waits for a timer or for other tasks   working
  waiting    waits for an answer                    input_required
  completed  has its result                         completed
  failed     has its error                          failed, or completed with `isError` if the tool said so itself
  cancelled                                         cancelled";

fn help() -> String {
    format!("{STATUSES}\n\n{}", exit::HELP)
}

#[derive(Debug, Subcommand)]
#[command(after_help = help())]
pub enum TaskCommand {
    /// List tasks, newest first; those whose IDs clients chose stand where these IDs put them
    List(List),
    /// Show one task with its outcome
    Get(OneTask),
    /// Show what happened to a task: attempts, steps, questions, subtasks
    History(History),
    /// Cancel a task, at once and for good
    Cancel(OneTask),
}

#[derive(Debug, Args)]
#[command(after_help = help())]
pub struct List {
    #[command(flatten)]
    store: OperatorStoreArgument,
    /// Only tasks of this owner
    #[arg(long)]
    owner: Option<String>,
    /// The most tasks to list
    #[arg(long, default_value = "50", value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = help())]
pub struct OneTask {
    /// The task's ID, as `task list` prints it
    id: String,
    #[command(flatten)]
    store: OperatorStoreArgument,
    /// The owner of the task [default: the first owner with a task of this ID]
    #[arg(long)]
    owner: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = help())]
pub struct History {
    #[command(flatten)]
    task: OneTask,
    /// Show the outputs of steps and the answers, too
    #[arg(long)]
    contents: bool,
}

impl History {
    async fn run(self) -> Result<(), CommandError> {
        let url = self.task.store.url()?;
        let snapshot = self.task.find(&url).await?;
        let history = url.open_read_only().await?.history(&snapshot.task.key).await?;
        super::history::print(&snapshot, &history, self.task.json, self.contents)
    }
}

impl TaskCommand {
    pub(super) async fn run(self) -> Result<(), CommandError> {
        match self {
            Self::List(list) => list.run().await,
            Self::Get(one) => one.get().await,
            Self::History(history) => history.run().await,
            Self::Cancel(one) => one.cancel().await,
        }
    }
}

impl List {
    async fn run(self) -> Result<(), CommandError> {
        let store = self.store.url()?.open_read_only().await?;
        let owner = self.owner.as_deref().map(owner).transpose()?;
        let listing = ListQuery { owner, after: None, limit: usize::try_from(self.limit).unwrap_or(usize::MAX) };
        let page = store.list(&listing).await?;
        if self.json {
            for snapshot in &page.tasks {
                write_stdout_raw(&object(snapshot))?;
            }
            return Ok(());
        }
        if page.tasks.is_empty() {
            stdout_line!("There are no tasks.");
            return Ok(());
        }
        stdout_line!("{:44}  {:9}  {:24}  {:20}  OWNER", "TASK", "STATUS", "TOOL", "CREATED");
        for Snapshot { task, .. } in &page.tasks {
            let tool = &task.tool.name;
            stdout_line!(
                "{:44}  {:9}  {:24}  {:20}  {}",
                shown_id::show(&task.key.id),
                status(&task.phase),
                tool,
                when(task.created_at),
                task.key.owner
            );
        }
        if page.has_more {
            stdout_line!("… and more; see them with --limit");
        }
        Ok(())
    }
}

impl OneTask {
    async fn find(&self, url: &StoreUrl) -> Result<Snapshot, CommandError> {
        let store = url.open_read_only().await?;
        let ids = shown_id::parse(&self.id)
            .map_err(|error| CommandError::Usage(format!("the task ID cannot be used: {error}")))?;
        let owner = self.owner.as_deref().map(owner).transpose()?;
        for id in ids {
            let found = match &owner {
                Some(owner) => store.read(&TaskKey { owner: owner.clone(), id }).await,
                None => find_among_all(&*store, &id).await,
            };
            match found {
                Err(StoreError::NotFound) => {}
                found => return Ok(found?),
            }
        }
        Err(StoreError::NotFound.into())
    }

    async fn get(self) -> Result<(), CommandError> {
        let snapshot = self.find(&self.store.url()?).await?;
        if self.json {
            return write_stdout_raw(&object(&snapshot));
        }
        let task = &snapshot.task;
        stdout_line!("task      {}", shown_id::show(&task.key.id));
        stdout_line!("owner     {}", task.key.owner);
        stdout_line!("tool      {}", task.tool);
        stdout_line!("status    {}", status(&task.phase));
        if let Some(message) = message(&snapshot) {
            stdout_line!("message   {message}");
        }
        stdout_line!("attempt   {}", task.attempt);
        stdout_line!("created   {}", when(task.created_at));
        stdout_line!("updated   {}", when(updated_at(&snapshot)));
        match task.phase.outcome() {
            Some(Outcome::Result { body, .. }) => stdout_line!("result    {}", body.as_str()),
            Some(Outcome::Error(error)) => {
                // An ending of the engine's own has its code in its data.
                let code = error.code.map(|code| code.to_string()).or_else(|| audit::word(error.data.as_ref()));
                stdout_line!("error     {} ({})", error.message, code.unwrap_or_default());
            }
            Some(Outcome::Cancelled) | None => {}
        }
        Ok(())
    }

    async fn cancel(self) -> Result<(), CommandError> {
        let url = self.store.url()?;
        let key = self.find(&url).await?.task.key.clone();
        let by_server = match url.file() {
            Some(file) => operator::cancel(file, &key).await,
            None => None,
        };
        if let Some(cancelled) = by_server {
            cancelled?;
        } else {
            // No server uses the file, so this process can.
            let store = url.open().await?;
            let reason = Some("cancelled by the operator".into());
            let cancelled = store.apply(&key, Event::Cancel(Cancel { reason })).await;
            store.close().await;
            cancelled?;
        }
        if self.json {
            write_stdout_raw(&json!({ "taskId": key.id.as_str(), "status": "cancelled" }))?;
        } else {
            stdout_line!("{} is cancelled.", shown_id::show(&key.id));
        }
        Ok(())
    }
}

fn owner(name: &str) -> Result<Owner, CommandError> {
    Owner::parse(name).map_err(|error| CommandError::Usage(format!("the owner's name cannot be used: {error}")))
}

/// Searches the tasks of one owner after the other. Keys begin with the owner, so each takes two short reads.
async fn find_among_all(store: &dyn ReadOnlyStore, id: &TaskId) -> Result<Snapshot, StoreError> {
    let mut after = None;
    loop {
        let listing = ListQuery { owner: None, after, limit: 1 };
        let page = store.list(&listing).await?;
        let newest = page.tasks.first().ok_or(StoreError::NotFound)?;
        let owner = newest.task.key.owner.clone();
        let key = TaskKey { owner: owner.clone(), id: id.clone() };
        match store.read(&key).await {
            Err(StoreError::NotFound) => {}
            found => return found,
        }
        // A space sorts before every character that an ID can begin with.
        let Ok(first) = TaskId::parse(" ") else { return Err(StoreError::NotFound) };
        after = Some(TaskKey { owner, id: first });
    }
}

fn status(phase: &Phase) -> &'static str {
    match phase {
        Phase::Settled { outcome: Outcome::Result { is_error: false, .. }, .. } => "completed",
        Phase::Settled { outcome: Outcome::Result { is_error: true, .. } | Outcome::Error(_), .. } => "failed",
        Phase::Settled { outcome: Outcome::Cancelled, .. } => "cancelled",
        open => open.name().as_str(),
    }
}

fn message(snapshot: &Snapshot) -> Option<&str> {
    snapshot.task.status_message(snapshot.progress.as_deref()).map(|message| &**message)
}

fn updated_at(snapshot: &Snapshot) -> Timestamp {
    snapshot.task.changed_at(snapshot.progress.as_deref())
}

/// A time with its milliseconds.
pub(super) fn when_ms(at: Timestamp) -> String {
    format!("{}.{:03}", when(at), at.as_ms() % 1_000)
}

fn when(at: Timestamp) -> String {
    let ms = i64::try_from(at.as_ms()).unwrap_or(i64::MAX);
    Time::from_millisecond(ms)
        .map_or_else(|_| at.as_ms().to_string(), |time| time.strftime("%Y-%m-%d %H:%M:%S").to_string())
}

fn object(snapshot: &Snapshot) -> Value {
    let task = &snapshot.task;
    let parsed = |text: &str| serde_json::from_str::<Value>(text).unwrap_or(Value::Null);
    let mut object = json!({
        "taskId": task.key.id.as_str(),
        "owner": task.key.owner.as_str(),
        "tool": &*task.tool.name,
        "version": &*task.tool.version,
        "status": status(&task.phase),
        "message": message(snapshot),
        "attempt": task.attempt,
        "revision": task.revision,
        "createdAtMs": task.created_at.as_ms(),
        "updatedAtMs": updated_at(snapshot).as_ms(),
    });
    match task.phase.outcome() {
        Some(Outcome::Result { body, .. }) => object["result"] = parsed(body.as_str()),
        Some(Outcome::Error(error)) => {
            object["error"] = json!({ "message": &*error.message });
            if let Some(code) = error.code {
                object["error"]["code"] = code.into();
            }
            if let Some(data) = &error.data {
                object["error"]["data"] = parsed(data.as_str());
            }
        }
        Some(Outcome::Cancelled) | None => {}
    }
    object
}

//! `longhaul store backup|check`

use std::path::PathBuf;

use clap::{Args, Subcommand};
use longhaul_store::{Damage, OpenError, StoreReport};
use serde_json::{Value, json};

use crate::exit::{self, CommandError};
use crate::output::{stdout_line, write_stdout_raw};
use crate::shown_id;
use crate::store::OperatorStoreArgument;

#[derive(Debug, Subcommand)]
#[command(after_help = exit::HELP)]
pub enum StoreCommand {
    /// Copy the store into a new file, also while a server uses it
    Backup(BackupCommand),
    /// Read everything in the store and say what is damaged, also while a server uses it
    Check(CheckCommand),
}

#[derive(Debug, Args)]
#[command(after_help = exit::HELP)]
pub struct BackupCommand {
    /// The new file
    to: PathBuf,
    #[command(flatten)]
    store: OperatorStoreArgument,
}

/// The exit code is 0 if the store is sound, and 4 if it is damaged.
#[derive(Debug, Args)]
#[command(after_help = exit::HELP)]
pub struct CheckCommand {
    #[command(flatten)]
    store: OperatorStoreArgument,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl StoreCommand {
    pub(super) async fn run(self) -> Result<(), CommandError> {
        match self {
            Self::Backup(backup) => backup.run().await,
            Self::Check(check) => check.run().await,
        }
    }
}

impl CheckCommand {
    async fn run(self) -> Result<(), CommandError> {
        let url = self.store.url()?;
        let report = url.open_read_only().await?.check().await?;
        if self.json {
            write_stdout_raw(&object(&report))?;
        } else {
            for Damage { task, problem, .. } in &report.damage {
                let whose = task.as_ref().map(|key| format!("task {} of {}", shown_id::show(&key.id), key.owner));
                stdout_line!("{}: {problem}", whose.as_deref().unwrap_or("the store"));
            }
        }
        if report.damage.is_empty() {
            if !self.json {
                stdout_line!("The store is sound: all of its {} tasks can be read.", report.tasks);
            }
            return Ok(());
        }
        let (store, tasks) = (url.to_string(), report.damaged_tasks().len());
        let cause = format!("{} problems were found, and {tasks} tasks are damaged or lost", report.damage.len());
        Err(OpenError::Damaged { store, cause }.into())
    }
}

fn object(report: &StoreReport) -> Value {
    let damage = report.damage.iter().map(|Damage { task, problem, .. }| {
        let mut object = json!({ "problem": problem });
        if let Some(key) = task {
            object["taskId"] = key.id.as_str().into();
            object["owner"] = key.owner.as_str().into();
        }
        object
    });
    json!({
        "sound": report.damage.is_empty(),
        "tasks": report.tasks,
        "damagedTasks": report.damaged_tasks().len(),
        "damage": damage.collect::<Vec<_>>(),
    })
}

impl BackupCommand {
    async fn run(self) -> Result<(), CommandError> {
        let Self { to, store } = self;
        store.url()?.open_read_only().await?.backup(&to).await?;
        stdout_line!("The store is copied to {}.", to.display());
        Ok(())
    }
}

//! A process group: a command with everything that it has started.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ExitStatus};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

use super::leftover::RunRecord;
use super::process;

/// How long to wait for the end of a killed group. Only a process that waits for broken hardware takes longer.
const KILL_TIME_MAX: Duration = Duration::from_secs(2);

const POLL: Duration = Duration::from_millis(10);

/// A command in a process group of its own. Dropping it kills the group.
///
/// The command itself is not reaped before the group has ended: as long as it is a zombie, its ID, which is also the group's,
/// is not given to another process, so a signal to the group cannot reach a stranger.
#[derive(Debug)]
pub(super) struct Group {
    /// `None` once it was reaped.
    child: Option<Child>,
    id: Pid,
    /// Removed after the group has ended.
    _record: RunRecord,
}

impl Group {
    /// Starts a command. It blocks as long as the system takes to start a process.
    pub(super) fn start(command: &mut std::process::Command) -> io::Result<Self> {
        let record = RunRecord::new()?;
        let (name, value) = record.variable();
        let child = command.env(name, value).process_group(0).spawn()?;
        let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let id = id.ok_or_else(|| io::Error::other("the system gave an impossible process ID"))?;
        record.started(id);
        Ok(Self { child: Some(child), id, _record: record })
    }

    pub(super) fn child_mut(&mut self) -> Option<&mut Child> {
        self.child.as_mut()
    }

    /// Waits until the command itself has ended. It is not reaped.
    pub(super) async fn exited(&self) -> io::Result<()> {
        let mut children = signal(SignalKind::child())?;
        while !has_exited(self.id)? {
            children.recv().await;
        }
        Ok(())
    }

    /// Ends every process of the group: with SIGTERM, and after `grace` with SIGKILL. Returns the exit status of the command.
    pub(super) async fn end(&mut self, grace: Duration) -> io::Result<ExitStatus> {
        if !self.members().await?.is_empty() {
            self.signal(Signal::TERM);
            // A stopped process takes the first signal only when it goes on.
            self.signal(Signal::CONT);
            if !self.is_gone_within(grace).await? {
                self.signal(Signal::KILL);
                if !self.is_gone_within(KILL_TIME_MAX).await? {
                    return Err(io::Error::other("a process that was killed does not end"));
                }
            }
        }
        self.exited().await?;
        let mut child = self.child.take().ok_or_else(|| io::Error::other("the command was waited for twice"))?;
        child.wait()
    }

    async fn is_gone_within(&self, limit: Duration) -> io::Result<bool> {
        let begin = Instant::now();
        while !self.members().await?.is_empty() {
            if begin.elapsed() >= limit {
                return Ok(false);
            }
            tokio::time::sleep(POLL).await;
        }
        Ok(true)
    }

    async fn members(&self) -> io::Result<Vec<process::Process>> {
        let id = self.id;
        let listed = tokio::task::spawn_blocking(move || process::members(id)).await;
        listed.unwrap_or_else(|error| Err(io::Error::other(error)))
    }

    fn signal(&self, signal: Signal) {
        // It may have ended by itself.
        let _ = kill_process_group(self.id, signal);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            self.signal(Signal::KILL);
            // A killed process ends at once, but not always before this line.
            if !matches!(child.try_wait(), Ok(Some(_))) {
                std::thread::spawn(move || child.wait());
            }
        }
    }
}

/// Whether a child has ended, without reaping it.
fn has_exited(child: Pid) -> io::Result<bool> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    match waitid(WaitId::Pid(child), options) {
        Ok(status) => Ok(status.is_some()),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

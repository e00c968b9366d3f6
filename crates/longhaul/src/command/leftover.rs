//! Processes that a server left behind when it died: they are found and ended before another one starts commands.
//!
//! Each server that runs commands has a directory of its own, which it locks as long as it lives, with one record for each
//! command that runs. The record is made before the command starts, and the command gets its name in an environment
//! variable, which everything that it starts inherits. If a directory is not locked, its server is dead, and every process
//! with the name of one of its records in the environment is a leftover. The process IDs in the records find those that
//! have changed their environment. Neither can point to the wrong process: names are random, and an ID counts only together
//! with the process's start time and the boot of the system.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use longhaul_engine::{RandomSource as _, SystemRandom};
use rustix::process::{Pid, Signal, getuid};

use super::process::{self, Process};

/// The variable that names the run of a command, in the environment of each of its processes.
const RUN_VARIABLE: &str = "LONGHAUL_RUN";

/// Sets another place for the records.
const DIRECTORY_VARIABLE: &str = "LONGHAUL_PROCESS_DIR";

/// How long leftovers may take to end after SIGTERM; then they are killed.
const LEFTOVER_GRACE_TIME_MAX: Duration = Duration::from_secs(2);

/// How long to wait for the end of killed leftovers. Only a process that waits for broken hardware takes longer.
const LEFTOVER_KILL_TIME_MAX: Duration = Duration::from_secs(5);

const POLL: Duration = Duration::from_millis(20);

/// The directory of this process, once it has run a command.
static OWN: Mutex<Option<OwnDirectory>> = Mutex::new(None);

#[derive(Debug)]
struct OwnDirectory {
    path: PathBuf,
    /// Held until the process ends, in whatever way.
    _lock: File,
}

/// The record of a command that runs. Dropping it says that no process of it is left.
#[derive(Debug)]
pub(super) struct RunRecord {
    path: PathBuf,
    name: String,
}

impl RunRecord {
    /// Makes a record. The first one of this process ends what dead servers have left behind.
    pub(super) fn new() -> io::Result<Self> {
        let directory = own_directory()?;
        let name = format!("{:032x}", u128::from_be_bytes(SystemRandom.bits()));
        let path = directory.join(&name);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        writeln!(file, "{}", process::boot())?;
        Ok(Self { path, name })
    }

    /// The variable for the environment of the command.
    pub(super) fn variable(&self) -> (&'static str, &str) {
        (RUN_VARIABLE, &self.name)
    }

    /// Adds the process that was started.
    pub(super) fn started(&self, pid: Pid) {
        let Some(process) = process::find(pid) else { return };
        let added = OpenOptions::new().append(true).open(&self.path);
        let added = added.and_then(|mut file| writeln!(file, "{} {}", pid.as_raw_nonzero(), process.start));
        if let Err(error) = added {
            // It is still found by its environment.
            tracing::debug!(%error, "a process could not be recorded");
        }
    }
}

impl Drop for RunRecord {
    fn drop(&mut self) {
        // If it cannot be removed, the next server finds no process for it.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn own_directory() -> io::Result<PathBuf> {
    let mut own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(directory) = &*own
        && directory.path.is_dir()
    {
        return Ok(directory.path.clone());
    }
    let root = root()?;
    let _alone = sweep_lock(&root)?;
    sweep(&root)?;
    let path = root.join(format!("{:032x}", u128::from_be_bytes(SystemRandom.bits())));
    DirBuilder::new().mode(0o700).create(&path)?;
    let lock = File::open(&path)?;
    lock.lock()?;
    *own = Some(OwnDirectory { path: path.clone(), _lock: lock });
    Ok(path)
}

/// Ends the processes that dead servers of this user have left behind, and waits until they are gone.
pub(super) fn end_leftovers() -> io::Result<()> {
    let root = root()?;
    let _alone = sweep_lock(&root)?;
    sweep(&root)
}

/// The directory of all servers of this user.
fn root() -> io::Result<PathBuf> {
    let user = getuid().as_raw();
    let path = match std::env::var_os(DIRECTORY_VARIABLE) {
        Some(path) => PathBuf::from(path),
        None if cfg!(target_os = "linux") => PathBuf::from(format!("/tmp/longhaul-{user}")),
        None => std::env::temp_dir().join(format!("longhaul-{user}")),
    };
    match DirBuilder::new().mode(0o700).create(&path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    // Another user could have made it, to name processes that this user is to kill.
    let found = std::fs::symlink_metadata(&path)?;
    if !found.is_dir() || found.uid() != user || found.permissions().mode() & 0o022 != 0 {
        let why = format!("{} must be a directory that only this user can write to", path.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    Ok(path)
}

/// Lets one process at a time make a directory or look for dead ones: a new directory is not locked for a moment.
fn sweep_lock(root: &Path) -> io::Result<File> {
    let lock = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(root.join("lock"))?;
    lock.lock()?;
    Ok(lock)
}

fn sweep(root: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(root)? {
        let path = entry?.path();
        if !path.is_dir() {
            continue;
        }
        let directory = File::open(&path)?;
        match directory.try_lock() {
            Ok(()) => {
                end_runs(&read_records(&path)?);
                std::fs::remove_dir_all(&path)?;
            }
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Ok(())
}

/// A run of a dead server.
#[derive(Debug)]
struct DeadRun {
    variable: String,
    /// The process that was started, if the server lived long enough to record it.
    leader: Option<(Pid, String)>,
}

fn read_records(directory: &Path) -> io::Result<Vec<DeadRun>> {
    let boot = process::boot();
    let mut runs = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
        let mut lines = text.lines();
        // Nothing survives a boot.
        if lines.next().is_some_and(|recorded| recorded != boot) {
            continue;
        }
        let leader = lines.next().and_then(|line| {
            let (pid, start) = line.split_once(' ')?;
            Some((Pid::from_raw(pid.parse().ok()?)?, start.to_owned()))
        });
        runs.push(DeadRun { variable: format!("{RUN_VARIABLE}={}", entry.file_name().display()), leader });
    }
    Ok(runs)
}

impl DeadRun {
    /// The processes of this run among all: those with its name, and its process group if one of them is in it.
    fn find<'a>(&self, all: &'a [Process]) -> Vec<&'a Process> {
        let is_named = |process: &&Process| process::has_variable(process.pid, &self.variable);
        let mut found: Vec<&Process> = all.iter().filter(is_named).collect();
        if let Some((pid, start)) = &self.leader {
            let is_leader = |process: &Process| process.pid == *pid && process.start == *start;
            // An ID of a group is not used again while the group has members.
            let is_group_known = all.iter().any(is_leader) || found.iter().any(|process| process.group == *pid);
            if is_group_known {
                let others: Vec<&Process> =
                    all.iter().filter(|process| process.group == *pid && !found.contains(process)).collect();
                found.extend(others);
            }
        }
        found
    }
}

fn end_runs(runs: &[DeadRun]) {
    let find = || -> Vec<Process> {
        let all = process::list().unwrap_or_default();
        let mut found: Vec<Process> = runs.iter().flat_map(|run| run.find(&all)).cloned().collect();
        found.dedup();
        found
    };
    let still_runs = |process: &Process| process::find(process.pid).as_ref() == Some(process);
    let mut left = if runs.is_empty() { Vec::new() } else { find() };
    if left.is_empty() {
        return;
    }
    tracing::warn!(processes = left.len(), "ending processes that a dead server left behind");
    let begin = Instant::now();
    for process in &left {
        process::signal(process.pid, Signal::TERM, || still_runs(process));
        process::signal(process.pid, Signal::CONT, || still_runs(process));
    }
    while !left.is_empty() && begin.elapsed() < LEFTOVER_GRACE_TIME_MAX + LEFTOVER_KILL_TIME_MAX {
        std::thread::sleep(POLL);
        left = find();
        if begin.elapsed() >= LEFTOVER_GRACE_TIME_MAX {
            for process in &left {
                process::signal(process.pid, Signal::KILL, || still_runs(process));
            }
        }
    }
    if !left.is_empty() {
        tracing::error!(processes = left.len(), "processes that a dead server left behind cannot be ended");
    }
}

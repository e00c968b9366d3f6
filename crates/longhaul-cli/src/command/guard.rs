//! `longhaul guard`: ends the commands of a server that dies. The program starts it itself.
//!
//! The guard reads from a pipe. Only the server holds the other end; no other process inherits it. However the server
//! ends, the pipe is closed, and the guard ends the commands that the server left behind, as the next server would. If the
//! guard is killed as well, the next server ends them.

use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::getppid;

use super::block_on;
use crate::exit::CommandError;

/// How long the system may take to end a server that has closed its pipe.
const SERVER_END_TIME_MAX: Duration = Duration::from_secs(10);

const POLL: Duration = Duration::from_millis(20);

/// Waits until the server that has started this process is gone, and ends its commands.
pub(super) fn run() -> Result<(), CommandError> {
    let server = getppid();
    // The read returns when the server has closed its end. An error is treated in the same way.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    // A process that ends closes its pipes before its locks are free, and a server whose lock is held is taken for alive.
    let closed = Instant::now();
    while getppid() == server && closed.elapsed() < SERVER_END_TIME_MAX {
        std::thread::sleep(POLL);
    }
    block_on(async {
        let ended = longhaul::command::end_leftovers().await;
        ended.map_err(|error| CommandError::System("cannot end commands", error))
    })
}

/// Starts the guard of this process. Keep the returned process as long as commands may run: dropping it closes the pipe.
/// `None` if the guard cannot be started; this is logged.
pub(crate) fn start() -> Option<Child> {
    let started = std::env::current_exe().and_then(|program| {
        let mut guard = std::process::Command::new(program);
        guard.arg("guard").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // A signal to the group of the server, such as Ctrl-C in a terminal, is not for the guard.
        guard.process_group(0).spawn()
    });
    match started {
        Ok(guard) => Some(guard),
        Err(error) => {
            tracing::warn!(%error, "no guard: if this server is killed, its commands run until the next start");
            None
        }
    }
}

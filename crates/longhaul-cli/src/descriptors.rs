//! The limit of open files and sockets of this process.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit as far as the system allows, and returns it; `None` where there is none. The usual soft limit of about a
/// thousand exists for programs that use `select`.
pub(crate) fn raise() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => maximum,
        Err(error) => {
            tracing::warn!(%error, "the limit of open files could not be raised");
            current
        }
    }
}

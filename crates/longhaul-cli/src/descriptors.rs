//! The system's limit of open files and sockets of this process.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit as far as the system allows, and returns the limit that is then in force; `None` means no limit. The usual
/// soft limit of about a thousand exists for programs that use `select`.
pub(crate) fn raise() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => maximum,
        Err(error) => {
            tracing::warn!(
                %error,
                "the limit of open files could not be raised; if the server needs more, set it with `ulimit -n` before the start"
            );
            current
        }
    }
}

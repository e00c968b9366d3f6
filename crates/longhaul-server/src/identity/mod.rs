//! The identity of callers.
//!
//! ```text
//!  request ──► Credentials ──► Identify ──► Caller: the owner, whether it is known, the end of its right to call
//!                               │
//!                               ├── TokenFile   bearer tokens from a file that is reread when it changes
//!                               ├── Tokens      bearer tokens that do not change
//!                               ├── Anonymous   all callers are one owner
//!                               └── yours
//! ```

mod file;
mod tokens;

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use hyper::header::{self, HeaderMap};
use longhaul_receiver::Caller;
use longhaul_task::Owner;

pub use file::{TokenFile, TokenFileError};
pub use tokens::{TokenError, Tokens};

/// The owner of tasks that are created over standard input and output: the user who started the process. No token can
/// have this owner, so these tasks are not visible over HTTP.
pub const LOCAL: &str = "local";

/// The owner of all tasks where callers do not identify themselves. No token can have this owner: its bearer could list
/// tasks that were created under the promise that nothing is listed.
pub const ANONYMOUS: &str = "anonymous";

/// Identifies the callers of a server.
///
/// [`identify`](Self::identify) is called for every request, before its body is read, and must not block: data from
/// elsewhere (a file, the keys of an issuer) is fetched in the background, by [`keep_up`](Self::keep_up). Callers are
/// shared, so that a returning caller costs no memory.
///
/// `is_identified` must be the same for all callers of one owner: a session keeps the value of its first request.
///
/// The crate `longhaul` has an example.
pub trait Identify: fmt::Debug + Send + Sync + 'static {
    /// The caller of a request. Cancelling the caller's `revoked` ends the streams that it has opened, so keep the
    /// callers whose right to call can end.
    fn identify(&self, request: &Credentials<'_>) -> Result<Arc<Caller>, NotIdentified>;

    /// Runs in the background for as long as the server serves.
    fn keep_up(self: Arc<Self>) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// Why a request has no caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotIdentified {
    /// No token came with the request.
    #[error("this server needs a bearer token")]
    Missing,
    /// The token is not known.
    #[error("this bearer token is not known here")]
    Unknown,
    /// The right to call has ended.
    #[error("this bearer token is no longer good")]
    Ended,
}

/// The part of a request that identifies its caller.
#[derive(Debug, Clone, Copy)]
pub struct Credentials<'a> {
    headers: &'a HeaderMap,
}

impl<'a> Credentials<'a> {
    pub fn from_headers(headers: &'a HeaderMap) -> Self {
        Self { headers }
    }

    /// The value of a header. `None` if the header is repeated: a proxy may have checked another of the values.
    pub fn header(&self, name: impl header::AsHeaderName) -> Option<&'a [u8]> {
        let mut values = self.headers.get_all(name).iter();
        match (values.next(), values.next()) {
            (Some(value), None) => Some(value.as_bytes()),
            _ => None,
        }
    }

    /// The bearer token.
    pub fn bearer(&self) -> Option<&'a [u8]> {
        let (scheme, token) = self.header(header::AUTHORIZATION)?.split_at_checked(7)?;
        scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
    }
}

/// All callers are one owner: for a server that only this machine can reach.
#[derive(Debug)]
pub struct Anonymous(Arc<Caller>);

impl Default for Anonymous {
    fn default() -> Self {
        Self(Arc::new(Caller::anonymous(reserved(ANONYMOUS))))
    }
}

impl Identify for Anonymous {
    fn identify(&self, _: &Credentials<'_>) -> Result<Arc<Caller>, NotIdentified> {
        Ok(Arc::clone(&self.0))
    }
}

/// The user at the other end of a pipe.
pub fn local() -> Caller {
    Caller::known(reserved(LOCAL))
}

fn reserved(name: &str) -> Owner {
    Owner::parse(name).unwrap_or_else(|_| unreachable!("{name} is a name"))
}

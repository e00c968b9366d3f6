//! Who is calling.
//!
//! ```text
//!  request ──► Presented ──► Identify ──► Caller: the owner, whether it is known, until when it may
//!                               │
//!                               ├── TokenFile   bearer tokens from a file that is followed
//!                               ├── Tokens      bearer tokens that stay as they are
//!                               ├── Anonymous   everybody is the same owner
//!                               └── yours
//! ```

mod file;
mod tokens;

use std::fmt;
use std::sync::Arc;

use axum::http::{HeaderMap, header};
use futures_util::future::BoxFuture;
use longhaul_receiver::Caller;
use longhaul_task::Owner;

pub use file::{TokenFile, TokenFileError};
pub use tokens::{TokenError, Tokens};

/// The owner of what is done over standard input and output: whoever has started the process. No token can be this
/// owner's, so such tasks are not seen over HTTP.
pub const LOCAL: &str = "local";

/// The owner of everybody, where callers need not say who they are. No token can be this owner's either: whoever has one
/// would list what others made who knew of no list.
pub const ANONYMOUS: &str = "anonymous";

/// Tells who is calling.
///
/// It is asked on every request, before anything else is looked at, and must not wait: whatever comes from elsewhere (a
/// file, the keys of an issuer) is fetched beside the requests, by [`keep_up`](Self::keep_up). What it gives away is
/// shared, so that a caller who comes again costs no memory.
///
/// An owner is either known or not, whoever asks: what is said about the first request of a session holds for all of it.
///
/// The crate `longhaul` has an example.
pub trait Identify: fmt::Debug + Send + Sync + 'static {
    /// Who has sent this request. Streams that it opens end when the caller's `revoked` is cancelled, so whoever can lose
    /// the right to call gets a caller of which that is kept.
    fn identify(&self, shown: &Presented<'_>) -> Result<Arc<Caller>, NotIdentified>;

    /// What goes on beside the requests, for as long as the server serves.
    fn keep_up(self: Arc<Self>) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// Why a caller could not be told from anybody else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotIdentified {
    /// No token came with the request.
    #[error("this server needs a bearer token")]
    Missing,
    /// The token is not one of ours.
    #[error("this bearer token is not known here")]
    Unknown,
    /// The right to call has ended.
    #[error("this bearer token is no longer good")]
    Ended,
}

/// What a request shows of its sender.
#[derive(Debug, Clone, Copy)]
pub struct Presented<'a> {
    headers: &'a HeaderMap,
}

impl<'a> Presented<'a> {
    /// What is shown by these headers.
    pub fn by(headers: &'a HeaderMap) -> Self {
        Self { headers }
    }

    /// The value of a header. None if there are several: somebody on the way may have looked at the other.
    pub fn header(&self, name: impl axum::http::header::AsHeaderName) -> Option<&'a [u8]> {
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

/// Everybody is the same owner: for a server that only this machine can reach.
#[derive(Debug)]
pub struct Anonymous(Arc<Caller>);

impl Default for Anonymous {
    fn default() -> Self {
        Self(Arc::new(Caller::anonymous(reserved(ANONYMOUS))))
    }
}

impl Identify for Anonymous {
    fn identify(&self, _: &Presented<'_>) -> Result<Arc<Caller>, NotIdentified> {
        Ok(Arc::clone(&self.0))
    }
}

/// The local user, at the other end of a pipe.
pub fn local() -> Caller {
    Caller::known(reserved(LOCAL))
}

/// A name that is known to be one.
fn reserved(name: &str) -> Owner {
    Owner::parse(name).unwrap_or_else(|_| unreachable!("{name} is a name"))
}

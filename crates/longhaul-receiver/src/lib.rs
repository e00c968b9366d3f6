//! The receiver role, once, for whoever hosts it: a server, a client that serves tasks of its own, another SDK.
//!
//! ```text
//!  (who calls, message) ──► accept ──► operation ──► engine ──► projection ──► Reply
//!                           (wire)     (one file)               (wire)
//! ```
//!
//! A [`Receiver`] knows no socket. It gets who is calling from the transport and gives back whole JSON-RPC messages:
//! one, or a stream of them. One module per wire generation, one file per operation. [`is_stateless`] tells the eras
//! apart; [`core2025`] has the sessions of the stateful one.

pub mod audit;
mod caller;
mod catalogue;
pub mod core2025;
mod era;
mod ext2026;
mod log;
mod rates;
mod receiver;
mod refusal;
mod reply;
mod seal;
mod shown;

pub use caller::Caller;
pub use catalogue::{Catalogue, CatalogueError, Offered};
pub use era::is_stateless;
pub use rates::{Kind, RateLimits};
pub use receiver::{Options, Receiver};
pub use refusal::{SOON_MS, too_many_in_flight};
pub use reply::{Http, Messages, Reply};

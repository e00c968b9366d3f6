//! One file per subcommand; each returns the figures of its JSON line.

pub mod complete;
pub mod create;
pub mod fill;
pub mod fsync;
pub mod get;
pub mod ids;
pub mod list;
pub mod rss;
pub mod steps;
pub mod walk;

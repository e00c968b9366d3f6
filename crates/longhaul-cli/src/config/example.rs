//! The file that `longhaul config new` writes.

/// A commented example that works as it is.
pub(crate) const EXAMPLE: &str = include_str!("example.toml");

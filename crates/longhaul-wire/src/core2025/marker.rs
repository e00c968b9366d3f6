use serde_json::value::RawValue;

use super::Revision;
use super::params::Params;
use crate::jsonrpc::RpcError;
use crate::text;

/// How a call asks to become a task.
///
/// Several generations live in this era, and a call shows by a marker which one it speaks. In the order in which they
/// are looked for: `params.task`, where the revision has it; then the `_meta` keys of the generations that are told by
/// one. Each of those is a variant here and a line where it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marker {
    /// It does not.
    None,
    /// `params.task`, at 2025-11-25.
    Core2025 {
        /// For how long the task should be kept.
        ttl: Ttl,
    },
}

/// For how long a requestor wants a task to be kept, from its creation. A wish: the receiver decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ttl {
    /// As long as is usual.
    #[default]
    Usual,
    /// That many milliseconds.
    Ms(u64),
    /// For ever. The schema does not have it, but a published client sends it.
    Unlimited,
}

impl Marker {
    /// Whether it asks for a task at all.
    pub fn asks_for_a_task(self) -> bool {
        self != Self::None
    }

    pub(super) fn of(params: &Params<'_>, revision: Revision) -> Result<Self, RpcError> {
        match params.task {
            Some(task) if revision.has_tasks() => Ok(Self::Core2025 { ttl: Ttl::parse(task)? }),
            // Below that revision the parameter means nothing.
            _ => Ok(Self::None),
        }
    }
}

impl Ttl {
    fn parse(task: &RawValue) -> Result<Self, RpcError> {
        if !text::is_object(task) {
            return Err(RpcError::invalid_params("`task` must be an object"));
        }
        match text::member(task, "ttl") {
            None => Ok(Self::Usual),
            Some(ttl) if ttl.get() == "null" => Ok(Self::Unlimited),
            Some(ttl) => text::milliseconds(ttl)
                .map(Self::Ms)
                .ok_or_else(|| RpcError::invalid_params("`task.ttl` must be a number of milliseconds")),
        }
    }
}

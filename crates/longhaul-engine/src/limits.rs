//! Every limit that the engine keeps, with its default.

/// What one tool may use.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ToolLimits {
    /// Attempts that run at once.
    pub running_max: usize,
    /// Attempts in memory beside those that run: those that wait for an answer and have given their worker back. Owners
    /// share all `running_max + idle_max` places. An owner that has used up its part gets no further worker until one of
    /// its attempts has ended.
    pub idle_max: usize,
    /// Tasks that wait for a worker. Owners share them; past its part, a new task of an owner is refused.
    pub queued_max: usize,
    /// Bytes of a call's arguments.
    pub input_bytes_max: usize,
    /// Bytes of a result.
    pub result_bytes_max: usize,
    /// How long a cancelled handler may tidy up before it is dropped.
    pub grace_ms: u64,
    /// Ordinary calls that run at once. Owners share them; past its part, a call of an owner is refused.
    pub calls_max: usize,
    /// Entries in the journal of a task.
    pub journal_entries_max: usize,
    /// Bytes in the journal of a task.
    pub journal_bytes_max: usize,
    /// Bytes that one operation records: the output of a step, for example.
    pub step_bytes_max: usize,
}

longhaul_store::setters!(ToolLimits {
    running_max: usize,
    idle_max: usize,
    queued_max: usize,
    input_bytes_max: usize,
    result_bytes_max: usize,
    grace_ms: u64,
    calls_max: usize,
    journal_entries_max: usize,
    journal_bytes_max: usize,
    step_bytes_max: usize,
});

impl Default for ToolLimits {
    fn default() -> Self {
        Self {
            running_max: 64,
            idle_max: 10_000,
            queued_max: 100_000,
            input_bytes_max: 1 << 20,
            result_bytes_max: 16 << 20,
            grace_ms: 5_000,
            calls_max: 256,
            journal_entries_max: 20_000,
            journal_bytes_max: 64 << 20,
            step_bytes_max: 1 << 20,
        }
    }
}

/// What the engine as a whole may use.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct EngineLimits {
    /// Tasks of one owner that have not ended.
    pub open_per_owner_max: usize,
    /// How long a queued task waits for a server that has its tool before it fails.
    pub tool_gone_ms: u64,
    /// How long a shutdown waits for handlers to end by themselves.
    pub drain_ms: u64,
}

longhaul_store::setters!(EngineLimits { open_per_owner_max: usize, tool_gone_ms: u64, drain_ms: u64 });

impl Default for EngineLimits {
    fn default() -> Self {
        Self { open_per_owner_max: 100_000, tool_gone_ms: 600_000, drain_ms: 10_000 }
    }
}

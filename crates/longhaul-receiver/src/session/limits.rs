use std::time::Duration;

/// What sessions may use: all of them together, and each one.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SessionLimits {
    /// Sessions in memory, of which no owner gets all. Past its share an idle session of the owner is evicted, or one
    /// without a connection (its client can come back); if there is none, a new one is refused.
    pub sessions_max: usize,
    /// How long an idle session stays in memory. Its client can come back later.
    pub idle_time_max: Duration,
    /// Sessions that are remembered as ended by their client. Past that the one that expires first is forgotten.
    pub ended_max: usize,
    /// Requests of the client that are being answered; more are refused.
    pub requests_max: usize,
    /// Requests to the client that have no response yet; past that no more are sent.
    pub questions_max: usize,
    /// Streams that the client opened to listen; past that the oldest is closed.
    pub listening_max: usize,
    /// Tasks whose changes are sent without being asked for; past that the client has to poll.
    pub followed_max: usize,
    /// Resources whose changes the client has subscribed to; more are refused.
    pub resource_subscriptions_max: usize,
    /// Messages of one stream that are kept for a client that lost its connection.
    pub kept_messages_max: usize,
    /// Bytes of one stream that are kept.
    pub kept_bytes_max: usize,
    /// Bytes that all streams keep together, of which no owner gets all. Past its share the owner's oldest messages are
    /// dropped.
    pub all_kept_bytes_max: usize,
    /// Streams that have ended and are kept, in case the client did not receive their last messages.
    pub ended_streams_max: usize,
    /// Messages that a slow reader may have before it; past that, senders wait.
    pub unread_messages_max: usize,
    /// How long a stream without a connection is kept. Requests that it would answer are dropped with it.
    pub broken_time_max: Duration,
}

longhaul_store::setters!(SessionLimits {
    sessions_max: usize,
    idle_time_max: Duration,
    ended_max: usize,
    requests_max: usize,
    questions_max: usize,
    listening_max: usize,
    followed_max: usize,
    resource_subscriptions_max: usize,
    kept_messages_max: usize,
    kept_bytes_max: usize,
    all_kept_bytes_max: usize,
    ended_streams_max: usize,
    unread_messages_max: usize,
    broken_time_max: Duration,
});

impl Default for SessionLimits {
    fn default() -> Self {
        Self {
            sessions_max: 20_000,
            idle_time_max: Duration::from_secs(600),
            ended_max: 100_000,
            requests_max: 1_000,
            questions_max: 1_000,
            listening_max: 4,
            followed_max: 1_000,
            resource_subscriptions_max: 1_000,
            kept_messages_max: 256,
            kept_bytes_max: 256 << 10,
            all_kept_bytes_max: 64 << 20,
            ended_streams_max: 4,
            unread_messages_max: 64,
            broken_time_max: Duration::from_secs(300),
        }
    }
}

use std::time::Duration;

/// What one session may use.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SessionLimits {
    /// Requests of the client that are under way; more are refused.
    pub under_way_max: usize,
    /// Requests to the client that wait for its response; past that, no more is asked.
    pub asking_max: usize,
    /// Streams that the client opened to listen; past that, the oldest ends.
    pub listening_max: usize,
    /// Tasks of which the client hears without asking; past that, it has to ask.
    pub followed_max: usize,
    /// Messages of one stream that are kept for a client that lost its connection.
    pub kept_messages_max: usize,
    /// Bytes of one stream that are kept.
    pub kept_bytes_max: usize,
    /// Streams that have come to their end and are kept, in case their last words did not arrive.
    pub ended_streams_max: usize,
    /// Messages that wait for a slow reader before what makes them waits, too.
    pub unread_messages_max: usize,
    /// How long a stream is kept whose connection broke. What it would have answered is given up then.
    pub broken_time_max: Duration,
}

longhaul_store::setters!(SessionLimits {
    under_way_max: usize,
    asking_max: usize,
    listening_max: usize,
    followed_max: usize,
    kept_messages_max: usize,
    kept_bytes_max: usize,
    ended_streams_max: usize,
    unread_messages_max: usize,
    broken_time_max: Duration,
});

impl Default for SessionLimits {
    fn default() -> Self {
        Self {
            under_way_max: 1_000,
            asking_max: 1_000,
            listening_max: 4,
            followed_max: 1_000,
            kept_messages_max: 256,
            kept_bytes_max: 256 << 10,
            ended_streams_max: 4,
            unread_messages_max: 64,
            broken_time_max: Duration::from_secs(300),
        }
    }
}

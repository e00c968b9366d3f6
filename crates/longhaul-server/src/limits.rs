//! What a client may use.

use std::time::Duration;

use longhaul_receiver::SessionLimits;

/// The endpoint's limits.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of one message.
    pub message_bytes_max: usize,
    /// Connections at once; more wait to be accepted.
    pub connections_max: usize,
    /// How long a connection may be silent before a request and within its head. Longer than clients usually wait
    /// between two polls, or those that keep their connection would find it closed.
    pub head_time_max: Duration,
    /// How long it may take to send the rest.
    pub body_time_max: Duration,
    /// How long a client may read nothing of what is there for it.
    pub write_time_max: Duration,
    /// Bytes of answers that wait to be read, all clients together (small ones are not counted); more are refused.
    pub unread_bytes_max: u32,
    /// Silence on a stream after which a comment keeps it alive.
    pub keep_alive: Duration,
    /// Messages that wait for a slow reader before its stream waits too.
    pub stream_messages_max: usize,
    /// Requests that one stdio client may have under way; more are refused.
    pub in_flight_max: usize,
    /// What sessions may use.
    pub session: SessionLimits,
    /// How long open connections, and requests on stdio, may take to finish at a shutdown.
    pub close_time_max: Duration,
}

longhaul_store::setters!(Limits {
    message_bytes_max: usize,
    connections_max: usize,
    head_time_max: Duration,
    body_time_max: Duration,
    write_time_max: Duration,
    unread_bytes_max: u32,
    keep_alive: Duration,
    stream_messages_max: usize,
    in_flight_max: usize,
    session: SessionLimits,
    close_time_max: Duration,
});

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes_max: 4 << 20,
            connections_max: 16_000,
            head_time_max: Duration::from_secs(75),
            body_time_max: Duration::from_secs(30),
            write_time_max: Duration::from_secs(30),
            unread_bytes_max: 256 << 20,
            keep_alive: Duration::from_secs(15),
            stream_messages_max: 64,
            in_flight_max: 1_000,
            session: SessionLimits::default(),
            close_time_max: Duration::from_secs(5),
        }
    }
}

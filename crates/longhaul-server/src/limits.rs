//! What a client may use.

use std::time::Duration;

/// The endpoint's limits.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes of one message.
    pub message_bytes_max: usize,
    /// Connections at once; more wait to be accepted.
    pub connections_max: usize,
    /// How long a client may take to send a request's head.
    pub head_time_max: Duration,
    /// How long it may take to send the rest.
    pub body_time_max: Duration,
    /// Silence on a stream after which a comment keeps it alive.
    pub keep_alive: Duration,
    /// Messages that wait for a slow reader before its stream waits too.
    pub stream_messages_max: usize,
    /// Requests that one stdio client may have under way; more are refused.
    pub in_flight_max: usize,
    /// How long open connections, and requests on stdio, may take to finish at a shutdown.
    pub close_time_max: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes_max: 4 << 20,
            connections_max: 10_000,
            head_time_max: Duration::from_secs(10),
            body_time_max: Duration::from_secs(30),
            keep_alive: Duration::from_secs(15),
            stream_messages_max: 64,
            in_flight_max: 1_000,
            close_time_max: Duration::from_secs(5),
        }
    }
}

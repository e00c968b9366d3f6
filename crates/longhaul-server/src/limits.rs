use std::time::Duration;

use longhaul_receiver::SessionLimits;

/// Limits of the endpoint.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServerLimits {
    /// Bytes of one message.
    pub message_bytes_max: usize,
    /// Open connections. Past the limit, the oldest one that has sent no request is closed for a new one; if there is none,
    /// further ones wait to be accepted.
    pub connections_max: usize,
    /// Time for a client to send the head of a request, and idle time of a connection between two requests. Longer than
    /// the usual interval between two polls, so that clients can keep their connection.
    pub head_time_max: Duration,
    /// Time for a client to send the body of a request.
    pub body_time_max: Duration,
    /// Time for which a client may read nothing of a response before its connection is closed.
    pub write_time_max: Duration,
    /// Bytes of responses that wait to be read, for all clients together. Small responses are not counted. A request
    /// whose response would exceed the limit is refused.
    pub unread_bytes_max: u32,
    /// Interval of the SSE comments that keep a silent stream open.
    pub keep_alive: Duration,
    /// Messages that are queued for a slow stdio client. When the queue is full, the client's streams wait.
    pub stream_messages_max: usize,
    /// Open requests of one stdio client; more are refused.
    pub in_flight_max: usize,
    pub session: SessionLimits,
    /// How long connections and requests on stdio may take to finish at a shutdown.
    pub close_time_max: Duration,
}

longhaul_store::setters!(ServerLimits {
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

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            message_bytes_max: 4 << 20,
            connections_max: 16_000,
            head_time_max: Duration::from_secs(75),
            body_time_max: Duration::from_secs(30),
            write_time_max: Duration::from_secs(30),
            unread_bytes_max: 128 << 20,
            keep_alive: Duration::from_secs(15),
            stream_messages_max: 64,
            in_flight_max: 1_000,
            session: SessionLimits::default(),
            close_time_max: Duration::from_secs(5),
        }
    }
}

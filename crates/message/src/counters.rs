//! Counters of messages, bytes and errors.

/// Counters since the start of an endpoint, or since the first connection of a peer.
///
/// A peer's counters end with the peer. The totals hold those of all peers, and the errors of connections without a
/// peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Messages received, without the crate's own (greetings, heartbeats, refusals).
    pub messages_in: u64,
    /// Messages given to the kernel completely, the crate's own included.
    pub messages_out: u64,
    /// Bytes received, headers and the crate's own messages included.
    pub bytes_in: u64,
    /// Bytes given to the kernel, headers and the crate's own messages included.
    pub bytes_out: u64,
    /// Read calls, those without data included, or completed reads of io_uring with data.
    pub reads: u64,
    /// Write calls, or completed writes of io_uring.
    pub writes: u64,
    /// Sends refused because the outbox was full.
    pub full: u64,
    /// Times at which reading stopped because the memory for received messages was used up.
    pub starved: u64,
    /// Number of heartbeats received.
    pub heartbeats_in: u64,
    /// Number of heartbeats sent.
    pub heartbeats_out: u64,
    /// Connections established, greetings included.
    pub connected: u64,
    /// Connections that ended, or failed before they were established.
    pub closed: u64,
    /// Connections that ended with a frame above the limit of its type.
    pub oversize: u64,
    /// Connections that ended in the middle of a frame.
    pub truncated: u64,
    /// Connections that ended because the peer was silent; half-open ones are among them.
    pub silent: u64,
    /// Connections that ended because the peer read nothing although bytes were waiting for it.
    pub stalled: u64,
    /// Connections that ended because a greeting was missing, late, invalid or from the wrong peer.
    pub refused: u64,
    /// Connections among `refused` that were closed because their address connects too often.
    pub too_frequent: u64,
    /// Connections that ended because the two sides speak no common version.
    pub no_common_version: u64,
    /// Messages accepted for sending and lost with their connection.
    pub messages_unsent: u64,
}

impl Counters {
    /// Returns each counter with its name, for metrics.
    pub fn named(&self) -> [(&'static str, u64); 20] {
        [
            ("messages_in", self.messages_in),
            ("messages_out", self.messages_out),
            ("bytes_in", self.bytes_in),
            ("bytes_out", self.bytes_out),
            ("reads", self.reads),
            ("writes", self.writes),
            ("full", self.full),
            ("starved", self.starved),
            ("heartbeats_in", self.heartbeats_in),
            ("heartbeats_out", self.heartbeats_out),
            ("connected", self.connected),
            ("closed", self.closed),
            ("oversize", self.oversize),
            ("truncated", self.truncated),
            ("silent", self.silent),
            ("stalled", self.stalled),
            ("refused", self.refused),
            ("too_frequent", self.too_frequent),
            ("no_common_version", self.no_common_version),
            ("messages_unsent", self.messages_unsent),
        ]
    }
}

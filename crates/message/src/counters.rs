//! Counters: messages and bytes, and errors by kind.

/// Counts since the start of an endpoint or of a peer's first connection.
///
/// Those of a peer end with it; the totals hold those of all peers, and what belongs to none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Messages received, without those of this room itself.
    pub messages_in: u64,
    /// Messages given to the kernel completely, those of this room included.
    pub messages_out: u64,
    /// Bytes received, headers and this room's own messages included.
    pub bytes_in: u64,
    /// Bytes given to the kernel, headers and this room's own messages included.
    pub bytes_out: u64,
    /// Calls that read, or completions of reads.
    pub reads: u64,
    /// Calls that wrote, or completions of writes.
    pub writes: u64,
    /// Sends that were refused because the outbox was full.
    pub full: u64,
    /// Times that reading stopped because the memory for received messages was used up.
    pub starved: u64,
    /// Heartbeats received.
    pub heartbeats_in: u64,
    /// Heartbeats sent.
    pub heartbeats_out: u64,
    /// Connections that were established, greetings included.
    pub connected: u64,
    /// Connections that ended, or failed before they were established.
    pub closed: u64,
    /// Of the ended ones: frames that exceeded the limit of their type.
    pub oversize: u64,
    /// Of the ended ones: connections that ended in the middle of a frame.
    pub truncated: u64,
    /// Of the ended ones: peers that fell silent, half-open connections among them.
    pub silent: u64,
    /// Of the ended ones: peers that took nothing of what waited for them.
    pub stalled: u64,
    /// Of the ended ones: greetings that were missing, late, garbled or of the wrong peer.
    pub refused: u64,
    /// Messages that were accepted for sending, and lost with their connection.
    pub messages_unsent: u64,
}

impl Counters {
    /// Each count with its name, for metrics.
    pub fn named(&self) -> [(&'static str, u64); 18] {
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
            ("messages_unsent", self.messages_unsent),
        ]
    }
}

//! Size limits and time limits.

use std::time::Duration;

/// First message type that this crate reserves for greetings, heartbeats and refusals. Applications use lower types.
pub const RESERVED_KINDS: u32 = 0xFFFF_FF00;

/// Maximum payload of the crate's own messages, bytes.
pub(crate) const CONTROL_BYTES_MAX: u32 = 1024;

/// Size limits of an endpoint, and of its memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Maximum payload of a message, bytes, for types without a limit of their own. Default: 64 MiB.
    pub message_bytes_max: u32,
    /// Maximum payload by type: type and bytes. Default: none.
    pub by_kind: Vec<(u32, u32)>,
    /// Maximum of bytes waiting to be sent to one peer, headers included. Above it,
    /// [`send`](crate::MessageEndpoint::send) returns [`Full`](crate::SendError::Full). An empty outbox accepts one
    /// message of any size. Default: 64 MiB.
    pub outbox_bytes_max: u64,
    /// Maximum of bytes in received and in incomplete messages, over all peers. When it is reached, reading stops until
    /// payloads are dropped, and TCP's windows hold the senders back. Greetings and urgent peers
    /// ([`EndpointSettings::urgent`](crate::EndpointSettings::urgent)) are still read. Default: 1 GiB.
    pub receive_bytes_max: u64,
    /// Maximum of bytes in received messages of one peer while more than half of `receive_bytes_max` is in use. When it is
    /// reached, reading from this peer stops until payloads are dropped, and other peers are read. A peer without received
    /// messages in memory may always send one message of any permitted size. A payload counts with its whole buffer
    /// ([`Payload::buffer_bytes`](crate::Payload::buffer_bytes)). Default: 256 MiB.
    pub peer_receive_bytes_max: u64,
    /// Maximum of bytes in unused buffers that are kept for reuse. Default: 64 MiB.
    pub idle_bytes_max: u64,
    /// Size of the read block in bytes; small messages share it. At least 4 kB. Default: 128 KiB.
    pub receive_block_bytes: usize,
    /// Maximum number of connections, in and out. Default: 65 536. The system's limit of open files is often lower.
    pub peers_max: usize,
    /// Maximum number of accepted connections whose greeting is not complete, and at most half of `peers_max`. Above it
    /// the oldest one of the address that has most of them is closed, so that strangers keep no descriptors. Default: 256.
    pub greetings_max: usize,
    /// Maximum number of new connections a second from one address (a /64 network of IPv6), after a burst of as many
    /// ([`CallerRates`](crate::CallerRates)). Further ones are closed at once. Default: no limit.
    pub caller_connections_per_second_max: Option<u32>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes_max: 64 << 20,
            by_kind: Vec::new(),
            outbox_bytes_max: 64 << 20,
            receive_bytes_max: 1 << 30,
            peer_receive_bytes_max: 256 << 20,
            idle_bytes_max: 64 << 20,
            receive_block_bytes: 128 << 10,
            peers_max: 65_536,
            greetings_max: 256,
            caller_connections_per_second_max: None,
        }
    }
}

impl Limits {
    /// Returns the maximum payload of a message of this type, bytes.
    #[inline]
    pub fn size_max(&self, kind: u32) -> u32 {
        if kind >= RESERVED_KINDS {
            return CONTROL_BYTES_MAX;
        }
        self.by_kind
            .iter()
            .find(|(this, _)| *this == kind)
            .map_or(self.message_bytes_max, |(_, bytes)| *bytes)
    }

    /// Returns the largest maximum payload of any type, bytes.
    pub(crate) fn largest(&self) -> u32 {
        self.by_kind.iter().map(|(_, bytes)| *bytes).chain([self.message_bytes_max]).max().unwrap_or(0)
    }
}

/// Time limits of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Longest time from the start of a connection to the end of both greetings. Default: 5 s.
    pub greeting_max: Duration,
    /// Time without a message after which a heartbeat is sent. Zero sends none. Default: 1 s.
    pub heartbeat: Duration,
    /// Time without a byte after which the connection ends, if the peer announced heartbeats; at least three of its
    /// intervals. Zero waits without limit. Default: 5 s.
    pub silence_max: Duration,
    /// Time after which the connection ends if the peer reads none of the waiting bytes. Zero waits without limit.
    /// Default: 30 s.
    pub stall_max: Duration,
    /// Longest time from [`close`](crate::MessageEndpoint::close) to the end of the connection. Waiting messages are
    /// still sent, and messages of the peer still received. Default: 5 s.
    pub drain_max: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            greeting_max: Duration::from_secs(5),
            heartbeat: Duration::from_secs(1),
            silence_max: Duration::from_secs(5),
            stall_max: Duration::from_secs(30),
            drain_max: Duration::from_secs(5),
        }
    }
}

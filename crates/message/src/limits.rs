//! Every limit by its name, and how a connection is watched.

use std::time::Duration;

/// The first message type that this crate keeps for itself: greetings, heartbeats, refusals. Applications use lower types.
pub const RESERVED_KINDS: u32 = 0xFFFF_FF00;

/// Bytes that a message of the room itself may have.
pub(crate) const CONTROL_BYTES_MAX: u32 = 1024;

/// Limits of an endpoint, and of the memory that it takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the payload of a message, unless its type has a limit of its own. Default: 64 MiB.
    pub message_bytes_max: u32,
    /// Types with a limit of their own, and their bytes. Default: none.
    pub by_kind: Vec<(u32, u32)>,
    /// Bytes that wait to be sent to one peer, headers included, before [`send`](crate::MessageEndpoint::send) answers
    /// [`Full`](crate::SendError::Full). One message is always taken, however large. Default: 64 MiB.
    pub outbox_bytes_max: u64,
    /// Bytes of received messages that are lent out or half received, over all peers. When they are used up, nothing
    /// more is read before some are dropped: TCP's windows then hold the senders back. Default: 1 GiB.
    pub receive_bytes_max: u64,
    /// Bytes of unused buffers that are kept for later. Default: 64 MiB.
    pub idle_bytes_max: u64,
    /// Bytes that are read at once; smaller messages that arrive together share one such buffer. At least 4 kB.
    /// Default: 128 KiB.
    pub receive_block_bytes: usize,
    /// Connections at a time, in and out. Default: 65 536; the system's limit of open files is often lower.
    pub peers_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes_max: 64 << 20,
            by_kind: Vec::new(),
            outbox_bytes_max: 64 << 20,
            receive_bytes_max: 1 << 30,
            idle_bytes_max: 64 << 20,
            receive_block_bytes: 128 << 10,
            peers_max: 65_536,
        }
    }
}

impl Limits {
    /// Bytes that a message of this type may have.
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

    /// The largest message of any type, bytes.
    pub(crate) fn largest(&self) -> u32 {
        self.by_kind.iter().map(|(_, bytes)| *bytes).chain([self.message_bytes_max]).max().unwrap_or(0)
    }
}

/// How long a connection may take for what it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// From the start of a connection to both greetings. Default: 5 s.
    pub greeting_max: Duration,
    /// A heartbeat is sent after so long without a message. Zero sends none. Default: 1 s.
    pub heartbeat: Duration,
    /// A peer that promised heartbeats and sends nothing for so long, and for three of its own intervals, is given
    /// up. Zero waits for ever. Default: 5 s.
    pub silence_max: Duration,
    /// A peer that takes none of the bytes that wait for it for so long is given up. Zero waits for ever.
    /// Default: 30 s.
    pub stall_max: Duration,
    /// From [`close`](crate::MessageEndpoint::close) to the end of the connection: what waits is still sent, and the peer is
    /// still heard, but no longer than this. Default: 5 s.
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

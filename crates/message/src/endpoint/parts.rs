//! Parts of an endpoint that several of its files share.

use std::cmp::Ordering;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::net::Socket;
use crate::options::ConnectionOptions;
use crate::sys::uring::Chunk;

/// Epoll tokens of descriptors other than connections; tokens of slots are smaller.
pub(super) const TOKEN_WAKER: u64 = u64::MAX;
pub(super) const TOKEN_BELL: u64 = u64::MAX - 1;
pub(super) const TOKEN_LISTENER: u64 = u64::MAX - (1 << 20);

/// A listening socket.
pub(super) struct Listening {
    pub(super) fd: Option<Socket>,
    pub(super) options: Arc<ConnectionOptions>,
    /// Time of the next attempt to accept, after a refusal by the system or a limit.
    pub(super) resume: Option<Instant>,
    /// Time at which the application last received [`NotAccepting`](crate::event::EndpointEvent::NotAccepting).
    pub(super) reported: Option<Instant>,
}

/// Addresses of a host name, from the thread that resolved it.
pub(super) struct Resolved {
    pub(super) index: u32,
    pub(super) generation: u32,
    pub(super) result: Result<Vec<SocketAddr>, String>,
}

impl Listening {
    /// Duration of a pause in accepting, if no connection ends before.
    pub(super) const PAUSE: Duration = Duration::from_secs(1);
    /// Shortest time between two reports. At the limit each connection that ends lets in the next one, so that
    /// accepting stops and continues thousands of times a second.
    pub(super) const REPORT: Duration = Duration::from_secs(30);
}

/// Received bytes that are being parsed.
pub(super) struct Fed {
    pub(super) index: u32,
    /// Buffer of the bytes; `None` for decrypted bytes, which the TLS layer of the connection holds.
    pub(super) chunk: Option<Chunk>,
    pub(super) len: usize,
    pub(super) used: usize,
}

impl Fed {
    pub(super) fn decrypted(index: u32, len: usize) -> Self {
        Self { index, chunk: None, len, used: 0 }
    }
}

/// Next deadline of a slot. The earliest deadline compares as the greatest.
#[derive(PartialEq, Eq)]
pub(super) struct SlotDeadline {
    pub(super) at: Instant,
    pub(super) index: u32,
}

impl Ord for SlotDeadline {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.index).cmp(&(self.at, self.index))
    }
}

impl PartialOrd for SlotDeadline {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

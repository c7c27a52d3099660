//! Events and errors of an endpoint.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::frame::Oversize;
use crate::hello::BadHello;
use crate::outbox::Unsent;
use crate::pool::Payload;
use crate::socket::{OptionError, OsError, SocketError};
use crate::tcp_info::TcpInfo;

/// A peer, by a small number.
///
/// That of [`connect`](crate::MessageEndpoint::connect) stands for the peer through all its connections; that of an accepted
/// connection ends with it, and is given to another one only after [`EndpointEvent::Closed`] or [`EndpointEvent::Failed`] was polled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(pub(crate) u32);

impl PeerId {
    /// The number: an index for tables, below [`peers_max`](crate::Limits::peers_max).
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for PeerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A listening address, by a small number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Listener(pub(crate) u32);

impl Listener {
    /// The number: an index for tables, counted from zero in the order of [`listen`](crate::MessageEndpoint::listen).
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// An event of an endpoint.
#[derive(Debug)]
pub enum EndpointEvent {
    /// A connection is established, greetings included; messages may be sent.
    Connected {
        /// The peer.
        peer: PeerId,
        /// How it calls itself; empty where there are no greetings.
        name: Arc<str>,
        /// Where it was accepted; `None` for one that was connected to.
        listener: Option<Listener>,
    },
    /// A message arrived.
    Message {
        /// The sender.
        peer: PeerId,
        /// Its type.
        kind: u32,
        /// Its stream.
        stream: u32,
        /// Its bytes, lent from a buffer that is used again when they are dropped.
        payload: Payload,
    },
    /// The outbox of a peer to which a send was refused as [`Full`](SendError::Full) is half empty again.
    Writable {
        /// The peer.
        peer: PeerId,
    },
    /// A connection that was established has ended.
    Closed {
        /// The peer.
        peer: PeerId,
        /// Why.
        reason: Closed,
        /// Messages accepted for sending and not given to the kernel.
        unsent: Unsent,
        /// The counters of the kernel's TCP at the end.
        tcp: Option<Box<TcpInfo>>,
        /// The pause before the next attempt; `None` where there will be none, and the peer's number is free again.
        retry: Option<Duration>,
    },
    /// A connection ended before it was established.
    Failed {
        /// The peer.
        peer: PeerId,
        /// Why.
        reason: Closed,
        /// The pause before the next attempt; `None` where there will be none, and the peer's number is free again.
        retry: Option<Duration>,
    },
    /// No more connections can be accepted for now; those that wait are taken as soon as one ends, or a second later.
    /// Reported once, until accepting went on.
    NotAccepting {
        /// Where.
        listener: Listener,
        /// Why.
        reason: NotAccepting,
    },
    /// A [`Waker`](crate::Waker) was used.
    Woken,
}

/// Why no more connections are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotAccepting {
    /// The system refuses, most often because the limit of open files (`ulimit -n`) is reached.
    #[error("the system gives no more connections ({error}); {open} are open")]
    System {
        /// The system's reason.
        error: OsError,
        /// Connections that are open.
        open: usize,
    },
    /// [`Limits::peers_max`](crate::Limits::peers_max) is reached.
    #[error("the limit of {max} peers is reached")]
    Peers {
        /// The limit.
        max: usize,
    },
}

/// Why a connection ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Closed {
    /// [`close`](crate::MessageEndpoint::close) was called here, everything was sent, and the peer has closed too.
    #[error("closed here")]
    Local,
    /// [`abort`](crate::MessageEndpoint::abort) was called here.
    #[error("aborted here")]
    Aborted,
    /// The peer closed, between two messages.
    #[error("closed by the peer")]
    Remote,
    /// The peer closed, or the connection broke, in the middle of a frame.
    #[error("the connection ended after {got} of {needed} bytes of a frame")]
    Truncated {
        /// Bytes of the frame that arrived, header included.
        got: u64,
        /// Bytes that it has.
        needed: u64,
    },
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Broken(OsError),
    /// The connection could not be established.
    #[error("no connection to {address}: {error}")]
    Unreachable {
        /// The address that was tried.
        address: SocketAddr,
        /// Why.
        error: SocketError,
    },
    /// The name of the host has no address.
    #[error("{host:?} has no address: {error}")]
    Unresolved {
        /// Host and port.
        host: Arc<str>,
        /// The resolver's words.
        error: Arc<str>,
    },
    /// A frame exceeds the limit of its type.
    #[error(transparent)]
    Oversize(#[from] Oversize),
    /// A message of a type that this room reserves for itself, and does not know.
    #[error("a message of the reserved type {0:#x}")]
    Reserved(u32),
    /// Nothing was heard from the peer: it, its host or the network is gone, or it hangs.
    #[error("nothing was heard for {0:?}")]
    Silent(Duration),
    /// The peer took nothing of what waits for it.
    #[error("the peer took nothing for {0:?}")]
    Stalled(Duration),
    /// The greeting did not come in time.
    #[error("no greeting within {0:?}")]
    GreetingLate(Duration),
    /// The greeting is none.
    #[error("no greeting that is understood: {0}")]
    BadHello(#[from] BadHello),
    /// The peer has another name.
    #[error("the peer is {got:?}, and {expected:?} is expected")]
    WrongName {
        /// The expected name.
        expected: Arc<str>,
        /// The peer's name.
        got: Arc<str>,
    },
    /// The peer did not prove that it has the shared key.
    #[error("not authenticated: {0}")]
    Unauthenticated(&'static str),
    /// The peer refused this side's greeting.
    #[error("the peer refuses: {0}")]
    Refused(Arc<str>),
    /// A younger connection of the same name took its place.
    #[error("a younger connection of {0:?} takes its place")]
    Superseded(Arc<str>),
    /// The peer did not close within [`drain_max`](crate::Timing::drain_max) after this side did.
    #[error("closed here, but not by the peer within {0:?}")]
    NotDrained(Duration),
    /// Its unfinished message needs memory that no finished one will give back.
    #[error("unfinished messages fill the memory for received messages; this one needs {needed} bytes")]
    NoMemory {
        /// Bytes of the unfinished message.
        needed: u64,
    },
    /// An option of the socket was refused.
    #[error(transparent)]
    Option(#[from] OptionError),
    /// The encrypted layer failed: no common version, a certificate that does not hold, garbage.
    #[error("TLS: {0}")]
    Tls(Arc<str>),
}

/// Why a message is not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// Too much waits for this peer already; [`EndpointEvent::Writable`] tells when there is room again.
    #[error("{waiting} bytes wait for this peer, and at most {max} may")]
    Full {
        /// Bytes that wait.
        waiting: u64,
        /// [`Limits::outbox_bytes_max`](crate::Limits::outbox_bytes_max).
        max: u64,
    },
    /// The message exceeds the limit of its type.
    #[error("a message of type {kind:#x} has {size} bytes, and at most {limit} are allowed")]
    Oversize {
        /// Type of the message.
        kind: u32,
        /// Its bytes.
        size: u64,
        /// Bytes that it may have.
        limit: u32,
    },
    /// The peer is not connected, or no more.
    #[error("the peer is not connected")]
    NotConnected,
}

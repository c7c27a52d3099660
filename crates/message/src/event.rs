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
use crate::versions::NoCommonVersion;

/// Number of a peer.
///
/// The number that [`connect`](crate::MessageEndpoint::connect) returns stays the same over all connections to the
/// peer. The number of an accepted connection is free again after its [`EndpointEvent::Closed`] or
/// [`EndpointEvent::Failed`] was polled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(pub(crate) u32);

impl PeerId {
    /// Returns an index for tables, below [`peers_max`](crate::Limits::peers_max).
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for PeerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Number of a listening address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Listener(pub(crate) u32);

impl Listener {
    /// Returns an index for tables, counted from zero in the order of [`listen`](crate::MessageEndpoint::listen).
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// An event that [`poll`](crate::MessageEndpoint::poll) returns.
#[derive(Debug)]
pub enum EndpointEvent {
    /// A connection is established, greetings included. Messages can be sent.
    Connected {
        /// The connected peer.
        peer: PeerId,
        /// Name in the peer's greeting; empty without greetings.
        name: Arc<str>,
        /// The highest version that both sides speak; without greetings, the highest version of this side.
        version: u16,
        /// Listener that accepted the connection; `None` for an outgoing one.
        listener: Option<Listener>,
    },
    /// A message arrived.
    Message {
        /// The sending peer.
        peer: PeerId,
        /// Type of the message.
        kind: u32,
        /// Stream of the message.
        stream: u32,
        /// Payload, lent from a buffer that is reused after the last payload in it is dropped.
        payload: Payload,
    },
    /// A send to this peer failed with [`Full`](SendError::Full), and its outbox is now half empty.
    Writable {
        /// The peer with room in its outbox.
        peer: PeerId,
    },
    /// An established connection has ended.
    Closed {
        /// The peer of the connection.
        peer: PeerId,
        /// Reason for the end.
        reason: Closed,
        /// Messages accepted for sending and not given to the kernel.
        unsent: Unsent,
        /// The kernel's TCP counters at the end.
        tcp: Option<Box<TcpInfo>>,
        /// Pause before the next attempt. `None`: no further attempt follows, and the peer's number is free again.
        retry: Option<Duration>,
    },
    /// A connection ended before it was established.
    Failed {
        /// The peer that is not connected.
        peer: PeerId,
        /// Name in the peer's greeting, without proof; empty if none arrived. For an outgoing connection, the expected
        /// name.
        name: Arc<str>,
        /// Address of the caller of an accepted connection; `None` for an outgoing one.
        caller: Option<SocketAddr>,
        /// Reason for the failure.
        reason: Closed,
        /// Pause before the next attempt. `None`: no further attempt follows, and the peer's number is free again.
        retry: Option<Duration>,
    },
    /// No further connections are accepted for now. Accepting is tried again when a connection ends, and after one
    /// second. Reported at most once in 30 s for each listener.
    NotAccepting {
        /// The listener that stopped.
        listener: Listener,
        /// Reason for the stop.
        reason: NotAccepting,
    },
    /// Another thread called [`Waker::wake`](crate::Waker::wake).
    Woken,
}

/// Reason for which no further connections are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotAccepting {
    /// The system refuses, in most cases because the limit of open files (`ulimit -n`) is reached.
    #[error("the system refuses further connections ({error}); {open} are open")]
    System {
        /// The system's error.
        error: OsError,
        /// Number of open connections.
        open: usize,
    },
    /// [`Limits::peers_max`](crate::Limits::peers_max) is reached.
    #[error("the limit of {max} peers is reached")]
    Peers {
        /// The limit, peers.
        max: usize,
    },
}

/// Reason for the end of a connection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Closed {
    /// Closed by [`close`](crate::MessageEndpoint::close): everything was sent, and the peer has closed too.
    #[error("closed here")]
    Local,
    /// Ended by [`abort`](crate::MessageEndpoint::abort).
    #[error("aborted here")]
    Aborted,
    /// The peer closed the connection between two messages.
    #[error("closed by the peer")]
    Remote,
    /// The peer closed, or the connection broke, in the middle of a frame.
    #[error("the connection ended after {received} of {needed} bytes of a frame")]
    Truncated {
        /// Received bytes of the frame, header included.
        received: u64,
        /// Size of the frame, bytes.
        needed: u64,
    },
    /// The system reported an error on the connection.
    #[error("the connection broke: {0}")]
    Broken(OsError),
    /// The connection was not established.
    #[error("no connection to {address}: {error}")]
    Unreachable {
        /// Address of the attempt.
        address: SocketAddr,
        /// Error of the socket.
        error: SocketError,
    },
    /// The host name does not resolve to an address.
    #[error("cannot resolve {host:?}: {error}")]
    Unresolved {
        /// Host and port.
        host: Arc<str>,
        /// The resolver's message.
        error: Arc<str>,
    },
    /// A frame exceeds the limit of its type.
    #[error(transparent)]
    Oversize(#[from] Oversize),
    /// A message has a reserved type that the crate does not know.
    #[error("message of the reserved type {0:#x}; types of applications are below 0xffffff00")]
    Reserved(u32),
    /// No byte arrived from the peer within this time: the peer hangs, or it, its host or the network failed.
    #[error("no byte received for {0:?}")]
    Silent(Duration),
    /// The peer read none of the waiting bytes within this time.
    #[error("the peer read nothing for {0:?}")]
    Stalled(Duration),
    /// The greeting did not arrive within this time.
    #[error("no greeting within {0:?}")]
    GreetingLate(Duration),
    /// The greeting was not complete when [`greetings_max`](crate::Limits::greetings_max) other connections had none either,
    /// and no address had more of them than this one.
    #[error(
        "no greeting yet, like {max} other connections; no address has more such connections than this one"
    )]
    Displaced {
        /// The limit, connections.
        max: usize,
    },
    /// The address connects more often than
    /// [`caller_connections_per_second_max`](crate::Limits::caller_connections_per_second_max) permits.
    #[error("its address connects more often than {max} times a second")]
    TooFrequent {
        /// The limit, connections a second.
        max: u32,
    },
    /// The greeting is invalid.
    #[error("invalid greeting: {0}")]
    BadHello(#[from] BadHello),
    /// The peer has another name than expected.
    #[error("the peer is {actual:?}, expected {expected:?}")]
    WrongName {
        /// Name that this side expects.
        expected: Arc<str>,
        /// The peer's name.
        actual: Arc<str>,
    },
    /// The two sides speak no common version of the application's messages.
    #[error("{0}")]
    NoCommonVersion(Arc<NoCommonVersion>),
    /// The peer did not prove that it has the shared key.
    #[error("not authenticated: {0}")]
    Unauthenticated(&'static str),
    /// The peer refused this side's greeting, with this message.
    #[error("refused by the peer: {0}")]
    Refused(Arc<str>),
    /// A newer connection with this name replaced this one ([`SameName::Replace`](crate::SameName::Replace)).
    #[error("replaced by a newer connection of {0:?}")]
    Superseded(Arc<str>),
    /// An older connection has this name, and this one is refused ([`SameName::Refuse`](crate::SameName::Refuse)).
    #[error("{0:?} is connected already, by an older connection")]
    NameTaken(Arc<str>),
    /// The peer did not close within [`drain_max`](crate::Timing::drain_max) after this side did.
    #[error("closed here; the peer did not close within {0:?}")]
    NotDrained(Duration),
    /// Incomplete messages hold all memory for received messages, and the message of this connection needs the most.
    #[error("incomplete messages fill the memory for received messages; this one needs {needed} bytes")]
    NoMemory {
        /// Size of the incomplete message, bytes, header included.
        needed: u64,
    },
    /// The system refused an option of the socket.
    #[error(transparent)]
    Option(#[from] OptionError),
    /// TLS failed: no common version, an invalid certificate, or invalid data.
    #[error("TLS: {0}")]
    Tls(Arc<str>),
}

/// Reason for which a message is not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The outbox of the peer is full. [`EndpointEvent::Writable`] follows when it has room again.
    #[error("{waiting} bytes are waiting for this peer; the limit is {max}")]
    Full {
        /// Bytes in the outbox.
        waiting: u64,
        /// The limit, [`Limits::outbox_bytes_max`](crate::Limits::outbox_bytes_max).
        max: u64,
    },
    /// The message exceeds the limit of its type.
    #[error("a message of type {kind:#x} has {size} bytes; the limit is {limit}")]
    Oversize {
        /// Type of the message.
        kind: u32,
        /// Size of the payload, bytes.
        size: u64,
        /// Limit of the type, bytes.
        limit: u32,
    },
    /// The peer is not connected.
    #[error("the peer is not connected")]
    NotConnected,
}

//! Settings of an endpoint, of its listeners and of its connections.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::auth::SharedKey;
use crate::backoff::Backoff;
use crate::limits::{Limits, Timing};
use crate::socket::SocketOptions;
use crate::tls::Tls;
use crate::versions::Versions;

/// Settings of an endpoint.
#[derive(Debug, Clone, Default)]
pub struct EndpointSettings {
    /// Name of this side in greetings.
    pub name: String,
    /// Versions of the application's messages that this side speaks. Default: version 1 alone.
    pub versions: Versions,
    /// Size limits of messages and memory.
    pub limits: Limits,
    /// Names of peers that are read although `receive_bytes_max` is reached: their messages are small, and let this side
    /// free memory. `peer_receive_bytes_max` holds for each of them. Connections without a name are never urgent.
    pub urgent: Vec<String>,
    /// Interface to the kernel.
    pub backend: Backend,
}

/// Interface by which an endpoint asks the kernel to move bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Backend {
    /// Chooses the faster interface: epoll.
    #[default]
    Auto,
    /// Readiness by epoll, one call for each read and each write: available everywhere.
    Epoll,
    /// Completions by io_uring, many reads and writes in one call. Needs Linux 6.1 or later and a system that permits
    /// it; otherwise [`SetupError::Uring`](crate::SetupError::Uring).
    Uring,
}

/// Form of the greeting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Greeting {
    /// Peers exchange and check names before the first message, and send heartbeats.
    #[default]
    Names,
    /// Frames only, from the first byte on, as in thesis §3.8.2: for peers without greetings. No names, no versions and
    /// no heartbeats.
    Bare,
}

/// Policy for a peer that connects with the name of an open connection of the same listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SameName {
    /// Ends the older connection. After a crash or a cut cable it is half-open.
    #[default]
    Replace,
    /// Refuses the newer connection.
    Refuse,
    /// Keeps both connections.
    Allow,
}

/// Settings of the connections to one address, or of one listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionOptions {
    /// Options of the socket.
    pub socket: SocketOptions,
    /// Time limits of the connection.
    pub timing: Timing,
    /// Form of the greeting.
    pub greeting: Greeting,
    /// TLS with certificates on both sides; `None`: not encrypted.
    pub tls: Option<Tls>,
    /// Key that both sides have to prove before the first message; `None` accepts every peer. Bare frames have no
    /// greeting and no proof.
    pub key: Option<SharedKey>,
    /// The key before `key`. A peer that has it alone is accepted as well, so that the keys of a system can be changed
    /// process by process. Without `key` it has no effect.
    pub key_previous: Option<SharedKey>,
    /// Pauses before new attempts to connect after a lost or refused connection; `None` makes no new attempt.
    pub backoff: Option<Backoff>,
    /// Names that may connect to a listener; empty accepts all.
    pub names: Vec<String>,
    /// A listener's policy for a name that is connected already.
    pub same_name: SameName,
}

impl Default for ConnectionOptions {
    fn default() -> Self {
        Self {
            socket: SocketOptions::default(),
            timing: Timing::default(),
            greeting: Greeting::default(),
            tls: None,
            key: None,
            key_previous: None,
            backoff: Some(Backoff::default()),
            names: Vec::new(),
            same_name: SameName::default(),
        }
    }
}

impl ConnectionOptions {
    /// Returns the keys by which a peer may prove itself, the newest first; none if every peer is accepted.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &SharedKey> {
        let previous = self.key_previous.as_ref().filter(|_| self.key.is_some());
        self.key.iter().chain(previous)
    }
}

/// Address of a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// IP address and port.
    Socket(SocketAddr),
    /// Host and port, such as `"ros-7:4000"`. The name is resolved before each attempt, on its own thread.
    Host(Arc<str>),
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Self::Socket(address)
    }
}

impl From<&str> for Address {
    fn from(address: &str) -> Self {
        address.parse().map_or_else(|_| Self::Host(address.into()), Self::Socket)
    }
}

//! Settings of an endpoint, of its listeners and of its connections.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::auth::SharedKey;
use crate::backoff::Backoff;
use crate::limits::{Limits, Timing};
use crate::socket::SocketOptions;
use crate::tls::Tls;

/// Settings of an endpoint.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// How this side calls itself in greetings.
    pub name: String,
    /// Limits.
    pub limits: Limits,
    /// How the kernel is asked.
    pub backend: Backend,
}

/// How an endpoint asks the kernel to move bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Backend {
    /// Whichever is known to be the better one where it is available; today that is epoll.
    #[default]
    Auto,
    /// Readiness by epoll, one call for each read and each write: available everywhere.
    Epoll,
    /// Completions by io_uring, with many reads and writes a call. Needs Linux 6.1 or later, and a system that does
    /// not forbid it; [`SetupError::Uring`](crate::SetupError::Uring) otherwise.
    Uring,
}

/// The greeting of peers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Greeting {
    /// Names are exchanged and checked before the first message, and heartbeats follow.
    #[default]
    Names,
    /// Bare frames from the first byte on, as in thesis §3.8.2: for peers that know nothing else. No names, no
    /// heartbeats.
    Bare,
}

/// The policy for a peer that connects under the name of an open connection of the same listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SameName {
    /// The older connection ends: after a crash or a cut cable, it is half-open.
    #[default]
    Replace,
    /// The younger connection is refused.
    Refuse,
    /// Both stay.
    Allow,
}

/// Settings of the connections to one address, or from one listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Options of the socket.
    pub socket: SocketOptions,
    /// Time limits.
    pub timing: Timing,
    /// The greeting of peers.
    pub greeting: Greeting,
    /// Encryption with certificates on both sides; `None` for none.
    pub tls: Option<Tls>,
    /// A key that both sides prove to have before the first message; `None` accepts every peer. Bare frames have no
    /// greeting, and so no proof.
    pub key: Option<SharedKey>,
    /// For connecting: how a lost or refused connection is tried again; `None` gives it up.
    pub backoff: Option<Backoff>,
    /// For listening: names that may connect; empty accepts all.
    pub names: Vec<String>,
    /// For listening: what happens to a name that is connected already.
    pub same_name: SameName,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            socket: SocketOptions::default(),
            timing: Timing::default(),
            greeting: Greeting::default(),
            tls: None,
            key: None,
            backoff: Some(Backoff::default()),
            names: Vec::new(),
            same_name: SameName::default(),
        }
    }
}

/// Where a peer is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// An address.
    Socket(SocketAddr),
    /// A host and port, such as `"ros-7:4000"`, whose name is resolved before each attempt, on a thread of its own.
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

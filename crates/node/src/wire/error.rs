//! Errors of a process's connections.

use fanin_message::{SetupError, SocketError};

use crate::config::ConfigError;

/// Errors of a process's connections.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The connections cannot be set up.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The process cannot listen.
    #[error("cannot listen at {address}: {error}")]
    Listen {
        /// Address to listen at.
        address: String,
        /// Error of the socket.
        error: SocketError,
    },
    /// The name of the process's host has no address.
    #[error(
        "cannot listen at {address}, whose name has no address: {error}; `listen` names one for this host"
    )]
    Resolve {
        /// Address of the socket.
        address: String,
        /// The system's error.
        error: std::io::Error,
    },
    /// Its certificate cannot be used.
    #[error(transparent)]
    Tls(#[from] Box<ConfigError>),
    /// The system gives no socket.
    #[error("cannot create a socket: {0}")]
    Socket(#[from] fanin_message::OsError),
    /// The file of TCP's counters cannot be used.
    #[error("cannot write the TCP counters: {0}")]
    Accounts(std::io::Error),
    /// The file of windows cannot be used.
    #[error("cannot write the windows of `record.windows`: {0}")]
    Trace(std::io::Error),
    /// The kernel's waiting failed.
    #[error("waiting for messages failed: {0}")]
    Poll(#[from] std::io::Error),
}

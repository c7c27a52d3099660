//! Errors of a process's connections.

use fanin_message::{SetupError, SocketError};

use crate::config::ConfigError;

/// Errors of a process's connections.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The connections cannot be set up.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The process cannot listen at any of its addresses.
    #[error("cannot listen at {address}: {error}")]
    Listen {
        /// Address at which to listen.
        address: String,
        /// Error of the socket.
        error: SocketError,
    },
    /// The name of the process's host does not resolve.
    #[error("cannot listen at {address}: {error}; name an address of this host with `listen`")]
    Resolve {
        /// Host and port from the system's file.
        address: String,
        /// The system's error.
        error: std::io::Error,
    },
    /// The TLS files of the process cannot be used.
    #[error(transparent)]
    Tls(#[from] Box<ConfigError>),
    /// A socket cannot be created.
    #[error("cannot create a socket: {0}")]
    Socket(#[from] fanin_message::OsError),
    /// The file of windows cannot be used.
    #[error("cannot write the windows of `record.windows`: {0}")]
    Trace(std::io::Error),
    /// Waiting for events failed.
    #[error("waiting for messages failed: {0}")]
    Poll(#[from] std::io::Error),
}

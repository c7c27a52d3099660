//! Settings of the control server, and the errors of its start.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::config::HttpAuthentication;

/// The fewest characters of a token.
pub const TOKEN_BYTES_MIN: usize = 16;

/// Addresses of the control server.
#[derive(Debug, Clone, Default)]
pub struct ControlSettings {
    /// A local socket, readable and writable by the owner alone.
    pub socket: Option<PathBuf>,
    /// An address for HTTP; port 0 takes any free one.
    pub http: Option<SocketAddr>,
    /// The token of HTTP clients.
    pub token: Option<String>,
    /// Authentication of HTTP clients.
    pub authentication: HttpAuthentication,
}

impl ControlSettings {
    /// Checks the token, and that the address may be used with it.
    ///
    /// # Errors
    /// If the token is too short, has other characters than printable ASCII, or is absent where HTTP needs one.
    /// If other machines could change the switch without a token.
    pub fn check(&self) -> Result<(), ControlStartError> {
        if let Some(token) = &self.token
            && (token.len() < TOKEN_BYTES_MIN || !token.bytes().all(|byte| byte.is_ascii_graphic()))
        {
            return Err(ControlStartError::Token { length: token.len() });
        }
        match (self.http, &self.token, self.authentication) {
            (Some(address), None, HttpAuthentication::Token) => Err(ControlStartError::NoToken { address }),
            (Some(address), None, HttpAuthentication::None) if !address.ip().is_loopback() => {
                Err(ControlStartError::Open { address })
            }
            _ => Ok(()),
        }
    }
}

/// Error of the control server's start.
#[derive(Debug, thiserror::Error)]
pub enum ControlStartError {
    /// Other machines could change the switch without a token.
    #[error("{address} can be reached from other machines: give a token, or listen on 127.0.0.1")]
    Open {
        /// The address to listen on.
        address: SocketAddr,
    },
    /// The settings require a token for HTTP, but have none.
    #[error(
        "any client that reaches {address} could change the switch: give a token, or `authentication = \"none\"`"
    )]
    NoToken {
        /// The address to listen on.
        address: SocketAddr,
    },
    /// The token is too short, or has other characters than printable ASCII.
    #[error("the token has {length} characters; at least {TOKEN_BYTES_MIN} are needed, and no spaces")]
    Token {
        /// Characters of the token.
        length: usize,
    },
    /// A running switch uses the socket.
    #[error("a running switch already listens on {}", path.display())]
    Taken {
        /// Path of the socket.
        path: PathBuf,
    },
    /// The path is not a socket.
    #[error("{} exists and is not a socket", path.display())]
    NoSocket {
        /// Path of the file.
        path: PathBuf,
    },
    /// The system refuses to open it.
    #[error("cannot listen on {place}: {error}")]
    Listen {
        /// The address or path.
        place: String,
        /// The system's error.
        error: io::Error,
    },
}

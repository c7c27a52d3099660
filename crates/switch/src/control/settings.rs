//! Where a switch listens for its clients, and why it cannot.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The fewest characters of a token.
pub const TOKEN_BYTES_MIN: usize = 16;

/// Where a switch listens for those who control it.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// A local socket, readable and writable by the owner alone.
    pub socket: Option<PathBuf>,
    /// An address for HTTP; port 0 takes any free one.
    pub http: Option<SocketAddr>,
    /// What clients over HTTP must show. Without it only a loopback address is allowed.
    pub token: Option<String>,
}

impl Settings {
    /// Checks the token and whether the address may be used with it.
    ///
    /// # Errors
    /// If the token can be guessed, or other machines could change the switch without one.
    pub fn check(&self) -> Result<(), StartError> {
        if let Some(token) = &self.token
            && (token.len() < TOKEN_BYTES_MIN || !token.bytes().all(|byte| byte.is_ascii_graphic()))
        {
            return Err(StartError::Token { got: token.len() });
        }
        match self.http {
            Some(address) if self.token.is_none() && !address.ip().is_loopback() => {
                Err(StartError::Open { address })
            }
            _ => Ok(()),
        }
    }
}

/// Why the switch cannot listen there.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Everybody who reaches the address could change the switch.
    #[error("{address} can be reached from other machines: give a token, or listen on 127.0.0.1")]
    Open {
        /// The address.
        address: SocketAddr,
    },
    /// The token can be guessed.
    #[error("the token has {got} characters; at least {TOKEN_BYTES_MIN} are needed, and no spaces")]
    Token {
        /// Its length.
        got: usize,
    },
    /// Somebody else listens there.
    #[error("a switch that runs listens on {} already", path.display())]
    Taken {
        /// The socket.
        path: PathBuf,
    },
    /// Something else is there.
    #[error("{} exists and is no socket", path.display())]
    NoSocket {
        /// The path.
        path: PathBuf,
    },
    /// The system refuses.
    #[error("cannot listen on {place}: {error}")]
    Listen {
        /// Where.
        place: String,
        /// What the system said.
        error: io::Error,
    },
}

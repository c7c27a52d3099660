//! Which running switch is meant.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use fanin_switch::control::{Client, ControlAddress};

use crate::failure::Failure;

/// A running switch.
#[derive(Debug, Args)]
pub(super) struct SwitchTarget {
    /// Where it listens: the path of its local socket, or IP:PORT of its HTTP interface.
    #[arg(long, value_name = "ADDRESS", env = "FANIN_SWITCH", default_value = "/run/fanin/switch.sock")]
    at: String,
    /// A file with the token that its HTTP interface wants.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    token_file: Option<PathBuf>,
}

impl SwitchTarget {
    /// Something to ask it with.
    pub(super) fn client(&self) -> Result<Client, Failure> {
        let token = match &self.token_file {
            None => None,
            Some(path) => Some(read_token(path)?),
        };
        let address = match self.at.parse::<SocketAddr>() {
            Ok(address) => ControlAddress::Http(address, token),
            Err(_) if self.at.contains('/') => ControlAddress::Socket(PathBuf::from(&self.at)),
            Err(_) => return Err(Failure::NoAddress { got: self.at.clone() }),
        };
        Ok(Client::new(address))
    }
}

/// The token in a file, without the line's end.
pub(super) fn read_token(path: &PathBuf) -> Result<String, Failure> {
    let text =
        std::fs::read_to_string(path).map_err(|error| Failure::NoToken { path: path.clone(), error })?;
    Ok(text.trim().to_owned())
}

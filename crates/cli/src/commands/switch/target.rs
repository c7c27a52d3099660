//! The running switch that a command addresses.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use fanin_switch::control::{Client, ControlAddress};

use crate::failure::Failure;
use crate::token::read_token;

/// A running switch.
#[derive(Debug, Args)]
pub(super) struct SwitchTarget {
    /// Address of the switch: the path of its local socket, or IP:PORT of its HTTP interface.
    #[arg(long, value_name = "ADDRESS", env = "FANIN_SWITCH", default_value = "/run/fanin/switch.sock")]
    at: String,
    /// A file with the token that its HTTP interface wants.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    token_file: Option<PathBuf>,
}

impl SwitchTarget {
    /// Makes a client of the switch.
    pub(super) fn client(&self) -> Result<Client, Failure> {
        let token = match &self.token_file {
            None => None,
            Some(path) => Some(read_token(path)?),
        };
        let address = match self.at.parse::<SocketAddr>() {
            Ok(address) => ControlAddress::Http(address, token),
            Err(_) if self.at.contains('/') => ControlAddress::Socket(PathBuf::from(&self.at)),
            Err(_) => return Err(Failure::NoAddress { given: self.at.clone() }),
        };
        Ok(Client::new(address))
    }
}

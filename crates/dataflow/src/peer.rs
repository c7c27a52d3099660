//! The peers of a connection, and the number of an event.

use core::fmt;

/// The Level-1 identifier of an event: a counter that the supervisor increments for each event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct L1Id(pub u64);

impl fmt::Display for L1Id {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, out)
    }
}

/// The other end of a connection: a role and its number, counted from zero within the role.
///
/// The driver maps a peer to a host, an address and a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Peer {
    /// The supervisor that leads.
    Supervisor,
    /// The supervisor of the standby host. Roles know only the supervisor that leads; drivers distinguish the two.
    Standby,
    /// A readout, by its number.
    Readout(u16),
    /// A collector, by its number.
    Collector(u16),
    /// A data logger.
    Logger(u16),
}

impl Peer {
    /// Returns true for both supervisors.
    pub const fn is_supervisor(self) -> bool {
        matches!(self, Self::Supervisor | Self::Standby)
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Supervisor => write!(out, "supervisor"),
            Self::Standby => write!(out, "standby"),
            Self::Readout(index) => write!(out, "readout {index}"),
            Self::Collector(index) => write!(out, "collector {index}"),
            Self::Logger(index) => write!(out, "logger {index}"),
        }
    }
}

/// A message that is invalid in the receiver's state: a faulty peer, or a driver with mixed-up connections.
///
/// The receiver's state is unchanged. A live process closes the connection; in a simulation such a message is a
/// programming error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unexpected {message} from {peer}: {why}")]
pub struct Unexpected {
    /// The peer that sent it.
    pub peer: Peer,
    /// The name of the message.
    pub message: &'static str,
    /// The reason why it is invalid.
    pub why: &'static str,
}

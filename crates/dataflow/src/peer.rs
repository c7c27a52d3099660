//! Who talks, and about which event.

use core::fmt;

/// The Level-1 identifier of an event: a counter that the supervisor raises by one for each event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct L1Id(pub u64);

impl fmt::Display for L1Id {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, out)
    }
}

/// The other end of a connection: a role and its number, counted from zero within the role.
///
/// Which host, address or connection that is, is the driver's business.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Peer {
    /// The one supervisor.
    Supervisor,
    /// A readout.
    Readout(u16),
    /// A collector.
    Collector(u16),
    /// A data logger.
    Logger(u16),
}

impl fmt::Display for Peer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Supervisor => write!(out, "supervisor"),
            Self::Readout(index) => write!(out, "readout {index}"),
            Self::Collector(index) => write!(out, "collector {index}"),
            Self::Logger(index) => write!(out, "logger {index}"),
        }
    }
}

/// A message that its receiver cannot make sense of: a faulty peer, or a driver that mixes connections up.
///
/// The receiver's state is unchanged. A live process closes the connection; in a simulation it is a mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unexpected {message} from {peer}: {why}")]
pub struct Unexpected {
    /// Who sent it.
    pub peer: Peer,
    /// The name of the message.
    pub message: &'static str,
    /// What is wrong with it.
    pub why: &'static str,
}

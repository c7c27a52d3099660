//! The roles of processes.

use std::fmt;
use std::str::FromStr;

/// The role of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Assigns events to processing units.
    Supervisor,
    /// Buffers the fragments of its sources, and sends them on request.
    Readout,
    /// Collects fragments and builds events.
    Collector,
    /// Decides on events, for the collector on its host.
    Processor,
    /// Stores accepted events in files.
    Logger,
}

impl Role {
    /// All roles, in the order of their declaration.
    pub const ALL: [Self; 5] =
        [Self::Supervisor, Self::Readout, Self::Collector, Self::Processor, Self::Logger];

    /// Returns the name of the role in commands, files and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Supervisor => "supervisor",
            Self::Readout => "readout",
            Self::Collector => "collector",
            Self::Processor => "processor",
            Self::Logger => "logger",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl FromStr for Role {
    type Err = UnknownRole;

    fn from_str(text: &str) -> Result<Self, UnknownRole> {
        Self::ALL.into_iter().find(|role| role.name() == text).ok_or(UnknownRole)
    }
}

/// Error of parsing a text that names no role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a role: use supervisor, readout, collector, processor or logger")]
pub struct UnknownRole;

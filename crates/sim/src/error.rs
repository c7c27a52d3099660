//! Why a simulation cannot be run.

use fanin_network::NetworkError;

/// Why a scenario is refused before its first event.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The scenario asks for something that is not simulated.
    #[error("{key}: {what} is not simulated")]
    Unsupported {
        /// The scenario's key.
        key: String,
        /// What it asks for.
        what: String,
    },
    /// A link that is to be captured does not exist.
    #[error("record.capture: no link is called {name:?}; one is, for example, \"tor:0->collector:0\"")]
    NoSuchLink {
        /// The name given.
        name: String,
    },
    /// Sizes of fragments cannot be taken from a file.
    #[error("readout.fragment_size: {reason}")]
    FragmentSizes {
        /// The file, and what is wrong with it.
        reason: String,
    },
    /// The network cannot be.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// A switch's memory cannot be.
    #[error("a switch cannot be: {0}")]
    Memory(#[from] fanin_queueing::LayoutError),
    /// A ring of a software switch cannot be.
    #[error("daqring: {0}")]
    Ring(#[from] fanin_queueing::RingError),
    /// A token bucket cannot be.
    #[error("daqring: {0}")]
    Bucket(#[from] fanin_queueing::BucketError),
    /// Its thresholds to stop its neighbours cannot be.
    #[error("pause: {0}")]
    Pause(#[from] fanin_queueing::PauseError),
    /// Its early signals cannot be.
    #[error("ecn: {0}")]
    Red(#[from] fanin_queueing::RedError),
    /// The supervisor cannot work as it is told.
    #[error("supervisor: {0}")]
    Supervisor(#[from] fanin_dataflow::SupervisorError),
    /// A readout cannot work as it is told.
    #[error("readout: {0}")]
    Readout(#[from] fanin_dataflow::ReadoutError),
    /// A collector cannot work as it is told.
    #[error("collector: {0}")]
    Collector(#[from] fanin_dataflow::CollectorError),
    /// A logger cannot work as it is told.
    #[error("logger: {0}")]
    Logger(#[from] fanin_dataflow::LoggerError),
}

impl Error {
    pub(crate) fn unsupported(key: impl Into<String>, what: impl Into<String>) -> Self {
        Self::Unsupported { key: key.into(), what: what.into() }
    }
}

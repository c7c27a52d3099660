//! Reasons for which a simulation cannot run.

use fanin_network::NetworkError;

/// Reasons for which a scenario is refused before it is played.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The scenario asks for something that is not simulated.
    #[error("{key}: {feature} is not simulated")]
    Unsupported {
        /// The refused key of the scenario.
        key: String,
        /// The setting that is not simulated.
        feature: String,
    },
    /// A record is impossible.
    #[error(transparent)]
    Record(#[from] fanin_recording::RecordError),
    /// The caller has not read the sizes of fragments from the scenario's file.
    #[error("readout.fragment_size: the sizes in {path} were not read; `fanin-runs` reads them")]
    SizesNotRead {
        /// The file that the scenario names.
        path: String,
    },
    /// The network is invalid.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// A switch's memory is invalid.
    #[error("switch memory: {0}")]
    Memory(#[from] fanin_queueing::LayoutError),
    /// A ring of a software switch has invalid settings.
    #[error("daqring: {0}")]
    Ring(#[from] fanin_queueing::RingError),
    /// A token bucket is invalid.
    #[error("daqring: {0}")]
    Bucket(#[from] fanin_queueing::BucketError),
    /// The thresholds of PAUSE are invalid.
    #[error("pause: {0}")]
    Pause(#[from] fanin_queueing::PauseError),
    /// The thresholds of RED are invalid.
    #[error("ecn: {0}")]
    Red(#[from] fanin_queueing::RedError),
    /// The scenario has more hosts, units or fragments than a role can count.
    #[error(transparent)]
    TooMany(#[from] fanin_scenario::role_configs::TooMany),
    /// The supervisor's settings are invalid.
    #[error("supervisor: {0}")]
    Supervisor(#[from] fanin_dataflow::SupervisorError),
    /// A readout's settings are invalid.
    #[error("readout: {0}")]
    Readout(#[from] fanin_dataflow::ReadoutError),
    /// A collector's settings are invalid.
    #[error("collector: {0}")]
    Collector(#[from] fanin_dataflow::CollectorError),
    /// A logger's settings are invalid.
    #[error("logger: {0}")]
    Logger(#[from] fanin_dataflow::LoggerError),
}

impl Error {
    pub(crate) fn unsupported(key: impl Into<String>, feature: impl Into<String>) -> Self {
        Self::Unsupported { key: key.into(), feature: feature.into() }
    }
}

//! Reasons for which a scenario is not run.

use fanin_events::sizes::SizesError;
use fanin_network::NetworkError;
use fanin_scenario::{Buffering, Scenario};
use fanin_sim::{LayoutError, RecordError};
use fanin_units::Bytes;

/// Errors of starting a run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The run needs more memory than this process may use.
    #[error("the run needs at least {needed} of memory, and {available} is available. Most is for {largest}")]
    Memory {
        /// A lower bound of the memory that the run needs.
        needed: Bytes,
        /// Memory of the machine, or the limit of this process.
        available: Bytes,
        /// The largest part, with the keys that reduce it.
        largest: &'static str,
    },
    /// The results of all runs need more memory than this process may use.
    #[error(
        "the results of {runs} runs need about {needed} of memory, and {available} is available. Give fewer values or \
         seeds, or run a part of them at a time"
    )]
    Results {
        /// Number of runs.
        runs: u64,
        /// Memory that their results need.
        needed: Bytes,
        /// Memory of the machine, or the limit of this process.
        available: Bytes,
    },
    /// Sizes of fragments cannot be read from the file that the scenario names.
    #[error("readout.fragment_size: {0}")]
    Sizes(#[from] SizesError),
    /// The file of sizes has changed since the scenario was loaded.
    #[error("readout.fragment_size: {path} has changed since the scenario was loaded; load it again")]
    SizesChanged {
        /// Path of the file.
        path: String,
    },
    /// The simulator refuses the scenario.
    #[error(transparent)]
    Sim(#[from] fanin_sim::Error),
}

/// A setting that the simulator refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedSetting {
    /// Key of the setting in the scenario.
    pub key: String,
    /// The fault, in one sentence.
    pub message: String,
    /// Advice on correct values.
    pub help: Option<String>,
}

/// Returns the setting to raise, where a switch has too many virtual output queues.
fn too_many_queues(scenario: &Scenario, message: String) -> Option<RefusedSetting> {
    let sections = scenario.topology_facts().switches;
    let section = sections.iter().find(|name| scenario.switch_settings(name).buffering == Buffering::Voq)?;
    let ports = scenario.switch_settings(section).module_ports;
    let hosts = if scenario.is_barrier() { "workload.senders" } else { "readout.hosts" };
    Some(RefusedSetting {
        key: format!("{section}.module_ports"),
        message,
        help: Some(format!(
            "raise {section}.module_ports, which is {ports}, or lower {hosts} or {section}.ports"
        )),
    })
}

impl Error {
    /// Returns the refused setting; `None` for errors that do not belong to a single setting.
    pub fn setting(&self, scenario: &Scenario) -> Option<RefusedSetting> {
        let error = match self {
            Self::Sim(fanin_sim::Error::Record(error)) => error,
            Self::Sim(fanin_sim::Error::Network(error @ NetworkError::Links { key })) => {
                let (key, message) = ((*key).to_owned(), error.to_string());
                return Some(RefusedSetting { key, message, help: None });
            }
            Self::Sim(fanin_sim::Error::Memory(LayoutError::Voqs { .. })) => {
                return too_many_queues(scenario, self.to_string());
            }
            _ => return None,
        };
        match error {
            RecordError::NoSuchQueue { name, kinds } => {
                let place = scenario.record.queues.iter().position(|queue| queue == name)?;
                Some(RefusedSetting {
                    key: format!("record.queues.{place}"),
                    message: format!("record.queues: no queue is called {name:?}"),
                    help: Some(format!("this network has {}", kinds.join(", "))),
                })
            }
            RecordError::NoSuchLink { name } => Some(RefusedSetting {
                key: "record.capture".to_owned(),
                message: format!("record.capture: no link is called {name:?}"),
                help: Some("one is, for example, \"tor:0->collector:0\"".to_owned()),
            }),
            RecordError::TooManySamples { .. } => Some(RefusedSetting {
                key: "record.queue_interval".to_owned(),
                message: error.to_string(),
                help: None,
            }),
            _ => None,
        }
    }
}

//! Reasons for which a scenario is not run.

use fanin_events::sizes::SizesError;
use fanin_units::Bytes;

/// Why a scenario is not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The run needs more memory than this process may have.
    #[error("the run needs at least {needed} of memory, and {available} is available. Most is for {largest}")]
    Memory {
        /// A lower estimate of its memory.
        needed: Bytes,
        /// Memory of the machine, or the limit of this process.
        available: Bytes,
        /// The part that needs the most, with the keys that make it smaller.
        largest: &'static str,
    },
    /// Sizes of fragments cannot be read from the file that the scenario names.
    #[error("readout.fragment_size: {0}")]
    Sizes(#[from] SizesError),
    /// The simulator refuses it.
    #[error(transparent)]
    Sim(#[from] fanin_sim::Error),
}

//! Reads the file of fragment sizes that a scenario may name.

use std::sync::Arc;

use fanin_events::sizes::{EventSizes, SizesError, read_models};
use fanin_scenario::{FragmentSizes, Scenario, SizeModel};
use fanin_sim::RecordedSizes;

use crate::error::Error;

/// Reads the file of a scenario, if it names one.
pub(crate) fn read(scenario: &Scenario) -> Result<RecordedSizes, SizesError> {
    let readout = &scenario.readout;
    let (hosts, fragments) = (readout.hosts, readout.fragments_per_host);
    Ok(match &readout.fragment_size {
        SizeModel::File { path } => {
            RecordedSizes::Events(Arc::new(EventSizes::read(path, hosts, fragments)?))
        }
        SizeModel::PerSource { path, .. } => {
            RecordedSizes::Models(Arc::new(read_models(path, hosts, fragments)?))
        }
        SizeModel::Fixed(_)
        | SizeModel::LogNormal { .. }
        | SizeModel::Polynomial { .. }
        | SizeModel::Empirical(_) => RecordedSizes::None,
    })
}

/// The sizes of a scenario's fragments, from the file that has them where it names one.
///
/// # Errors
/// [`Error::Sizes`].
pub fn fragment_sizes(scenario: &Scenario) -> Result<FragmentSizes, Error> {
    Ok(read(scenario)?.figures(scenario))
}

//! Reads the file of fragment sizes that a scenario may name.

use std::sync::Arc;

use fanin_events::sizes::{EventSizes, SizesError, read_models};
use fanin_scenario::{FragmentSizes, Scenario, SizeModel};
use fanin_sim::RecordedSizes;

use crate::error::Error;

/// Reads the file of a scenario, if it names one. A result stands under the content that the scenario was loaded with, so that
/// a file with another content is refused.
pub(crate) fn read(scenario: &Scenario) -> Result<RecordedSizes, Error> {
    check_unchanged(scenario)?;
    let sizes = read_file(scenario)?;
    check_unchanged(scenario)?;
    Ok(sizes)
}

fn check_unchanged(scenario: &Scenario) -> Result<(), Error> {
    let readout = &scenario.readout;
    // A file that is gone fails when it is read.
    match readout.sizes_digest.zip(readout.fragment_size.digest()) {
        Some((then, now)) if then != now => {
            Err(Error::SizesChanged { path: readout.fragment_size.path().unwrap_or_default().to_owned() })
        }
        _ => Ok(()),
    }
}

fn read_file(scenario: &Scenario) -> Result<RecordedSizes, SizesError> {
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
/// [`Error::Sizes`] and [`Error::SizesChanged`].
pub fn fragment_sizes(scenario: &Scenario) -> Result<FragmentSizes, Error> {
    Ok(read(scenario)?.figures(scenario))
}

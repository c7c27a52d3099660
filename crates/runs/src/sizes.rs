//! Reads the file of fragment sizes that a scenario may name.

use std::sync::Arc;

use fanin_events::sizes::SizesFile;
use fanin_scenario::{FragmentSizes, Scenario, SizeModel};
use fanin_sim::RecordedSizes;

use crate::error::Error;

/// Reads the file of a scenario, if it names one. A result names the file's content at loading, so that a changed file
/// is refused. The compared bytes are those that give the sizes.
pub(crate) fn read(scenario: &Scenario) -> Result<RecordedSizes, Error> {
    let readout = &scenario.readout;
    let Some(path) = readout.fragment_size.path() else { return Ok(RecordedSizes::None) };
    let file = SizesFile::read(path)?;
    if readout.sizes_digest != file.stored().map(SizeModel::digest_of) {
        return Err(Error::SizesChanged { path: path.to_owned() });
    }
    let (hosts, fragments) = (readout.hosts, readout.fragments_per_host);
    Ok(match &readout.fragment_size {
        SizeModel::PerSource { .. } => RecordedSizes::Models(Arc::new(file.into_models(hosts, fragments)?)),
        _ => RecordedSizes::Events(Arc::new(file.into_events(hosts, fragments)?)),
    })
}

/// The sizes of a scenario's fragments, from the file that has them where it names one.
///
/// # Errors
/// [`Error::Sizes`] and [`Error::SizesChanged`].
pub fn fragment_sizes(scenario: &Scenario) -> Result<FragmentSizes, Error> {
    let readout = &scenario.readout;
    let (model, fragments) = (&readout.fragment_size, readout.fragments_per_host);
    let recorded = read(scenario)?;
    if let Some(sizes) = model.sizes(readout.hosts, fragments) {
        return Ok(sizes);
    }
    let sizes = model.sizes_with_mean(recorded.mean(scenario), fragments);
    Ok(match recorded {
        RecordedSizes::Events(events) => FragmentSizes {
            answer_max: Some(events.answer_max(fragments)),
            // One readout that has every source.
            event_max: Some(events.answer_max(u32::MAX)),
            event_sigma: FragmentSizes::sigma_of(events.event_spread()),
            ..sizes
        },
        RecordedSizes::None | RecordedSizes::Models(_) => sizes,
    })
}

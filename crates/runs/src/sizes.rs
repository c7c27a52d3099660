//! Reads the file of fragment sizes that a scenario may name.

use std::sync::Arc;

use fanin_events::sizes::SizesFile;
use fanin_scenario::{FragmentSizes, Scenario, SizeModel};
use fanin_sim::RecordedSizes;

use crate::error::Error;

/// Reads the file of sizes, if the scenario names one. A scenario holds the digest of the file as it was loaded, so that a
/// changed file is refused. The sizes come from the very bytes whose digest is compared.
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

/// Returns the sizes of a scenario's fragments, from its file of sizes if it names one.
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
            // The largest event is the answer of a single readout with every source.
            event_max: Some(events.answer_max(u32::MAX)),
            event_sigma: FragmentSizes::sigma_of(events.event_spread()),
            ..sizes
        },
        RecordedSizes::None | RecordedSizes::Models(_) => sizes,
    })
}

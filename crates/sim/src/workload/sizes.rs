//! Sizes of fragments.

use std::sync::Arc;

use fanin_dataflow::{FragmentSet, FragmentSource, L1Id, Purpose, event_stream, fragment_stream};
use fanin_events::models::{SourceModel, relative_event_size};
use fanin_events::sizes::{self, EventSizes};
use fanin_scenario::{Scenario, SizeModel};
use fanin_units::Bytes;

use crate::Error;

/// The sizes of one readout's fragments. They depend on the seed, the event and the readout alone: repeated calls, in any
/// order, return the same sizes.
#[derive(Clone, Debug)]
pub(crate) struct Sizes {
    model: Model,
    fragments: u16,
    run: u64,
    readout: u64,
}

/// The content of the file of sizes that a scenario may name. Readouts take its sources in ascending order, each as many as
/// it has fragments.
#[derive(Clone, Debug)]
pub enum RecordedSizes {
    /// The scenario names no file.
    None,
    /// Sizes of each event, for `distribution = "file"`.
    Events(Arc<EventSizes>),
    /// Model of each source, for `distribution = "per-source"`.
    Models(Arc<Vec<SourceModel>>),
}

impl RecordedSizes {
    /// Refuses a scenario if its file was not read.
    pub(crate) fn check(&self, scenario: &Scenario) -> Result<(), Error> {
        let path = match &scenario.readout.fragment_size {
            SizeModel::File { path } if !matches!(self, Self::Events(_)) => path,
            SizeModel::PerSource { path, .. } if !matches!(self, Self::Models(_)) => path,
            _ => return Ok(()),
        };
        Err(Error::SizesNotRead { path: path.clone() })
    }

    /// Returns the mean size of a fragment, over all sources in use.
    pub fn mean(&self, scenario: &Scenario) -> Bytes {
        let places = scenario.fragments_total();
        match (self, &scenario.readout.fragment_size) {
            (Self::Events(sizes), _) => sizes.mean(places),
            (Self::Models(models), SizeModel::PerSource { sigma, .. }) => {
                sizes::models_mean(models, sigma.as_f64(), places)
            }
            (_, model) => model.mean().expect("a model with sizes, as the check wants"),
        }
    }
}

/// Source of the sizes.
#[derive(Clone, Debug)]
enum Model {
    /// Recorded sizes of consecutive sources from `first` on. Events are repeated in turn.
    Events { sizes: Arc<EventSizes>, first: usize },
    /// Models of consecutive sources from `first` on.
    PerSource { models: Arc<Vec<SourceModel>>, first: usize, sigma: f64 },
    /// Draws from the scenario's distribution, without a file.
    Drawn(SizeModel),
}

impl Sizes {
    pub(crate) fn new(
        model: &SizeModel,
        data: &RecordedSizes,
        fragments: u16,
        run: u64,
        readout: u64,
    ) -> Self {
        let first = readout as usize * usize::from(fragments);
        let model = match *model {
            SizeModel::File { .. } => match data {
                RecordedSizes::Events(sizes) => Model::Events { sizes: sizes.clone(), first },
                _ => unreachable!("the file was read"),
            },
            SizeModel::PerSource { sigma, .. } => match data {
                RecordedSizes::Models(models) => {
                    Model::PerSource { models: models.clone(), first, sigma: sigma.as_f64() }
                }
                _ => unreachable!("the file was read"),
            },
            ref drawn => Model::Drawn(drawn.clone()),
        };
        Self { model, fragments, run, readout }
    }

    fn size(&self, event: L1Id, wanted: FragmentSet) -> Bytes {
        let normal_of_event = || event_stream(self.run, event).normal();
        let own = || fragment_stream(self.run, self.readout, event, Purpose::Fragment);
        match self.model {
            Model::Drawn(SizeModel::Fixed(size)) => size * u64::from(wanted.len()),
            Model::Events { ref sizes, first } => {
                let event = &sizes.events[(event.0 % sizes.events.len() as u64) as usize];
                let here = event.iter().skip(first).take(usize::from(self.fragments));
                let wanted = here.zip(0..).filter(|&(_, fragment)| wanted.contains(fragment));
                Bytes::new(wanted.map(|(&size, _)| size).sum())
            }
            Model::PerSource { ref models, first, sigma } => {
                let x = relative_event_size(sigma, normal_of_event());
                let mut random = own();
                let here = models.iter().skip(first).take(usize::from(self.fragments));
                let sizes = here.map(|model| model.size_bytes(x, random.normal())).zip(0..);
                let wanted = sizes.filter(|&(_, fragment)| wanted.contains(fragment));
                Bytes::new(wanted.map(|(size, _)| size).sum())
            }
            Model::Drawn(ref model) => {
                let normal = normal_of_event();
                let mut random = own();
                let drawn = (0..self.fragments)
                    .map(|fragment| (fragment, model.draw(normal, &mut random).expect("a model with sizes")));
                drawn.filter(|&(fragment, _)| wanted.contains(fragment)).map(|(_, size)| size).sum()
            }
        }
    }

    /// Returns the bytes of all fragments of an event.
    pub(crate) fn event_bytes(&self, event: L1Id) -> Bytes {
        self.size(event, FragmentSet::first(self.fragments))
    }
}

impl FragmentSource<Bytes> for Sizes {
    fn read(&mut self, event: L1Id, wanted: FragmentSet) -> (Bytes, FragmentSet) {
        let here = FragmentSet::first(self.fragments);
        (self.size(event, wanted.intersection(here)), wanted.without(here))
    }
}

#[cfg(test)]
#[path = "../../tests/unit/sizes.rs"]
mod tests;

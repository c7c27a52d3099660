//! How large fragments are.

use std::sync::Arc;

use fanin_dataflow::{FragmentSet, FragmentSource, L1Id, Random};
use fanin_events::models::{SourceModel, relative_event_size};
use fanin_events::sizes::{self, EventSizes};
use fanin_scenario::{Scenario, SizeModel};
use fanin_units::Bytes;

use crate::Error;
use crate::random::{HostKind, Purpose, host, seed};

/// The fragments of one readout, in sizes that follow from the seed, the event and the readout alone: asking twice,
/// or in another order, gives the same.
#[derive(Clone, Debug)]
pub(crate) struct Sizes {
    model: Model,
    fragments: u16,
    run: u64,
    readout: u64,
}

/// The sizes in the scenario's file, if it names one. Sources are dealt out in ascending order: the first
/// readout has the first of them.
#[derive(Clone, Debug)]
pub(crate) enum RecordedSizes {
    None,
    Events(Arc<EventSizes>),
    Models(Arc<Vec<SourceModel>>),
}

impl RecordedSizes {
    /// Reads the file of a scenario, if it names one.
    pub(crate) fn read(scenario: &Scenario) -> Result<Self, Error> {
        let readout = &scenario.readout;
        let (hosts, fragments) = (readout.hosts, readout.fragments_per_host);
        let data = match &readout.fragment_size {
            SizeModel::File { path } => {
                EventSizes::read(path, hosts, fragments).map(|sizes| Self::Events(Arc::new(sizes)))
            }
            SizeModel::PerSource { path, .. } => {
                sizes::read_models(path, hosts, fragments).map(|models| Self::Models(Arc::new(models)))
            }
            SizeModel::Fixed(_) | SizeModel::LogNormal { .. } | SizeModel::Polynomial { .. } => {
                Ok(Self::None)
            }
        };
        data.map_err(|error| Error::FragmentSizes { reason: error.to_string() })
    }

    /// The mean size of a fragment, over all places for fragments.
    pub(crate) fn mean(&self, scenario: &Scenario) -> Bytes {
        let places = scenario.fragments_total();
        match (self, &scenario.readout.fragment_size) {
            (Self::Events(sizes), _) => sizes.mean(places),
            (Self::Models(models), SizeModel::PerSource { sigma, .. }) => {
                sizes::models_mean(models, sigma.as_f64(), places)
            }
            (_, model) => model.mean().unwrap_or_default(),
        }
    }
}

/// The mean size of a scenario's fragments, from the file that has them where it names one.
///
/// # Errors
/// [`Error::FragmentSizes`].
pub fn fragment_mean(scenario: &Scenario) -> Result<Bytes, Error> {
    Ok(RecordedSizes::read(scenario)?.mean(scenario))
}

/// A size model in the floats of its distributions.
#[derive(Clone, Debug)]
enum Model {
    /// Of the sources from a certain one on, the true sizes, event by event and over again.
    Events {
        sizes: Arc<EventSizes>,
        first: usize,
    },
    /// Of these sources, models of their own.
    PerSource {
        models: Arc<Vec<SourceModel>>,
        first: usize,
        sigma: f64,
    },
    Fixed(Bytes),
    /// Thesis §6.2: the event's size is log-normal with the given mean and scale, its fragments are equal parts of it
    /// plus a normal part of their own.
    LogNormal {
        mean: f64,
        sigma: f64,
        fragment_sd: f64,
    },
    /// A polynomial of the event's relative size, log-normal with mean 1; fragments vary by a share of it.
    Polynomial {
        offset: f64,
        slope: f64,
        square: f64,
        sigma: f64,
        rms: f64,
    },
}

impl Sizes {
    pub(crate) fn new(
        model: &SizeModel,
        data: &RecordedSizes,
        fragments: u16,
        run: u64,
        readout: u64,
    ) -> Self {
        let bytes = |bytes: Bytes| bytes.get() as f64;
        let first = readout as usize * usize::from(fragments);
        let model = match *model {
            SizeModel::Fixed(size) => Model::Fixed(size),
            SizeModel::LogNormal { mean, sigma, fragment_sd } => {
                Model::LogNormal { mean: bytes(mean), sigma: sigma.as_f64(), fragment_sd: bytes(fragment_sd) }
            }
            SizeModel::Polynomial { offset, slope, square, sigma, rms } => Model::Polynomial {
                offset: bytes(offset),
                slope: bytes(slope),
                square: bytes(square),
                sigma: sigma.as_f64(),
                rms: rms.as_f64(),
            },
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
        };
        Self { model, fragments, run, readout }
    }

    fn size(&self, event: L1Id, wanted: FragmentSet) -> Bytes {
        let relative = |sigma: f64| {
            let mut random = Random::new(seed(self.run, host(HostKind::Event, event.0), Purpose::Event));
            // A log-normal of mean 1.
            (sigma * random.normal() - sigma * sigma / 2.0).exp()
        };
        let (base, deviation) = match self.model {
            Model::Fixed(size) => return size * u64::from(wanted.len()),
            Model::Events { ref sizes, first } => {
                let event = &sizes.events[(event.0 % sizes.events.len() as u64) as usize];
                let here = event.iter().skip(first).take(usize::from(self.fragments));
                let wanted = here.zip(0..).filter(|&(_, fragment)| wanted.contains(fragment));
                return Bytes::new(wanted.map(|(&size, _)| size).sum());
            }
            Model::PerSource { ref models, first, sigma } => {
                let mut random = Random::new(seed(self.run, host(HostKind::Event, event.0), Purpose::Event));
                let x = relative_event_size(sigma, random.normal());
                let mut random = self.own(event);
                let here = models.iter().skip(first).take(usize::from(self.fragments));
                let sizes = here.map(|model| model.size_bytes(x, random.normal())).zip(0..);
                let wanted = sizes.filter(|&(_, fragment)| wanted.contains(fragment));
                return Bytes::new(wanted.map(|(size, _)| size).sum());
            }
            Model::LogNormal { mean, sigma, fragment_sd } => (mean * relative(sigma), fragment_sd),
            Model::Polynomial { offset, slope, square, sigma, rms } => {
                let x = relative(sigma);
                let base = offset + slope * x + square * x * x;
                (base, base * rms)
            }
        };
        let mut random = self.own(event);
        let sizes = (0..self.fragments).map(|fragment| (fragment, base + deviation * random.normal()));
        // A fragment has a header at least: one byte stands for it.
        let whole = |size: f64| size.round().max(1.0) as u64;
        Bytes::new(
            sizes.filter(|&(fragment, _)| wanted.contains(fragment)).map(|(_, size)| whole(size)).sum(),
        )
    }
}

impl Sizes {
    /// The random numbers of this readout's part of an event.
    fn own(&self, event: L1Id) -> Random {
        let readout = host(HostKind::Readout, self.readout);
        Random::new(seed(self.run ^ event.0.rotate_left(32), readout, Purpose::Fragment))
    }

    /// All fragments of an event together.
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
mod tests {
    use super::*;
    use fanin_units::Ratio;

    #[test]
    fn sizes_have_the_mean_and_the_tail_of_the_thesis() {
        // T059: log-normal with scale 0.25 scaled to the mean, and N(0, 200 B) a fragment.
        let model = SizeModel::LogNormal {
            mean: Bytes::new(1100),
            sigma: Ratio::new(250_000),
            fragment_sd: Bytes::new(200),
        };
        let readouts: Vec<_> =
            (0..20).map(|readout| Sizes::new(&model, &RecordedSizes::None, 12, 1, readout)).collect();
        let all = FragmentSet::first(12);
        let mut events: Vec<u64> = (0..4000)
            .map(|event| readouts.iter().map(|one| one.size(L1Id(event), all).get()).sum())
            .collect();
        let mean = events.iter().sum::<u64>() as f64 / events.len() as f64 / (20.0 * 12.0);
        assert!((mean / 1100.0 - 1.0).abs() < 0.015, "mean {mean}");
        events.sort_unstable();
        // The 99th percentile of the event's own part lies at exp(2.326 σ - σ² / 2) = 1.73 times the mean.
        let p99 = events[events.len() * 99 / 100] as f64 / (1100.0 * 240.0);
        assert!((p99 - 1.73).abs() < 0.06, "p99 {p99}");
        // Parts add up to the whole.
        let parts = [FragmentSet::first(5), all.without(FragmentSet::first(5))];
        let sum: Bytes = parts.iter().map(|&part| readouts[3].size(L1Id(9), part)).sum();
        assert_eq!(sum, readouts[3].size(L1Id(9), all));
    }

    #[test]
    fn a_sample_is_replayed_with_its_true_sizes() {
        let scenario = fanin_scenario::load("replay", &[]).unwrap().scenario;
        let data = RecordedSizes::read(&scenario).unwrap();
        let event = |number: u64| -> u64 {
            (0..24)
                .map(|host| Sizes::new(&scenario.readout.fragment_size, &data, 19, 1, host))
                .map(|sizes| sizes.event_bytes(L1Id(number)).get())
                .sum()
        };
        // Two time slices of 2 066 214 bytes together, over and over.
        assert_eq!(event(0) + event(1), 2_066_214);
        assert_eq!((event(0), event(1)), (event(2), event(7)));
        assert_eq!(data.mean(&scenario), Bytes::new(2265));
    }

    #[test]
    fn each_source_may_have_a_model_of_its_own() {
        let sets =
            ["readout.fragment_size={ distribution = \"per-source\", path = \"km3net\", sigma = 0.2 }"];
        let scenario = fanin_scenario::load("replay", &sets.map(str::to_owned)).unwrap().scenario;
        let data = RecordedSizes::read(&scenario).unwrap();
        let readouts: Vec<_> =
            (0..24).map(|host| Sizes::new(&scenario.readout.fragment_size, &data, 19, 1, host)).collect();
        let events: Vec<u64> = (0..500)
            .map(|event| readouts.iter().map(|sizes| sizes.event_bytes(L1Id(event)).get()).sum())
            .collect();
        let mean = events.iter().sum::<u64>() as f64 / 500.0;
        let expected = data.mean(&scenario).get() as f64 * 456.0;
        assert!((mean / expected - 1.0).abs() < 0.05, "{mean} {expected}");
        assert!(events.iter().max() > events.iter().min());
    }
}

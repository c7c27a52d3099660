//! How large fragments are.

use fanin_dataflow::{FragmentSet, FragmentSource, L1Id, Random};
use fanin_scenario::SizeModel;
use fanin_units::Bytes;

use crate::Error;
use crate::random::{Kind, Purpose, host, seed};

/// The fragments of one readout, in sizes that follow from the seed, the event and the readout alone: asking twice,
/// or in another order, gives the same.
#[derive(Clone, Debug)]
pub(crate) struct Sizes {
    model: Model,
    fragments: u16,
    run: u64,
    readout: u64,
}

/// A size model in the floats of its distributions.
#[derive(Clone, Copy, Debug)]
enum Model {
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
    pub(crate) fn new(model: &SizeModel, fragments: u16, run: u64, readout: u64) -> Result<Self, Error> {
        let bytes = |bytes: Bytes| bytes.get() as f64;
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
            SizeModel::File { .. } => {
                return Err(Error::unsupported("readout.fragment_size", "a file of fragments"));
            }
        };
        Ok(Self { model, fragments, run, readout })
    }

    fn size(&self, event: L1Id, wanted: FragmentSet) -> Bytes {
        let relative = |sigma: f64| {
            let mut random = Random::new(seed(self.run, host(Kind::Event, event.0), Purpose::Event));
            // A log-normal of mean 1.
            (sigma * random.normal() - sigma * sigma / 2.0).exp()
        };
        let (base, deviation) = match self.model {
            Model::Fixed(size) => return size * u64::from(wanted.len()),
            Model::LogNormal { mean, sigma, fragment_sd } => (mean * relative(sigma), fragment_sd),
            Model::Polynomial { offset, slope, square, sigma, rms } => {
                let x = relative(sigma);
                let base = offset + slope * x + square * x * x;
                (base, base * rms)
            }
        };
        let mut random = Random::new(seed(
            self.run ^ event.0.rotate_left(32),
            host(Kind::Readout, self.readout),
            Purpose::Fragment,
        ));
        let sizes = (0..self.fragments).map(|fragment| (fragment, base + deviation * random.normal()));
        // A fragment has a header at least: one byte stands for it.
        let whole = |size: f64| size.round().max(1.0) as u64;
        Bytes::new(
            sizes.filter(|&(fragment, _)| wanted.contains(fragment)).map(|(_, size)| whole(size)).sum(),
        )
    }
}

impl Sizes {
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
        let readouts: Vec<_> = (0..20).map(|readout| Sizes::new(&model, 12, 1, readout).unwrap()).collect();
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
}

//! Fragment sizes: fixed, by a distribution, or from a file.

use core::fmt;

use fanin_dataflow::Random;
use fanin_units::{Bytes, Ratio};
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

use crate::histogram::SizeHistogram;

/// The model of the fragments' sizes.
#[derive(Debug, Clone, PartialEq)]
pub enum SizeModel {
    /// All fragments have the same size.
    Fixed(Bytes),
    /// Event sizes are log-normal; the fragments vary about their event's mean (thesis §6.2).
    LogNormal {
        /// Mean size of a fragment.
        mean: Bytes,
        /// Scale parameter σ of the event size; its location is such that `mean` is the mean.
        sigma: Ratio,
        /// Standard deviation of a fragment about its event's mean; normal.
        fragment_sd: Bytes,
    },
    /// Each source's size is a polynomial of the event's relative size (as CMS models its front-end drivers).
    Polynomial {
        /// Size at relative event size zero.
        offset: Bytes,
        /// Bytes for each unit of relative event size.
        slope: Bytes,
        /// Bytes for each unit of its square.
        square: Bytes,
        /// Scale parameter σ of the relative event size, log-normal with mean 1.
        sigma: Ratio,
        /// Standard deviation of one fragment, as a share of its mean.
        rms: Ratio,
    },
    /// Each fragment's size is drawn from a histogram, independently of its event.
    Empirical(SizeHistogram),
    /// The fragments of the events in a raw-data file or a table, replayed repeatedly. Sources are assigned in ascending order.
    File {
        /// The file, relative to the scenario file; or a sample, `km3net` or `bes3`.
        path: String,
    },
    /// A size model for each source (as CMS models its front-end drivers), in ascending order.
    PerSource {
        /// A table of models, relative to the scenario file; or a sample that models are fitted to.
        path: String,
        /// Scale parameter σ of the relative event size, log-normal with mean 1.
        sigma: Ratio,
    },
}

/// The figures of a model's sizes, for calculations without simulation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FragmentSizes {
    /// Mean size of a fragment.
    pub mean: Bytes,
    /// The most bytes that a readout can have of one event; `None` where sizes have no upper bound.
    pub answer_max: Option<Bytes>,
    /// The bytes of the largest event of all readouts; `None` where sizes have no upper bound, or events are not known.
    pub event_max: Option<Bytes>,
    /// Scale parameter σ of the log-normal distribution that is nearest to the sizes of whole events.
    pub event_sigma: f64,
}

impl FragmentSizes {
    /// Returns the scale parameter σ of the log-normal distribution with this standard deviation, which is a share of the mean.
    pub fn sigma_of(spread: f64) -> f64 {
        (spread * spread).ln_1p().sqrt()
    }
}

/// The table form in a file.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(tag = "distribution", rename_all = "kebab-case", deny_unknown_fields)]
enum SizeTable {
    /// Event sizes are log-normal; the fragments vary about their event's mean (thesis §6.2).
    LogNormal {
        /// Mean size of a fragment.
        mean: Bytes,
        /// Scale parameter σ of the event's size, 0 to 2: for small values its relative standard deviation.
        sigma: Ratio,
        /// Standard deviation of a fragment about its event's mean; normal. Zero if absent.
        #[serde(default)]
        fragment_sd: Bytes,
    },
    /// A fragment has `offset + slope·x + square·x²` bytes on average; x is the event's size over the mean size.
    Polynomial {
        /// Bytes at x = 0.
        offset: Bytes,
        /// Bytes for each unit of x.
        slope: Bytes,
        /// Bytes for each unit of x². Zero if absent.
        #[serde(default)]
        square: Bytes,
        /// Scale parameter σ of x, log-normal with mean 1; 0 to 2. Zero if absent.
        #[serde(default)]
        sigma: Ratio,
        /// Standard deviation of a fragment, as a share of its mean; normal. Zero if absent.
        #[serde(default)]
        rms: Ratio,
    },
    /// Each fragment is drawn from a histogram, independently of its event. Sizes between two edges are equally likely.
    Empirical {
        /// The edges of the ranges, ascending: one more than counts. Two equal edges stand for one size.
        edges: Vec<Bytes>,
        /// Frequency of the sizes of each range.
        counts: Vec<u64>,
    },
    /// The fragments of real events, again and again; sources are dealt out to the readouts in ascending order.
    File {
        /// A raw-data file, a table (CSV or Parquet) with the columns event, source and bytes, or a sample, `km3net` or `bes3`.
        path: String,
    },
    /// A size model for each source (as CMS models its front-end drivers), dealt out in ascending order.
    PerSource {
        /// A CSV table with the columns source and mean, and rms if wanted, or source, offset, slope, square and rms; or a sample.
        path: String,
        /// Scale parameter σ of the relative event size, log-normal with mean 1; 0 to 2. Zero if absent.
        #[serde(default)]
        sigma: Ratio,
    },
}

/// All keys of all table forms, read before the form is known.
///
/// Serde's tagged enums lose the place of a key; flat reading keeps that place for the message.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Flat {
    distribution: Distribution,
    mean: Option<Bytes>,
    sigma: Option<Ratio>,
    fragment_sd: Option<Bytes>,
    offset: Option<Bytes>,
    slope: Option<Bytes>,
    square: Option<Bytes>,
    rms: Option<Ratio>,
    edges: Option<Vec<Bytes>>,
    counts: Option<Vec<u64>>,
    path: Option<String>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "kebab-case")]
enum Distribution {
    LogNormal,
    Polynomial,
    Empirical,
    File,
    PerSource,
}

impl Flat {
    fn build<E: Error>(self) -> Result<SizeModel, E> {
        let given = [
            ("mean", self.mean.is_some()),
            ("sigma", self.sigma.is_some()),
            ("fragment_sd", self.fragment_sd.is_some()),
            ("offset", self.offset.is_some()),
            ("slope", self.slope.is_some()),
            ("square", self.square.is_some()),
            ("rms", self.rms.is_some()),
            ("edges", self.edges.is_some()),
            ("counts", self.counts.is_some()),
            ("path", self.path.is_some()),
        ];
        let (name, used, needed): (_, &[&str], &[&str]) = match self.distribution {
            Distribution::LogNormal => ("log-normal", &["mean", "sigma", "fragment_sd"], &["mean", "sigma"]),
            Distribution::Polynomial => {
                ("polynomial", &["offset", "slope", "square", "sigma", "rms"], &["offset", "slope"])
            }
            Distribution::Empirical => ("empirical", &["edges", "counts"], &["edges", "counts"]),
            Distribution::File => ("file", &["path"], &["path"]),
            Distribution::PerSource => ("per-source", &["path", "sigma"], &["path"]),
        };
        for (key, is_given) in given {
            if is_given && !used.contains(&key) {
                return Err(E::custom(format_args!(
                    "`{key}` has no meaning for distribution = \"{name}\", which has {}",
                    used.join(", ")
                )));
            }
            if !is_given && needed.contains(&key) {
                return Err(E::custom(format_args!("distribution = \"{name}\" needs `{key}`")));
            }
        }
        let sigma = self.sigma.unwrap_or_default();
        Ok(match self.distribution {
            Distribution::LogNormal => SizeModel::LogNormal {
                mean: self.mean.unwrap_or_default(),
                sigma,
                fragment_sd: self.fragment_sd.unwrap_or_default(),
            },
            Distribution::Polynomial => SizeModel::Polynomial {
                offset: self.offset.unwrap_or_default(),
                slope: self.slope.unwrap_or_default(),
                square: self.square.unwrap_or_default(),
                sigma,
                rms: self.rms.unwrap_or_default(),
            },
            Distribution::Empirical => {
                let (edges, counts) = (self.edges.unwrap_or_default(), self.counts.unwrap_or_default());
                SizeModel::Empirical(SizeHistogram::new(edges, counts).map_err(E::custom)?)
            }
            Distribution::File => SizeModel::File { path: self.path.unwrap_or_default() },
            Distribution::PerSource => SizeModel::PerSource { path: self.path.unwrap_or_default(), sigma },
        })
    }
}

impl<'de> Deserialize<'de> for SizeModel {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = SizeModel;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(
                    "a size such as \"1.1 kB\", or a table such as { distribution = \"log-normal\", … }",
                )
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<SizeModel, E> {
                text.parse().map(SizeModel::Fixed).map_err(E::custom)
            }

            fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<SizeModel, M::Error> {
                Flat::deserialize(MapAccessDeserializer::new(map))?.build()
            }
        }
        input.deserialize_any(Either)
    }
}

impl Serialize for SizeModel {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        match self.clone() {
            Self::Fixed(bytes) => bytes.serialize(out),
            Self::LogNormal { mean, sigma, fragment_sd } => {
                SizeTable::LogNormal { mean, sigma, fragment_sd }.serialize(out)
            }
            Self::Polynomial { offset, slope, square, sigma, rms } => {
                SizeTable::Polynomial { offset, slope, square, sigma, rms }.serialize(out)
            }
            Self::Empirical(histogram) => {
                let (edges, counts) = (histogram.edges().to_vec(), histogram.counts().to_vec());
                SizeTable::Empirical { edges, counts }.serialize(out)
            }
            Self::File { path } => SizeTable::File { path }.serialize(out),
            Self::PerSource { path, sigma } => SizeTable::PerSource { path, sigma }.serialize(out),
        }
    }
}

impl JsonSchema for SizeModel {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "SizeModel".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let bytes = Bytes::json_schema(generator);
        let table = SizeTable::json_schema(generator);
        schemars::json_schema!({ "anyOf": [bytes, table] })
    }
}

impl SizeModel {
    /// Returns the path of the file of sizes, if any.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::File { path } | Self::PerSource { path, .. } => Some(path),
            Self::Fixed(_) | Self::LogNormal { .. } | Self::Polynomial { .. } | Self::Empirical(_) => None,
        }
    }

    /// Returns the SHA-256 of the present file of sizes; `None` without a readable file.
    pub fn digest(&self) -> Option<[u8; 32]> {
        std::fs::read(self.path()?).ok().map(|content| Self::digest_of(&content))
    }

    /// Returns the SHA-256 of the bytes of a file of sizes.
    pub fn digest_of(content: &[u8]) -> [u8; 32] {
        Sha256::digest(content).into()
    }

    /// Returns the path of the file of sizes for a change, if any.
    pub(crate) fn path_mut(&mut self) -> Option<&mut String> {
        match self {
            Self::File { path } | Self::PerSource { path, .. } => Some(path),
            Self::Fixed(_) | Self::LogNormal { .. } | Self::Polynomial { .. } | Self::Empirical(_) => None,
        }
    }

    /// Draws the size of a fragment from its event's standard normal number and its own random stream. The size is at least one
    /// byte, for its header; `None` if the sizes are in a file.
    pub fn draw(&self, event: f64, own: &mut Random) -> Option<Bytes> {
        // The event's relative size is log-normal with mean 1.
        let relative = |sigma: Ratio| (sigma.as_f64() * event - sigma.as_f64() * sigma.as_f64() / 2.0).exp();
        let size = match *self {
            Self::Fixed(bytes) => return Some(bytes),
            Self::Empirical(ref histogram) => return Some(histogram.at(own.unit())),
            Self::LogNormal { mean, sigma, fragment_sd } => {
                mean.get() as f64 * relative(sigma) + fragment_sd.get() as f64 * own.normal()
            }
            Self::Polynomial { offset, slope, square, sigma, rms } => {
                let x = relative(sigma);
                let base = offset.get() as f64 + slope.get() as f64 * x + square.get() as f64 * x * x;
                base + base * rms.as_f64() * own.normal()
            }
            Self::File { .. } | Self::PerSource { .. } => return None,
        };
        Some(Bytes::new(size.round().max(1.0) as u64))
    }

    /// Returns the mean size of a fragment; `None` if the sizes are in a file.
    pub fn mean(&self) -> Option<Bytes> {
        match *self {
            Self::Fixed(bytes) => Some(bytes),
            Self::LogNormal { mean, .. } => Some(mean),
            Self::Empirical(ref histogram) => Some(histogram.mean()),
            Self::Polynomial { offset, slope, square, sigma, .. } => {
                // E[x²] of a log-normal with mean 1 is exp(σ²).
                let second = (sigma.as_f64() * sigma.as_f64()).exp();
                let square = square.get() as f64 * second;
                Some(offset.saturating_add(slope).saturating_add(Bytes::new(square as u64)))
            }
            Self::File { .. } | Self::PerSource { .. } => None,
        }
    }

    /// Returns the scale parameter σ of the event sizes that the model states; zero if it states none.
    fn sigma(&self) -> f64 {
        match self {
            Self::LogNormal { sigma, .. }
            | Self::Polynomial { sigma, .. }
            | Self::PerSource { sigma, .. } => sigma.as_f64(),
            Self::Fixed(_) | Self::Empirical(_) | Self::File { .. } => 0.0,
        }
    }

    /// Returns the sizes with another mean, for readouts with `fragments` fragments each. Only constant sizes then have a known
    /// largest answer.
    pub fn sizes_with_mean(&self, mean: Bytes, fragments: u32) -> FragmentSizes {
        let is_fixed = matches!(self, Self::Fixed(_));
        FragmentSizes {
            mean,
            answer_max: is_fixed.then(|| mean.checked_mul(fragments.into())).flatten(),
            event_max: None,
            event_sigma: self.sigma(),
        }
    }

    /// Returns the sizes for `hosts` readouts with `fragments` fragments each; `None` if the sizes are in a file.
    pub fn sizes(&self, hosts: u32, fragments: u32) -> Option<FragmentSizes> {
        let sizes = self.sizes_with_mean(self.mean()?, fragments);
        let Self::Empirical(histogram) = self else { return Some(sizes) };
        // Independent fragments even each other out.
        let count = f64::from(hosts) * f64::from(fragments);
        Some(FragmentSizes {
            answer_max: histogram.max().checked_mul(fragments.into()),
            event_sigma: FragmentSizes::sigma_of(histogram.spread() / count.max(1.0).sqrt()),
            ..sizes
        })
    }
}

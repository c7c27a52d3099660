//! Fragment sizes: fixed, by a distribution, or from a file.

use core::fmt;

use fanin_units::{Bytes, Ratio};
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

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
    /// The fragments of the events in a raw-data file, replayed repeatedly. Sources are assigned in ascending order.
    File {
        /// The file, relative to the scenario file; or a sample, `km3net` or `bes3`.
        path: String,
    },
    /// A size model for each source (as CMS models its front-end drivers), in ascending order.
    PerSource {
        /// A table of models, relative to the scenario file; or a sample, to which models are fitted.
        path: String,
        /// Scale parameter σ of the relative event size, log-normal with mean 1.
        sigma: Ratio,
    },
}

/// The table form in a file.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(tag = "distribution", rename_all = "kebab-case", deny_unknown_fields)]
enum SizeTable {
    LogNormal { mean: Bytes, sigma: Ratio, fragment_sd: Bytes },
    Polynomial { offset: Bytes, slope: Bytes, square: Bytes, sigma: Ratio, rms: Ratio },
    File { path: String },
    PerSource { path: String, sigma: Ratio },
}

/// All keys of all table forms, read before the form is known.
///
/// serde's own tagged enums lose the place of a key; flat reading keeps it for the message.
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
    path: Option<String>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "kebab-case")]
enum Distribution {
    LogNormal,
    Polynomial,
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
            ("path", self.path.is_some()),
        ];
        let (name, used, needed): (_, &[&str], &[&str]) = match self.distribution {
            Distribution::LogNormal => ("log-normal", &["mean", "sigma", "fragment_sd"], &["mean", "sigma"]),
            Distribution::Polynomial => {
                ("polynomial", &["offset", "slope", "square", "sigma", "rms"], &["offset", "slope"])
            }
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
    /// The file of the sizes, if there is one.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::File { path } | Self::PerSource { path, .. } => Some(path),
            Self::Fixed(_) | Self::LogNormal { .. } | Self::Polynomial { .. } => None,
        }
    }

    /// The file of the sizes, for a change of its path.
    pub(crate) fn path_mut(&mut self) -> Option<&mut String> {
        match self {
            Self::File { path } | Self::PerSource { path, .. } => Some(path),
            Self::Fixed(_) | Self::LogNormal { .. } | Self::Polynomial { .. } => None,
        }
    }

    /// The size of a fragment, for two numbers from the standard normal distribution: one for its event, and one of its
    /// own. At least one byte, for its header; `None` if the sizes are in a file.
    pub fn draw(&self, event: f64, own: f64) -> Option<Bytes> {
        // The event's relative size is log-normal with mean 1.
        let relative = |sigma: Ratio| (sigma.as_f64() * event - sigma.as_f64() * sigma.as_f64() / 2.0).exp();
        let size = match *self {
            Self::Fixed(bytes) => return Some(bytes),
            Self::LogNormal { mean, sigma, fragment_sd } => {
                mean.get() as f64 * relative(sigma) + fragment_sd.get() as f64 * own
            }
            Self::Polynomial { offset, slope, square, sigma, rms } => {
                let x = relative(sigma);
                let base = offset.get() as f64 + slope.get() as f64 * x + square.get() as f64 * x * x;
                base * (1.0 + rms.as_f64() * own)
            }
            Self::File { .. } | Self::PerSource { .. } => return None,
        };
        Some(Bytes::new(size.round().max(1.0) as u64))
    }

    /// The mean size of a fragment; `None` if the sizes are in a file.
    pub fn mean(&self) -> Option<Bytes> {
        match *self {
            Self::Fixed(bytes) => Some(bytes),
            Self::LogNormal { mean, .. } => Some(mean),
            Self::Polynomial { offset, slope, square, sigma, .. } => {
                // E[x²] of a log-normal with mean 1 is exp(σ²).
                let second = (sigma.as_f64() * sigma.as_f64()).exp();
                let square = square.get() as f64 * second;
                Some(offset.saturating_add(slope).saturating_add(Bytes::new(square as u64)))
            }
            Self::File { .. } | Self::PerSource { .. } => None,
        }
    }
}

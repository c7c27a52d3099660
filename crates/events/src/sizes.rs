//! Fragment sizes of real events, for simulation and planning.

use std::collections::BTreeMap;
use std::path::Path;

use fanin_units::Bytes;

use crate::file::{self, FileError};
use crate::models::{self, SourceModel, TableError};
use crate::table::{SizesTable, SizesTableError};
use crate::{Events, ReadError, sample};

/// A name, and the function that returns the bytes.
type ShippedSample = (&'static str, fn() -> Vec<u8>);

/// The samples that come with the crate, by name; a file with the same name has precedence.
const SAMPLES: [ShippedSample; 2] = [("km3net", sample::km3net), ("bes3", sample::bes3)];

/// Largest table of models; tables are small.
const TABLE_LIMIT: Bytes = Bytes::new(64_000_000);

/// The sizes of the fragments of a file, event by event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventSizes {
    /// The sources, in ascending order.
    pub sources: Vec<u32>,
    /// For each event, the bytes of each source's fragments, in the order of `sources`; 0 if it has none.
    pub events: Vec<Vec<u64>>,
}

/// Errors of reading fragment sizes from a file.
#[derive(Debug, thiserror::Error)]
pub enum SizesError {
    /// The file cannot be read.
    #[error("{path}: {error}; the samples that need no file are \"km3net\" and \"bes3\"")]
    File {
        /// Path of the file.
        path: String,
        /// Error of the file.
        error: FileError,
    },
    /// The file violates its format.
    #[error("{path}: {error}")]
    Format {
        /// Path of the file.
        path: String,
        /// The fault and its place.
        error: ReadError,
    },
    /// A table of sizes cannot be read.
    #[error("{path}: {error}")]
    Rows {
        /// Path of the file.
        path: String,
        /// The row at fault and the reason.
        error: SizesTableError,
    },
    /// A table of models has a line that cannot be read.
    #[error("{path}: {error}")]
    Table {
        /// Path of the file.
        path: String,
        /// The line at fault and the reason.
        error: TableError,
    },
    /// The file is empty.
    #[error("no {item} in {path}")]
    Empty {
        /// Path of the file.
        path: String,
        /// The missing content.
        item: &'static str,
    },
    /// The file has more sources than places for their fragments.
    #[error(
        "{path} has {sources} sources, but {hosts} readouts with {fragments} fragments each hold {places}; give \
         more readout.hosts or readout.fragments_per_host"
    )]
    TooManySources {
        /// Path of the file.
        path: String,
        /// Number of its sources.
        sources: usize,
        /// Number of readout hosts.
        hosts: u32,
        /// Fragments on each.
        fragments: u32,
        /// Number of fragments of an event: hosts times fragments.
        places: u64,
    },
}

/// The bytes of a file of sizes, or of a sample. They are read once, so that their digest belongs to the sizes taken from them.
pub struct SizesFile {
    path: String,
    bytes: Vec<u8>,
    is_sample: bool,
}

impl SizesFile {
    /// Reads a file, or the sample of this name if the file does not exist.
    ///
    /// # Errors
    /// If the file cannot be read or is too large.
    pub fn read(path: &str) -> Result<Self, SizesError> {
        let sample = SAMPLES.iter().find(|(name, _)| *name == path && !Path::new(path).exists());
        let bytes = match sample {
            Some((_, content)) => content(),
            None => file::read_stored(Path::new(path), file::LIMIT)
                .map_err(|error| SizesError::File { path: path.to_owned(), error })?,
        };
        Ok(Self { path: path.to_owned(), bytes, is_sample: sample.is_some() })
    }

    /// Returns the stored bytes of the file; `None` for a sample, which is not a file.
    pub fn stored(&self) -> Option<&[u8]> {
        (!self.is_sample).then_some(&self.bytes)
    }

    /// Takes the sizes from a raw-data file or a table, as [`EventSizes::read`] does.
    ///
    /// # Errors
    /// As for [`EventSizes::read`].
    pub fn into_events(self, hosts: u32, fragments: u32) -> Result<EventSizes, SizesError> {
        let (path, bytes) = self.expand(file::LIMIT)?;
        let sizes = match EventSizes::of_table(&path, &bytes)? {
            Some(sizes) => sizes,
            None => EventSizes::of_events(&path, &bytes)?,
        };
        if sizes.sources.is_empty() {
            return Err(SizesError::Empty { path, item: "event with fragments" });
        }
        fits(&path, sizes.sources.len(), hosts, fragments)?;
        Ok(sizes)
    }

    /// Takes the models from a table, as [`read_models`] does.
    ///
    /// # Errors
    /// As for [`read_models`].
    pub fn into_models(self, hosts: u32, fragments: u32) -> Result<Vec<SourceModel>, SizesError> {
        let is_sample = self.is_sample;
        let (path, bytes) = self.expand(if is_sample { file::LIMIT } else { TABLE_LIMIT })?;
        let models = if is_sample {
            // A sample has events, to which models are fitted.
            models::fit(&bytes).map_err(|error| SizesError::Format { path: path.clone(), error })?
        } else {
            models::from_csv(&String::from_utf8_lossy(&bytes))
                .map_err(|error| SizesError::Table { path: path.clone(), error })?
        };
        if models.is_empty() {
            return Err(SizesError::Empty { path, item: "size model" });
        }
        fits(&path, models.len(), hosts, fragments)?;
        Ok(models)
    }

    /// Returns the path, and the uncompressed content of at most `limit`.
    fn expand(self, limit: Bytes) -> Result<(String, Vec<u8>), SizesError> {
        let Self { path, bytes, .. } = self;
        let content = if bytes.len() as u64 > limit.get() {
            Err(FileError::TooLarge { limit })
        } else {
            file::expand(bytes, limit)
        };
        match content {
            Ok(content) => Ok((path, content)),
            Err(error) => Err(SizesError::File { path, error }),
        }
    }
}

fn fits(path: &str, sources: usize, hosts: u32, fragments: u32) -> Result<(), SizesError> {
    let places = u64::from(hosts) * u64::from(fragments);
    if sources as u64 > places {
        let path = path.to_owned();
        return Err(SizesError::TooManySources { path, sources, hosts, fragments, places });
    }
    Ok(())
}

impl EventSizes {
    /// Reads the sizes in a raw-data file, or in a sample (`km3net`, `bes3`), for `hosts` readouts with `fragments`
    /// fragments each. From a table of (event, source, bytes), as CSV or Parquet, reads the events in ascending order.
    ///
    /// # Errors
    /// If the file cannot be read, violates its format, holds no event, or has more sources than places.
    pub fn read(path: &str, hosts: u32, fragments: u32) -> Result<Self, SizesError> {
        SizesFile::read(path)?.into_events(hosts, fragments)
    }

    /// Takes the sizes from a table of (event, source, bytes) with this path and content; `None` if the file is no such table.
    ///
    /// # Errors
    /// If a row cannot be read.
    pub fn of_table(path: &str, bytes: &[u8]) -> Result<Option<Self>, SizesError> {
        let rows = |error| SizesError::Rows { path: path.to_owned(), error };
        let Some(table) = SizesTable::read(Path::new(path), bytes) else { return Ok(None) };
        let (sources, events) = table.and_then(SizesTable::unfold).map_err(rows)?;
        Ok(Some(Self { sources, events }))
    }

    /// Takes the sizes from a raw-data file.
    fn of_events(path: &str, bytes: &[u8]) -> Result<Self, SizesError> {
        let format = |error| SizesError::Format { path: path.to_owned(), error };
        let mut events: Vec<BTreeMap<u32, u64>> = Vec::new();
        for event in Events::open(bytes).map_err(format)? {
            let mut sizes = BTreeMap::new();
            for fragment in event.map_err(format)?.fragments {
                *sizes.entry(fragment.source).or_insert(0) += fragment.bytes.len() as u64;
            }
            events.push(sizes);
        }
        let sources: Vec<u32> = events
            .iter()
            .flat_map(|event| event.keys().copied())
            .collect::<std::collections::BTreeSet<_>>()
            .into_iter()
            .collect();
        let of = |event: &BTreeMap<u32, u64>| -> Vec<u64> {
            sources.iter().map(|source| event.get(source).copied().unwrap_or(0)).collect()
        };
        let events = events.iter().map(of).collect();
        Ok(Self { sources, events })
    }

    /// Computes the mean size of a fragment over `places` places. Places without a source count as 0 bytes.
    pub fn mean(&self, places: u64) -> Bytes {
        let total: u128 = self.events.iter().flatten().map(|&size| u128::from(size)).sum();
        let count = self.events.len() as u128 * u128::from(places.max(1));
        Bytes::new((total / count.max(1)) as u64)
    }

    /// Returns the most bytes of one event at a readout with `fragments` fragments.
    pub fn answer_max(&self, fragments: u32) -> Bytes {
        let fragments = fragments.max(1) as usize;
        let answers = self.events.iter().flat_map(|event| event.chunks(fragments));
        Bytes::new(answers.map(|answer| answer.iter().sum()).max().unwrap_or(0))
    }

    /// Computes the standard deviation of the events' sizes, as a share of their mean.
    pub fn event_spread(&self) -> f64 {
        let sizes: Vec<f64> = self.events.iter().map(|event| event.iter().sum::<u64>() as f64).collect();
        let count = sizes.len().max(1) as f64;
        let mean = sizes.iter().sum::<f64>() / count;
        let variance = sizes.iter().map(|size| (size - mean).powi(2)).sum::<f64>() / count;
        if mean > 0.0 { variance.sqrt() / mean } else { 0.0 }
    }
}

/// Reads a table of size models, one line for each source (see [`models::from_csv`]), for `hosts` readouts with `fragments`
/// fragments each. Fits the models to a sample's events.
///
/// # Errors
/// If the file cannot be read, has a wrong line, no line, or more sources than places.
pub fn read_models(path: &str, hosts: u32, fragments: u32) -> Result<Vec<SourceModel>, SizesError> {
    SizesFile::read(path)?.into_models(hosts, fragments)
}

/// Computes the mean size of a fragment by size models, over `places` places.
pub fn models_mean(models: &[SourceModel], sigma: f64, places: u64) -> Bytes {
    // For the log-normal relative size x, E[x] = 1 and E[x²] = exp(σ²).
    let second = (sigma * sigma).exp();
    let total: f64 =
        models.iter().map(|model| (model.offset + model.slope + model.square * second).max(0.0)).sum();
    Bytes::new((total / places.max(1) as f64).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_has_its_true_sizes() {
        let sizes = EventSizes::read("km3net", 24, 19).unwrap();
        assert_eq!((sizes.sources.len(), sizes.events.len()), (453, 2));
        let total: u64 = sizes.events.iter().flatten().sum();
        assert_eq!(total, 2_066_214);
        assert_eq!(sizes.mean(456), Bytes::new(2_066_214 / 2 / 456));
    }

    #[test]
    fn tables_and_raw_data_agree() {
        let path = std::env::temp_dir().join(format!("fanin-sizes-{}.csv", std::process::id()));
        let raw = EventSizes::read("km3net", 24, 19).unwrap();
        let mut rows = "event,source,bytes\n".to_owned();
        for (event, sizes) in raw.events.iter().enumerate().rev() {
            for (source, bytes) in raw.sources.iter().zip(sizes).filter(|(_, bytes)| **bytes > 0) {
                rows.push_str(&format!("{event},{source},{bytes}\n"));
            }
        }
        std::fs::write(&path, rows).unwrap();
        let table = EventSizes::read(&path.to_string_lossy(), 24, 19);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(table.unwrap(), raw);
    }

    #[test]
    fn the_largest_answer_and_the_spread() {
        let sizes = EventSizes { sources: vec![1, 2, 3], events: vec![vec![10, 20, 30], vec![30, 5, 65]] };
        assert_eq!([1, 2, 3].map(|fragments| sizes.answer_max(fragments).get()), [65, 65, 100]);
        assert!((sizes.event_spread() - 0.25).abs() < 1e-12);
    }

    #[test]
    fn sizes_that_do_not_fit_are_refused() {
        let message = |result: Result<EventSizes, SizesError>| result.unwrap_err().to_string();
        assert_eq!(
            message(EventSizes::read("km3net", 24, 10)),
            "km3net has 453 sources, but 24 readouts with 10 fragments each hold 240; give more \
             readout.hosts or readout.fragments_per_host"
        );
        assert!(message(EventSizes::read("no such file", 1, 1)).starts_with("no such file: "));
        assert!(message(EventSizes::read("lhc", 1, 1)).contains("\"km3net\""));
    }

    #[test]
    fn models_are_fitted_to_a_sample() {
        let models = read_models("bes3", 26, 2).unwrap();
        assert_eq!(models.len(), 42);
        // Over the events themselves the models return the mean of the file.
        let file = EventSizes::read("bes3", 26, 2).unwrap().mean(52).get() as f64;
        let fitted = models_mean(&models, 0.0, 52).get() as f64;
        assert!((fitted / file - 1.0).abs() < 0.1, "{fitted} {file}");
    }
}

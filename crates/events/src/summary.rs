//! A summary of a file: events, sources, sizes.

use std::collections::BTreeMap;
use std::fmt;

use fanin_units::Bytes;
use serde::Serialize;

use crate::{Event, Events, Format, ReadError};

/// Count, mean, spread and extremes of a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct SizeMoments {
    /// Number of values.
    pub count: u64,
    /// Arithmetic mean; 0 without values.
    pub mean: f64,
    /// Standard deviation of the values as a whole population (divided by n).
    pub sd: f64,
    /// The smallest value.
    pub min: u64,
    /// The largest value.
    pub max: u64,
    /// Sum of all values.
    pub total: u64,
    #[serde(skip)]
    squares: f64,
}

impl SizeMoments {
    /// Adds a value (Welford's method).
    pub fn add(&mut self, value: u64) {
        self.min = if self.count == 0 { value } else { self.min.min(value) };
        self.max = self.max.max(value);
        self.count += 1;
        self.total = self.total.saturating_add(value);
        let distance = value as f64 - self.mean;
        self.mean += distance / self.count as f64;
        self.squares += distance * (value as f64 - self.mean);
        self.sd = (self.squares / self.count as f64).sqrt();
    }
}

impl FromIterator<u64> for SizeMoments {
    fn from_iter<I: IntoIterator<Item = u64>>(values: I) -> Self {
        let mut moments = Self::default();
        values.into_iter().for_each(|value| moments.add(value));
        moments
    }
}

/// The summary of one source.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SourceSummary {
    /// Identifier of the source.
    pub source: u32,
    /// Bytes of the source in an event.
    #[serde(flatten)]
    pub bytes: SizeMoments,
}

/// The summary of a file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FileSummary {
    /// The format of the file.
    pub format: Format,
    /// Number of events.
    pub events: u64,
    /// The runs of the events, in ascending order.
    pub runs: Vec<u32>,
    /// Smallest and largest L1 ID; absent without events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub l1_ids: Option<(u64, u64)>,
    /// Fragments in an event.
    pub fragments_per_event: SizeMoments,
    /// Bytes of all fragments of an event, without the headers that the file adds.
    pub event_bytes: SizeMoments,
    /// Bytes of a fragment, over all sources and events.
    pub fragment_bytes: SizeMoments,
    /// Each source, in ascending order.
    pub sources: Vec<SourceSummary>,
    /// Variation of event and fragment sizes; see [`FileSummary::size_line`].
    pub spread: SizeSpread,
}

/// The two parts of the size spread: the part common to an event, and each fragment's own part (thesis §6.2).
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct SizeSpread {
    /// Standard deviation of the logarithm of the event size.
    pub sigma: f64,
    /// Standard deviation of a fragment's size about the mean fragment of its event, in bytes.
    pub fragment_sd: f64,
}

/// Distributions of a scenario's fragment sizes that can be fitted to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeShape {
    /// Log-normal event sizes, and fragments normal about their event's mean.
    LogNormal,
    /// Fragments in proportion to the event's relative size, with a relative spread.
    Polynomial,
}

impl FileSummary {
    /// Reads all events of a file.
    ///
    /// # Errors
    /// If the file contradicts its format anywhere.
    pub fn read(bytes: &[u8]) -> Result<Self, ReadError> {
        let mut events = Events::open(bytes)?;
        let format = events.format();
        let mut builder = SummaryBuilder::default();
        events.try_for_each(|event| event.map(|event| builder.add(&event)))?;
        Ok(builder.finish(format))
    }

    /// Writes the line of a scenario's `[readout]` that makes fragments of these sizes: `fragment_size = { … }`.
    ///
    /// Mean and spread come from the file, over all sources together. [`crate::models::fit`] fits each source separately.
    pub fn size_line(&self, shape: SizeShape) -> String {
        let bytes = |value: f64| Bytes::new(value.round().max(0.0) as u64);
        let mean = bytes(self.fragment_bytes.mean);
        let sigma = Ppm(self.spread.sigma);
        match shape {
            SizeShape::LogNormal => format!(
                "fragment_size = {{ distribution = \"log-normal\", mean = \"{mean}\", sigma = {sigma}, \
                 fragment_sd = \"{}\" }}",
                bytes(self.spread.fragment_sd)
            ),
            SizeShape::Polynomial => {
                let rms = self.spread.fragment_sd / self.fragment_bytes.mean.max(1.0);
                format!(
                    "fragment_size = {{ distribution = \"polynomial\", offset = \"0 B\", slope = \"{mean}\", \
                     square = \"0 B\", sigma = {sigma}, rms = {} }}",
                    Ppm(rms)
                )
            }
        }
    }
}

/// A ratio in the form of scenarios: a decimal number with at most six decimals.
struct Ppm(f64);

impl fmt::Display for Ppm {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{:.6}", self.0);
        out.write_str(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

impl fmt::Display for FileSummary {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = |moments: &SizeMoments| {
            format!("mean {:.1}, sd {:.1}, {} to {}", moments.mean, moments.sd, moments.min, moments.max)
        };
        write!(out, "format          {}\nevents          {}", self.format, self.events)?;
        if let Some((first, last)) = self.l1_ids {
            write!(out, "\nL1 IDs          {first} to {last}")?;
        }
        if !self.runs.is_empty() {
            let runs: Vec<String> = self.runs.iter().map(u32::to_string).collect();
            write!(out, "\nruns            {}", runs.join(", "))?;
        }
        writeln!(out, "\nsources         {}", self.sources.len())?;
        writeln!(out, "fragments/event {}", bytes(&self.fragments_per_event))?;
        writeln!(out, "event bytes     {}", bytes(&self.event_bytes))?;
        write!(out, "fragment bytes  {}", bytes(&self.fragment_bytes))
    }
}

/// Gathers a summary event by event.
#[derive(Debug, Default)]
pub struct SummaryBuilder {
    runs: std::collections::BTreeSet<u32>,
    l1_ids: Option<(u64, u64)>,
    fragments_per_event: SizeMoments,
    event_bytes: SizeMoments,
    fragment_bytes: SizeMoments,
    sources: BTreeMap<u32, SizeMoments>,
    log_sum: f64,
    log_squares: f64,
    log_count: f64,
    /// Sum of squared distances of fragments from the mean of their event.
    within: f64,
    of_event: BTreeMap<u32, u64>,
}

impl SummaryBuilder {
    /// Adds an event.
    pub fn add(&mut self, event: &Event<'_>) {
        let l1_id = event.id.l1_id;
        self.l1_ids = Some(self.l1_ids.map_or((l1_id, l1_id), |(min, max)| (min.min(l1_id), max.max(l1_id))));
        self.runs.extend(event.id.run);
        self.of_event.clear();
        let own: SizeMoments = event.fragments.iter().map(|fragment| fragment.bytes.len() as u64).collect();
        for fragment in &event.fragments {
            let size = fragment.bytes.len() as u64;
            self.fragment_bytes.add(size);
            // A source with several fragments in an event counts once, with their sum.
            *self.of_event.entry(fragment.source).or_default() += size;
        }
        for (&source, &size) in &self.of_event {
            self.sources.entry(source).or_default().add(size);
        }
        self.fragments_per_event.add(own.count);
        self.event_bytes.add(own.total);
        self.within += own.squares;
        if own.total > 0 {
            let log = (own.total as f64).ln();
            self.log_sum += log;
            self.log_squares += log * log;
            self.log_count += 1.0;
        }
    }

    /// Makes the summary of all events added.
    pub fn finish(self, format: Format) -> FileSummary {
        let log_mean = self.log_sum / self.log_count.max(1.0);
        let log_variance = (self.log_squares / self.log_count.max(1.0) - log_mean * log_mean).max(0.0);
        let sources = self.sources.into_iter();
        FileSummary {
            format,
            events: self.event_bytes.count,
            runs: self.runs.into_iter().collect(),
            l1_ids: self.l1_ids,
            fragments_per_event: self.fragments_per_event,
            event_bytes: self.event_bytes,
            fragment_bytes: self.fragment_bytes,
            sources: sources.map(|(source, bytes)| SourceSummary { source, bytes }).collect(),
            spread: SizeSpread {
                sigma: log_variance.sqrt(),
                fragment_sd: (self.within / self.fragment_bytes.count.max(1) as f64).sqrt(),
            },
        }
    }
}

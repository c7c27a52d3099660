//! The files that the processes of background traffic write, and the figures computed from them.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use fanin_report::{BackgroundFigures, FlowRow, times};
use fanin_scenario::{BackgroundKind, Scenario};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::config::{pairs, source_hosts};
use super::error::BackgroundError;
use crate::barrier::TcpCounts;

/// Returns the name of the file with a sink's [`SinkResult`].
pub(super) fn sink_file(collector: u16) -> String {
    format!("sink-{collector}.json")
}

/// Returns the name of the file with a source's [`SourceResult`].
pub(super) fn source_file(readout: u16) -> String {
    format!("source-{readout}.json")
}

/// Returns the time in microseconds since 1970.
pub(super) fn unix_us() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |time| time.as_micros() as u64)
}

/// The received bytes of a connection over time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceivedSeries {
    /// The connection's number among all background connections.
    pub connection: u64,
    /// Time in microseconds since 1970, and bytes received until then.
    pub samples: Vec<(u64, u64)>,
}

/// The traffic that a sink received.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SinkResult {
    /// One series for each connection.
    pub received: Vec<ReceivedSeries>,
    /// For each complete transfer: when it was due and when it was complete, in nanoseconds since 1970.
    pub transfers: Vec<(u64, u64)>,
}

/// A connection of a source, at its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceFlow {
    /// The connection's number among all background connections.
    pub connection: u64,
    /// The collector to which it leads.
    pub collector: u32,
    /// The kernel's counters.
    pub info: TcpCounts,
}

/// The counters of a source's connections.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SourceResult {
    /// Samples: time in microseconds since 1970, then the sums of segments, retransmissions and timeouts.
    pub counts: Vec<[u64; 4]>,
    /// The source's connections, with their counters at the end.
    pub flows: Vec<SourceFlow>,
    /// Transfers that were not sent, because too many waited.
    pub skipped: u64,
}

/// The results of all processes.
#[derive(Debug, Clone, Default)]
pub struct BackgroundResult {
    sinks: Vec<SinkResult>,
    sources: Vec<(u16, SourceResult)>,
    has_ends: bool,
}

/// Reads the results of a run's background traffic from its folder.
///
/// # Errors
/// If a file is missing or invalid.
pub fn read_result(folder: &Path, scenario: &Scenario) -> Result<BackgroundResult, BackgroundError> {
    let collectors = scenario.background_connections() / u64::from(scenario.background.connections.max(1));
    let sinks = (0..collectors as u16).map(|collector| read(&folder.join(sink_file(collector))));
    let sources = source_hosts(&pairs(scenario)?).into_iter();
    let sources = sources.map(|readout| Ok((readout, read(&folder.join(source_file(readout)))?)));
    Ok(BackgroundResult {
        sinks: sinks.collect::<Result<_, BackgroundError>>()?,
        sources: sources.collect::<Result<_, BackgroundError>>()?,
        has_ends: scenario.background.kind == BackgroundKind::Transfers,
    })
}

impl BackgroundResult {
    /// Computes the figures from `from` until `until`, in microseconds since 1970. `scale` is that of the run: figures are
    /// converted back to the scenario's rates.
    pub fn figures(&self, from: u64, until: u64, scale: f64) -> BackgroundFigures {
        let seconds = until.saturating_sub(from) as f64 / 1e6 * scale;
        let series: Vec<_> = self.sinks.iter().flat_map(|sink| &sink.received).collect();
        let mut figures = BackgroundFigures { connections: Some(series.len() as u64), ..Default::default() };
        if seconds > 0.0 {
            let bps = |one: &&ReceivedSeries| {
                (bytes_at(&one.samples, until) - bytes_at(&one.samples, from)) * 8.0 / seconds
            };
            figures.fill_goodput(series.iter().map(bps));
        }
        let at = |place: usize| {
            let counts = self.sources.iter().map(|(_, source)| {
                // Counters of the drain count, as in a simulation.
                let before = source.counts.iter().rfind(|sample| sample[0] <= from).or(source.counts.first());
                let last = source.counts.last().map_or(0, |sample| sample[place]);
                last - before.map_or(0, |sample| sample[place])
            });
            Some(counts.sum::<u64>())
        };
        (figures.segments, figures.retransmits, figures.timeouts) = (at(1), at(2), at(3));
        if self.has_ends {
            let ended = self.sinks.iter().flat_map(|sink| &sink.transfers);
            let ended = ended.filter(|(_, at)| (from..until).contains(&(at / 1_000)));
            let time = |&(began, at): &(u64, u64)| ((at.saturating_sub(began)) as f64 * 1e3 * scale) as u64;
            figures.transfers = Some(ended.clone().count() as u64);
            figures.transfer_ms = times(ended.map(time), []);
        }
        figures
    }

    /// Returns a row for each connection. `first` is the number of the first background connection.
    pub fn flows(&self, first: u64) -> Vec<FlowRow> {
        let row = |(readout, flow): (u16, &SourceFlow)| FlowRow {
            flow: first + flow.connection,
            source: Arc::from(format!("readout:{readout}")),
            destination: Arc::from(format!("collector:{}", flow.collector)),
            acked_bytes: flow.info.acked_bytes,
            segments: flow.info.segments,
            retransmits: flow.info.retransmits,
            timeouts: Some(flow.info.timeouts),
            fast_retransmits: None,
            spurious_retransmits: Some(flow.info.duplicates),
            cwnd_packets_max: None,
            rtt_min_ps: flow.info.rtt_min_us.map(|us| us * 1_000_000),
            rtt_smoothed_ps: Some(flow.info.rtt_us * 1_000_000),
        };
        let flows = self
            .sources
            .iter()
            .flat_map(|(readout, source)| source.flows.iter().map(move |flow| (*readout, flow)));
        let mut rows: Vec<FlowRow> = flows.map(row).collect();
        rows.sort_by_key(|row| row.flow);
        rows
    }

    /// Transfers that sources did not send, because too many waited.
    pub fn skipped(&self) -> u64 {
        self.sources.iter().map(|(_, source)| source.skipped).sum()
    }
}

/// Returns the bytes received until a time, by linear interpolation between samples.
fn bytes_at(samples: &[(u64, u64)], at: u64) -> f64 {
    let next = samples.partition_point(|&(time, _)| time <= at);
    match (next.checked_sub(1).map(|last| samples[last]), samples.get(next)) {
        (None, _) => 0.0,
        (Some((_, bytes)), None) => bytes as f64,
        (Some((time, bytes)), Some(&(later, more))) => {
            let share = (at - time) as f64 / (later - time).max(1) as f64;
            bytes as f64 + share * (more - bytes) as f64
        }
    }
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<T, BackgroundError> {
    let bytes = fs::read(path).map_err(|source| BackgroundError::file(path, source))?;
    serde_json::from_slice(&bytes)
        .map_err(|error| BackgroundError::Garbled { path: path.to_owned(), text: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_cover_the_measured_time_at_the_scenario_s_rates() {
        let series = |connection, rate: u64| ReceivedSeries {
            connection,
            samples: (0..=100).map(|place| (1_000_000 + place * 20_000, place * 20_000 * rate)).collect(),
        };
        let sink = SinkResult {
            received: vec![series(0, 10), series(1, 30)],
            // One ends within the measured second, after 4 ms.
            transfers: vec![(1_500_000_000, 1_600_000_000), (2_100_000_000, 2_104_000_000)],
        };
        let counts =
            (0..20).map(|place| [1_000_000 + place * 100_000, place * 100, place, place / 5]).collect();
        let source = SourceResult { counts, ..SourceResult::default() };
        let result = BackgroundResult { sinks: vec![sink], sources: vec![(3, source)], has_ends: true };
        // The run had a tenth of the scenario's rates: 80 and 240 Mb/s stand for 0.8 and 2.4 Gb/s.
        let figures = result.figures(2_005_000, 2_505_000, 0.1);
        let near = |value: Option<f64>, wanted: f64| (value.unwrap() / wanted - 1.0).abs() < 1e-9;
        assert!(near(figures.goodput_bps, 3.2e9) && near(figures.goodput_bps_min, 0.8e9), "{figures:?}");
        assert_eq!((figures.connections, figures.transfers), (Some(2), Some(1)));
        assert!(near(Some(figures.transfer_ms.unwrap().mean), 0.4));
        assert_eq!((figures.segments, figures.retransmits, figures.timeouts), (Some(900), Some(9), Some(1)));
    }
}

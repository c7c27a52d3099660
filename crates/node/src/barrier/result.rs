//! The files that the processes of a barrier workload write, and the figures computed from them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use fanin_report::{EventOutcome, EventRow, FlowRow, TcpFigures, WindowRow};
use fanin_scenario::{Scenario, role_configs};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::counts::TcpCounts;
use super::error::BarrierError;
use crate::trace::windows;

/// Name of the file that the aggregator writes when the first round begins.
pub(super) const STARTED_FILE: &str = "aggregator.started";
/// Name of the file with an [`AggregatorResult`].
pub(super) const AGGREGATOR_FILE: &str = "aggregator.json";

/// Returns the name of the file with a sender's [`SenderResult`].
pub(super) fn sender_file(index: u64) -> String {
    format!("sender-{index}.json")
}

/// The rounds of an aggregator.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AggregatorResult {
    /// Start of the first round, in microseconds since 1970.
    pub start_unix_us: u64,
    /// Start and end of each completed round, picoseconds since `start_unix_us`.
    pub rounds: Vec<(u64, u64)>,
}

/// The kernel's TCP counters of a sender's connection.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SenderResult {
    /// Counts since the first measured round.
    pub info: TcpCounts,
    /// Rounds with retransmission timeouts, warm-up included, and the number of timeouts in each.
    pub timeouts: Vec<(u64, u64)>,
}

/// The figures of a run of a barrier workload.
#[derive(Debug, Clone, Default)]
pub struct BarrierResult {
    /// One row for each completed round; its times are picoseconds since `start_unix_us`. Its timeouts are absent if the
    /// figures of a sender are missing.
    pub rows: Vec<EventRow>,
    /// One row for each sender, over the measured rounds.
    pub flows: Vec<FlowRow>,
    /// Congestion windows of the connections that `record.windows` names.
    pub windows: Vec<WindowRow>,
    /// Sums over all connections; counters that the kernel lacks are absent. `None` if the figures of a sender are missing.
    pub tcp: Option<TcpFigures>,
    /// Start of the first round, in microseconds since 1970.
    pub start_unix_us: u64,
}

/// Reads the results of a run from its folder.
///
/// # Errors
/// If a file is missing or invalid.
pub fn read_result(folder: &Path, scenario: &Scenario) -> Result<BarrierResult, BarrierError> {
    let rounds: AggregatorResult = read(&folder.join(AGGREGATOR_FILE))?;
    let senders = scenario.workload.senders;
    let block = role_configs::request_size(scenario).block(senders).get();
    let mut timeouts: BTreeMap<u64, u64> = BTreeMap::new();
    let mut flows = Vec::new();
    for index in 0..u64::from(senders) {
        let file = folder.join(sender_file(index));
        // A sender that was killed after the end of the network has no result.
        if !file.exists() {
            continue;
        }
        let sent: SenderResult = read(&file)?;
        for (round, count) in sent.timeouts {
            *timeouts.entry(round).or_default() += count;
        }
        flows.push(FlowRow {
            flow: index,
            source: Arc::from(format!("readout:{index}")),
            destination: Arc::from("collector:0"),
            acked_bytes: sent.info.acked_bytes,
            segments: sent.info.segments,
            retransmits: sent.info.retransmits,
            timeouts: Some(sent.info.timeouts),
            fast_retransmits: None,
            spurious_retransmits: Some(sent.info.duplicates),
            cwnd_packets_max: None,
            rtt_min_ps: sent.info.rtt_min_us.map(|us| us * 1_000_000),
            rtt_smoothed_ps: Some(sent.info.rtt_us * 1_000_000),
        });
    }
    let is_whole = flows.len() as u64 == u64::from(senders);
    let tcp = is_whole.then(|| fanin_report::tcp(&flows));
    let row = |(round, &(start, end)): (u64, &(u64, u64))| EventRow {
        id: round,
        size_bytes: block,
        assigned_ps: start,
        first_request_ps: Some(start),
        last_byte_ps: Some(end),
        collection_time_ps: Some(end - start),
        timeouts: is_whole.then(|| timeouts.get(&round).copied().unwrap_or_default()),
        outcome: EventOutcome::Collected,
        ..EventRow::default()
    };
    let rows = (0..).zip(&rounds.rounds).map(row).collect();
    let start_unix_us = rounds.start_unix_us;
    Ok(BarrierResult { rows, flows, windows: windows(folder, start_unix_us)?, tcp, start_unix_us })
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<T, BarrierError> {
    let bytes = fs::read(path).map_err(|source| BarrierError::file(path, source))?;
    serde_json::from_slice(&bytes)
        .map_err(|error| BarrierError::Garbled { path: path.to_owned(), text: error.to_string() })
}

#[cfg(test)]
mod tests {
    use fanin_report::{Span, Summary};
    use fanin_scenario::Scenario;
    use fanin_units::Instant;

    use super::*;

    #[test]
    fn timeouts_are_unknown_without_the_figures_of_a_sender() {
        let folder = std::env::temp_dir().join(format!("fanin-barrier-result-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let write = |file: &str, text: String| fs::write(folder.join(file), text).unwrap();
        let rounds = AggregatorResult { start_unix_us: 7, rounds: vec![(0, 10), (10, 30)] };
        write(AGGREGATOR_FILE, serde_json::to_string(&rounds).unwrap());
        let mut scenario = Scenario::default();
        scenario.workload.senders = 2;
        let timeouts = || {
            let rows = read_result(&folder, &scenario).unwrap().rows;
            let mut summary = Summary::new(fanin_report::ResultKind::Run, "0", Default::default());
            let span = Span { from: Instant::new(0), until: Instant::new(100) };
            summary.fill_requests(&rows, span, 1);
            let each: Vec<Option<u64>> = rows.iter().map(|row| row.timeouts).collect();
            (each, summary.requests.unwrap().timeouts_mean)
        };
        let sent =
            |timeouts| serde_json::to_string(&SenderResult { timeouts, ..SenderResult::default() }).unwrap();
        write(&sender_file(0), sent(vec![(1, 3)]));
        assert_eq!(timeouts(), (vec![None, None], None));
        write(&sender_file(1), sent(Vec::new()));
        assert_eq!(timeouts(), (vec![Some(0), Some(3)], Some(1.5)));
        fs::remove_dir_all(&folder).unwrap();
    }
}

//! Reads TCP's counters of all processes of a run from their files.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fanin_dataflow::ShareCounters;
use fanin_report::{FlowRow, Summary, TcpFigures};
use serde_json::json;

use super::format::{END, EXTENSION, HEADER, SHARED};
use super::sums::{Sums, add};
use crate::flows::Numbers;
use crate::names::peer;
use crate::transport::Fitted;

/// TCP's counters of all processes of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counted {
    /// One row for each direction between two processes that carried data, over all their connections.
    pub rows: Vec<FlowRow>,
    /// Segments that arrived marked with congestion experienced (CE).
    pub delivered_ce: u64,
    /// Number of processes' incarnations that ended abruptly. The rows lack the counts of their last second.
    pub cut: u64,
    /// Counters of shared receiver windows: the maxima over all receivers, and the sum of late answers. `None` if no window
    /// was shared.
    pub shared: Option<ShareCounters>,
}

/// Errors of reading a run's counters.
#[derive(Debug, thiserror::Error)]
pub enum CountedError {
    /// A file cannot be read.
    #[error("{}: {error}", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// A line is invalid.
    #[error("{}, line {line}: {text:?} is not a line of TCP counts", path.display())]
    Line {
        /// Path of the file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// The first 200 characters of the line.
        text: String,
    },
}

/// Reads the counters that the processes of a run left in its folder. `numbers` numbers the connections.
///
/// # Errors
/// [`CountedError`].
pub fn counted(folder: &Path, numbers: &Numbers) -> Result<Counted, CountedError> {
    counted_in(&[folder], Some(numbers))
}

/// Reads the counters that the processes of a run left in the folders of several hosts. Without `numbers`, connections are
/// numbered by the processes that the counters name.
///
/// # Errors
/// [`CountedError`].
pub fn counted_in(folders: &[&Path], numbers: Option<&Numbers>) -> Result<Counted, CountedError> {
    let mut flows: BTreeMap<(String, String), Sums> = BTreeMap::new();
    let mut counted = Counted::default();
    for folder in folders {
        read_folder(folder, &mut flows, &mut counted)?;
    }
    let names = flows.keys().flat_map(|(source, destination)| [source, destination]);
    let numbers =
        numbers.copied().unwrap_or_else(|| Numbers::of_processes(names.filter_map(|name| peer(name))));
    counted.add_rows(flows, &numbers);
    Ok(counted)
}

/// Adds the counters of one folder.
fn read_folder(
    folder: &Path,
    flows: &mut BTreeMap<(String, String), Sums>,
    counted: &mut Counted,
) -> Result<(), CountedError> {
    let fail = |path: &Path| {
        let path = path.to_owned();
        move |error| CountedError::Io { path, error }
    };
    for entry in std::fs::read_dir(folder).map_err(fail(folder))? {
        let path = entry.map_err(fail(folder))?.path();
        let Some(process) = path.file_stem().and_then(|stem| stem.to_str()) else { continue };
        if path.extension().is_none_or(|extension| extension != EXTENSION) {
            continue;
        }
        let text = std::fs::read_to_string(&path).map_err(fail(&path))?;
        let (mut incarnations, mut ends) = (0, 0);
        for (number, line) in text.lines().enumerate() {
            if line.starts_with(HEADER) {
                incarnations += 1;
                continue;
            }
            if line == END {
                ends += 1;
                continue;
            }
            if let Some(shared) = line.strip_prefix(SHARED) {
                let mut numbers = shared.split_whitespace().map_while(|number| number.parse::<u64>().ok());
                let mut next = || numbers.next().unwrap_or_default();
                let all = counted.shared.get_or_insert_default();
                all.granted_max = all.granted_max.max(next() as u32);
                all.senders_max = all.senders_max.max(next() as u32);
                all.late += next();
                continue;
            }
            let mut words = line.split(' ');
            let peer = words.next().unwrap_or_default();
            let sums = Sums::parse(words).ok_or_else(|| CountedError::Line {
                path: path.clone(),
                line: number + 1,
                text: line.chars().take(200).collect(),
            })?;
            let flow = flows.entry((process.to_owned(), peer.to_owned())).or_default();
            *flow = if flow.connections == 0 { sums } else { add(*flow, sums) };
        }
        counted.cut += incarnations - ends.min(incarnations);
    }
    Ok(())
}

impl Counted {
    fn add_rows(&mut self, flows: BTreeMap<(String, String), Sums>, numbers: &Numbers) {
        // Connections without a number, of roles that have none in common, get numbers after all others.
        let mut others: BTreeMap<(String, String), u64> = BTreeMap::new();
        for ((source, destination), sums) in flows.into_iter().filter(|(_, sums)| sums.segments > 0) {
            let known = peer(&source).zip(peer(&destination));
            let flow = known.and_then(|(one, other)| numbers.of_pair(one, other)).unwrap_or_else(|| {
                let mut pair = [source.clone(), destination.clone()];
                pair.sort();
                let [one, other] = pair;
                let next = numbers.all() + others.len() as u64;
                *others.entry((one, other)).or_insert(next)
            });
            let some = |value: u64| (value > 0).then(|| value.saturating_mul(1000));
            self.delivered_ce += sums.delivered_ce;
            self.rows.push(FlowRow {
                flow,
                source: Arc::from(source),
                destination: Arc::from(destination),
                acked_bytes: sums.acked_bytes,
                segments: sums.segments,
                retransmits: sums.retransmits,
                timeouts: sums.timeouts,
                // The kernel does not count fast retransmissions by connection.
                fast_retransmits: None,
                spurious_retransmits: Some(sums.duplicates),
                cwnd_packets_max: Some(sums.cwnd_max),
                rtt_min_ps: some(sums.rtt_min_ns),
                rtt_smoothed_ps: some(sums.rtt_ns),
            });
        }
        self.rows.sort_by_key(|row| row.flow);
    }

    /// Returns the sums for a summary; `None` without rows.
    pub fn summary(&self) -> Option<TcpFigures> {
        (!self.rows.is_empty()).then(|| fanin_report::tcp(&self.rows))
    }

    /// Adds the counters and the socket options to a summary: `tcp`, `techniques.transport`, and `techniques.diatcp` if a
    /// window was shared.
    pub fn fill(&self, summary: &mut Summary, fitted: &Fitted) {
        summary.tcp = self.summary();
        let socket = &fitted.socket;
        let mut transport = serde_json::Map::new();
        let mut add = |key: &str, value| drop(transport.insert(key.to_owned(), value));
        if let Some(name) = &socket.congestion_control {
            add("congestion_control", json!(name));
        }
        if let Some(time) = socket.rto_min {
            add("rto_min_ms", json!(time.as_secs_f64() * 1e3));
        }
        if !fitted.unmet.is_empty() {
            add("not_in_force", json!(fitted.unmet.join("; ")));
        }
        if self.delivered_ce > 0 {
            add("delivered_ce", json!(self.delivered_ce));
        }
        if self.cut > 0 {
            add("processes_cut_short", json!(self.cut));
        }
        summary.techniques.insert("transport".to_owned(), transport.into());
        if let Some(ShareCounters { granted_max, senders_max, late }) = self.shared {
            let figures = json!({"granted_segments_max": granted_max, "senders_max": senders_max, "answers_late": late});
            summary.techniques.insert("diatcp".to_owned(), figures);
        }
    }

    /// Returns lines for a terminal: the settings that are not in force, and the number of processes cut short.
    pub fn notes(&self, fitted: &Fitted) -> String {
        let mut text = String::new();
        if !fitted.unmet.is_empty() {
            let _ = writeln!(text, "{:<18}not in force: {}", "transport", fitted.unmet.join("; "));
        }
        if self.cut > 0 {
            let _ = writeln!(
                text,
                "{:<18}{} processes were cut short: their TCP figures lack up to a second",
                "", self.cut
            );
        }
        text
    }
}

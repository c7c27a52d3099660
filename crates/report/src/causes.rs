//! The causes of bad figures: outputs that lose frames or fill up, the slowest event, and more events than the system handles.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

use crate::{FlowRow, LateCause, LateEvent};

/// A switch's output that lost frames or filled up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PortFigures {
    /// Name of the port, such as `tor:0->collector:3`.
    pub name: String,
    /// Frames refused while measuring.
    pub drops: u64,
    /// Bytes of the dropped frames on the wire; absent where they are not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dropped_bytes: Option<u64>,
    /// The most bytes that waited; of an output with rings, in one ring.
    pub queue_bytes_max: u64,
    /// The most bytes that the output may hold while all other outputs are empty; absent without a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_bytes: Option<u64>,
    /// Bytes that waited at the first refusal, if fewer than the limit. In a shared memory the limit falls as other outputs
    /// fill it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_drop_limit_bytes: Option<u64>,
    /// Share of its link's rate that the output carried in the measured time, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub utilisation: Option<f64>,
    /// First refusal, in milliseconds since the run began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_drop_ms: Option<f64>,
    /// Last refusal, in milliseconds since the run began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_drop_ms: Option<f64>,
    /// Hosts that sent the refused frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sources_total: Option<u64>,
    /// The hosts that lost the most frames, at most five.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<SourceDrops>,
    /// The summary's `late`, if this output delayed that event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late: Option<LateSummary>,
}

/// A host that lost frames.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceDrops {
    /// Name of the host.
    pub name: String,
    /// Frames of the host that were refused.
    pub drops: u64,
}

/// A connection whose data waited for timers or were sent again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConnectionFigures {
    /// Name of the connection, such as `readout:43->collector:0`.
    pub name: String,
    /// Retransmission timeouts in the whole run; absent where they are not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeouts: Option<u64>,
    /// Segments sent again in the whole run.
    pub retransmits: u64,
}

/// Connections that a summary names.
const CONNECTIONS_MAX: usize = 5;

/// Returns the connections with the most timeouts, or with the most retransmissions where timeouts are not counted: at most
/// five, worst first.
pub fn worst_connections(rows: &[FlowRow]) -> Vec<ConnectionFigures> {
    // Where timeouts are not counted, retransmissions stand for them.
    let waited = |row: &&FlowRow| row.timeouts.unwrap_or(row.retransmits) > 0;
    let mut rows: Vec<&FlowRow> = rows.iter().filter(waited).collect();
    rows.sort_by_key(|row| (Reverse(row.timeouts), Reverse(row.retransmits), row.flow));
    rows.into_iter()
        .take(CONNECTIONS_MAX)
        .map(|row| ConnectionFigures {
            name: format!("{}->{}", row.source, row.destination),
            timeouts: row.timeouts,
            retransmits: row.retransmits,
        })
        .collect()
}

/// A late event and why it was late.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LateSummary {
    /// Identifier of the event.
    pub event: u64,
    /// Collection time of the event in milliseconds.
    pub time_ms: f64,
    /// The causes as a sentence.
    pub text: String,
    /// The causes, link by link.
    pub chain: Vec<LateCause>,
    /// Share of its time that its own data and the causes explain, 0 to 1; absent for an event in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explained: Option<f64>,
}

impl LateSummary {
    /// Makes the summary's part of a late event.
    pub fn of(late: &LateEvent) -> Self {
        Self {
            event: late.id,
            time_ms: late.time_ps as f64 / PS_PER_MS,
            text: late.text.clone(),
            chain: late.chain.clone(),
            explained: late.explained,
        }
    }
}

/// Picoseconds in a millisecond.
const PS_PER_MS: f64 = 1e9;

/// Losses before the measured time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WarmupLosses {
    /// Frames that switches dropped.
    pub drops: u64,
    /// Retransmission timers that expired.
    pub timeouts: u64,
}

/// More events than the system handles.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Overload {
    /// Events a second that `supervisor.rate` asks for.
    pub wanted_hz: f64,
    /// Events assigned a second of the measured time.
    pub assigned_hz: f64,
    /// `link`, `losses`, `credits` or `units`; absent if the cause is none of them. The losses may be those
    /// of the warm-up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// The overload and its cause in one sentence.
    pub text: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_connections_that_waited_longest_come_first() {
        let row = |flow, timeouts, retransmits| FlowRow {
            flow,
            source: format!("readout:{flow}").into(),
            destination: "collector:0".into(),
            timeouts,
            retransmits,
            ..FlowRow::default()
        };
        let rows = [
            row(0, Some(0), 0),
            row(1, Some(0), 9),
            row(2, Some(2), 3),
            row(3, Some(2), 4),
            row(4, Some(1), 1),
            row(5, Some(0), 1),
            row(6, Some(0), 1),
        ];
        let worst = worst_connections(&rows);
        let names: Vec<&str> = worst.iter().map(|one| &*one.name).collect();
        let expected = [3, 2, 4].map(|flow| format!("readout:{flow}->collector:0"));
        assert_eq!(names, expected);
        assert_eq!((worst[0].timeouts, worst[0].retransmits), (Some(2), 4));
        assert!(worst_connections(&rows[..2]).is_empty(), "fast retransmits hardly wait");
        assert_eq!(worst_connections(&[row(7, None, 1), row(8, None, 0)]).len(), 1);
        let many: Vec<FlowRow> = (0..9).map(|flow| row(flow, Some(1), 1)).collect();
        assert_eq!(worst_connections(&many).len(), 5);
    }
}

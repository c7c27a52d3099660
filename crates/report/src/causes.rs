//! The causes of bad figures: outputs that lose frames or fill up, the latest event, and more events than the system handles.

use serde::{Deserialize, Serialize};

use std::cmp::Reverse;

use crate::{FlowRow, LateCause, LateEvent, Summary};

/// A switch's output that lost frames or filled up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PortFigures {
    /// Its name, such as `tor:0->collector:3`.
    pub name: String,
    /// Frames refused while measuring.
    pub drops: u64,
    /// Their bytes on the wire; absent where they are not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dropped_bytes: Option<u64>,
    /// The most bytes that waited; of an output with rings, in one ring.
    pub queue_bytes_max: u64,
    /// The most bytes it may hold while all other outputs are empty; absent without a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_bytes: Option<u64>,
    /// Share of its link's rate that it carried while measuring, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub utilisation: Option<f64>,
    /// When it refused a frame first, in milliseconds since the run began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_drop_ms: Option<f64>,
    /// When it refused a frame last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_drop_ms: Option<f64>,
    /// Hosts whose frames it refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sources_total: Option<u64>,
    /// Those that lost most, at most five.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<SourceDrops>,
    /// The same as the summary's `late`, where this output held that event up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late: Option<LateSummary>,
}

/// A host that lost frames.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceDrops {
    /// Name of the host.
    pub name: String,
    /// Its frames that were refused.
    pub drops: u64,
}

/// A connection whose data waited for timers, or were sent again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConnectionFigures {
    /// Its name, such as `readout:43->collector:0`.
    pub name: String,
    /// Retransmission timeouts in the whole run; absent where they are not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeouts: Option<u64>,
    /// Segments sent again.
    pub retransmits: u64,
}

/// Connections that a summary names.
const CONNECTIONS_MAX: usize = 5;

/// The connections that timed out most, or sent most again where timeouts are not counted: at most five, worst first.
pub fn worst_connections(rows: &[FlowRow]) -> Vec<ConnectionFigures> {
    // Where timeouts are not counted, segments that were sent again are the sign of them.
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
    /// Its collection time in milliseconds.
    pub time_ms: f64,
    /// Why, as a sentence.
    pub text: String,
    /// Why, link by link.
    pub chain: Vec<LateCause>,
}

impl LateSummary {
    /// The part of a late event that a summary holds.
    pub fn of(late: &LateEvent) -> Self {
        Self {
            event: late.id,
            time_ms: late.time_ps as f64 / PS_PER_MS,
            text: late.text.clone(),
            chain: late.chain.clone(),
        }
    }
}

/// Picoseconds in a millisecond.
const PS_PER_MS: f64 = 1e9;

/// More events than the system handles.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Overload {
    /// Events a second that `supervisor.rate` asks for.
    pub wanted_hz: f64,
    /// Events assigned a second of the measured time.
    pub assigned_hz: f64,
    /// `link`, `losses`, `credits` or `units`; absent where none of them is known to be the cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// The same as a sentence.
    pub text: String,
}

/// The events that a scenario asks for, and the units that take them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WantedEvents {
    /// Events a second.
    pub rate_hz: f64,
    /// True if they come at random times.
    pub is_random: bool,
    /// Processing units, each of which takes one event at a time.
    pub units: u64,
    /// Mean time for which a unit works on a collected event, in milliseconds.
    pub processing_ms: f64,
}

/// A smaller share of the wanted events that is missing says nothing.
const SHARE_MISSING: f64 = 0.05;
/// Standard deviations of a Poisson process, within which fewer events are chance.
const DEVIATIONS: f64 = 4.0;
/// From this share of its rate on a link is full.
const LINK_FULL: f64 = 0.95;

impl Summary {
    /// Fills `overload` if clearly fewer events were assigned than `wanted`, after all figures that may be its cause. A
    /// measurement that marks itself invalid says so in its own words.
    pub fn fill_overload(&mut self, wanted: &WantedEvents) {
        self.overload = None;
        let (Some(events), Some(seconds)) = (&self.events, self.duration_s) else { return };
        let expected = wanted.rate_hz * seconds;
        let chance = if wanted.is_random { DEVIATIONS * expected.sqrt() } else { 2.0 };
        if expected - events.assigned as f64 <= chance.max(SHARE_MISSING * expected)
            || self.invalid().is_some()
        {
            return;
        }
        let assigned_hz = events.assigned as f64 / seconds;
        let (cause, why) = self.overload_cause(wanted, assigned_hz).unzip();
        let hertz = crate::page::significant;
        self.overload = Some(Overload {
            wanted_hz: wanted.rate_hz,
            assigned_hz,
            cause: cause.map(str::to_owned),
            text: format!(
                "The system does not keep up: supervisor.rate asks for {} events a second, {} were assigned{}.",
                hertz(wanted.rate_hz),
                hertz(assigned_hz),
                why.map_or_else(String::new, |why| format!("; {why}"))
            ),
        });
    }

    /// The cause of an overload by its name and as a clause.
    fn overload_cause(&self, wanted: &WantedEvents, assigned_hz: f64) -> Option<(&'static str, String)> {
        let ms = |ms: f64| format!("{} ms", crate::page::significant(ms));
        let load = self.load.as_ref();
        let links = [
            ("between switches", load.and_then(|load| load.uplink)),
            ("into a collector", load.and_then(|load| load.last_hop)),
        ];
        for (link, share) in links {
            if let Some(share) = share.filter(|share| *share >= LINK_FULL) {
                return Some(("link", format!("the busiest link {link} is {:.1} % full", 100.0 * share)));
            }
        }
        let drops = self.network.as_ref().and_then(|network| network.drops).unwrap_or(0);
        let timeouts = self.tcp.as_ref().and_then(|tcp| tcp.timeouts).unwrap_or(0);
        if drops > 0 && timeouts > 0 {
            let text = format!("{drops} frames were dropped, and connections timed out {timeouts} times");
            return Some(("losses", text));
        }
        let collection_ms = self.collection_time_ms.as_ref()?.mean;
        let wait_ms = self.shaping.as_ref().and_then(|shaping| shaping.wait_ms_mean).unwrap_or(0.0);
        if wait_ms >= collection_ms / 2.0 {
            let text = format!("a request waits {} for credits, of {}", ms(wait_ms), ms(collection_ms));
            return Some(("credits", text + " for the whole collection"));
        }
        // Little's law: the units are all busy if they hold as many events.
        let held_ms = collection_ms + wanted.processing_ms;
        let busy = assigned_hz * held_ms / 1e3;
        (busy >= 0.8 * wanted.units as f64).then(|| {
            let units = wanted.units;
            let text = format!(
                "all {units} processing units are busy, {} with each event ({} to collect it)",
                ms(held_ms),
                ms(collection_ms)
            );
            ("units", text)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EventCounts, Load, Network, ResultKind, ScenarioName, Shaping, Tcp, Times};

    const WANTED: WantedEvents =
        WantedEvents { rate_hz: 1000.0, is_random: false, units: 100, processing_ms: 100.0 };

    /// A run of two seconds.
    fn summary(assigned: u64, collection_ms: f64) -> Summary {
        let mut summary = Summary::new(ResultKind::Sim, "1", ScenarioName::default());
        summary.duration_s = Some(2.0);
        summary.events = Some(EventCounts { assigned, ..EventCounts::default() });
        summary.collection_time_ms = Some(Times { mean: collection_ms, ..Times::default() });
        summary
    }

    fn overload(mut summary: Summary, wanted: WantedEvents) -> Option<Overload> {
        summary.fill_overload(&wanted);
        summary.overload
    }

    #[test]
    fn a_rate_that_is_reached_is_no_overload() {
        assert_eq!(overload(summary(1901, 10.0), WANTED), None);
        let found = overload(summary(1899, 10.0), WANTED).unwrap();
        assert_eq!((found.wanted_hz, found.assigned_hz), (1000.0, 949.5));
        // Of 100 random events 60 to 140 may come by chance.
        let random = WantedEvents { rate_hz: 50.0, is_random: true, ..WANTED };
        assert_eq!(overload(summary(61, 10.0), random), None);
        assert!(overload(summary(59, 10.0), random).is_some());
        // A run that is shorter than two periods says nothing.
        assert_eq!(overload(summary(0, 10.0), WantedEvents { rate_hz: 1.0, ..WANTED }), None);
    }

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

    #[test]
    fn the_cause_is_named() {
        let cause = |summary: Summary| {
            let found = overload(summary, WANTED).unwrap();
            (found.cause, found.text)
        };
        let busy = summary(1000, 100.0);
        let (name, text) = cause(busy.clone());
        assert_eq!(name.as_deref(), Some("units"));
        assert!(text.contains("all 100 processing units are busy, 200 ms with each event"), "{text}");
        let (name, text) = cause(summary(1000, 10.0));
        assert_eq!(name, None, "half of the units are idle");
        assert!(text.ends_with("500 were assigned."), "{text}");
        let mut waiting = busy.clone();
        waiting.shaping = Some(Shaping { wait_ms_mean: Some(60.0), ..Shaping::default() });
        let (name, text) = cause(waiting.clone());
        assert_eq!(name.as_deref(), Some("credits"));
        assert!(text.contains("waits 60 ms for credits, of 100 ms"), "{text}");
        let mut losing = waiting.clone();
        losing.network = Some(Network { drops: Some(7), ..Network::default() });
        losing.tcp = Some(Tcp { timeouts: Some(3), ..Tcp::default() });
        assert_eq!(cause(losing.clone()).0.as_deref(), Some("losses"));
        losing.load = Some(Load { uplink: Some(0.2), last_hop: Some(0.97) });
        let (name, text) = cause(losing);
        assert_eq!(name.as_deref(), Some("link"));
        assert!(text.contains("into a collector is 97.0 % full"), "{text}");
    }

    #[test]
    fn an_invalid_measurement_speaks_of_its_machine_alone() {
        let mut summary = summary(1000, 100.0);
        summary.machine = Some(crate::Machine { valid: Some(false), ..crate::Machine::default() });
        assert_eq!(overload(summary, WANTED), None);
    }
}

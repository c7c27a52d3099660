//! The summary: one JSON object with the figures of a plan, a simulation or a run.
//!
//! A key that does not apply is absent; it is never null and never an invented zero. Scripts outside of this project read these
//! names: they may be added to, but not renamed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::PlanSummary;
use crate::causes::{ConnectionFigures, LateSummary, Overload, PortFigures, WarmupLosses};

/// The schema that this crate writes and reads.
pub const SCHEMA: &str = "fanin.summary/1";

/// Origin of a result: plan, simulation or run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ResultKind {
    /// Computed by the planner.
    Plan,
    /// The packet-level simulation.
    Sim,
    /// The kernel's own TCP.
    Run,
}

impl ResultKind {
    /// Returns the word for a heading.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Sim => "simulation",
            Self::Run => "measurement",
        }
    }
}

/// The scenario that a result belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScenarioName {
    /// Name of the scenario.
    pub name: String,
    /// A digest of the resolved scenario: equal digests mean the same system.
    pub hash: String,
}

/// The measured part of a run, in picoseconds since the run began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasuredPeriod {
    /// First moment that counts.
    pub from: u64,
    /// First moment that no longer counts.
    pub until: u64,
}

/// The outcomes of the events that were assigned while measuring, and of those lost at any time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EventCounts {
    /// Number of events that were assigned to a collector.
    pub assigned: u64,
    /// Number of events of which a collector received every fragment.
    pub collected: u64,
    /// Number of events that a processing unit accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accepted: Option<u64>,
    /// Number of events that a processing unit rejected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejected: Option<u64>,
    /// Number of accepted events that a logger wrote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored: Option<u64>,
    /// Number of events that a logger wrote undecided, because a processing unit or a collector was lost; absent where none was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub debug: Option<u64>,
    /// Number of lost events, also in the warm-up or after the measured time. `assigned` counts them, too.
    pub lost: u64,
    /// Number of times that an event was collected once more than it should be.
    pub duplicated: u64,
    /// Mean number of retransmission timeouts that held an event up; absent where they cannot be known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeouts_mean: Option<f64>,
    /// Rate of collected events in the measured time, in hertz.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_hz: Option<f64>,
}

/// A distribution of times, in milliseconds; [`crate::quantile`] defines quantiles.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// Mean of the events' ideals. A simulation takes the mean response delay for each, as the thesis does (§4.2.2);
    /// `slowdown` takes each event's own delays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ideal: Option<f64>,
    /// Arithmetic mean of the values.
    pub mean: f64,
    /// Standard deviation (divided by n).
    pub std: f64,
    /// The smallest value.
    pub min: f64,
    /// 1 % are not larger.
    pub p01: f64,
    /// 25 % are not larger.
    pub p25: f64,
    /// Median of the values.
    pub p50: f64,
    /// 75 % are not larger.
    pub p75: f64,
    /// 90 % are not larger.
    pub p90: f64,
    /// 99 % are not larger.
    pub p99: f64,
    /// 99.9 % are not larger.
    pub p999: f64,
    /// The largest value.
    pub max: f64,
}

/// Mean and p99 of a figure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MeanP99 {
    /// The arithmetic mean.
    pub mean: f64,
    /// 99 % are not larger.
    pub p99: f64,
}

/// The times of a schedule of the measured collections, or bounds of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScheduleTimes {
    /// Collection or request times, in milliseconds.
    pub time_ms: MeanP99,
    /// Times over the events' own ideals.
    pub slowdown: MeanP99,
}

/// The bound under contention: collections that share a link cannot all reach their own ideals.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bound {
    /// Least value that any schedule of these collections reaches.
    #[serde(flatten)]
    pub least: ScheduleTimes,
    /// A schedule that knows every collection in advance reaches this.
    pub clairvoyant: ScheduleTimes,
}

/// Each event's collection time over its own exact wire ideal.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Slowdown {
    /// Arithmetic mean of the values.
    pub mean: f64,
    /// Median of the values.
    pub p50: f64,
    /// 99 % are not larger.
    pub p99: f64,
    /// The largest value.
    pub max: f64,
}

/// The rounds of a barrier-synchronised workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestCounts {
    /// Rounds with all answers received.
    pub completed: u64,
    /// Number of completed rounds within their deadline; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadlines_met: Option<u64>,
    /// Retransmission timeouts that held a round up, in the mean; absent where they cannot be known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeouts_mean: Option<f64>,
    /// Completion times of the rounds; absent where none completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<Times>,
}

/// Fragment bytes delivered a second, no headers counted, in bit/s.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Goodput {
    /// All collectors together.
    pub total: f64,
    /// The total divided by the number of collectors, idle ones included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_collector_mean: Option<f64>,
}

/// Declares a section of optional figures.
macro_rules! section {
    ($(#[$doc:meta])* $name:ident { $($(#[$about:meta])* $field:ident: $of:ty,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct $name {
            $($(#[$about])* #[serde(skip_serializing_if = "Option::is_none")] pub $field: Option<$of>,)*
        }
    };
}

section!(
    /// Shares of the wire rate, 0 to 1, everything on the wire counted.
    Load {
        /// The busiest link into a collector.
        last_hop: f64,
        /// The busiest link between switches.
        uplink: f64,
    }
);

section!(
    /// Counters of the network.
    NetworkFigures {
        /// Frames put on a link by their first sender.
        packets: u64,
        /// Bytes of the packets on the wire.
        bytes: u64,
        /// Bytes on the wire that collectors sent: requests, acknowledgements, credit, and events to store.
        reverse_bytes: u64,
        /// Frames refused by a full buffer, all switches.
        drops: u64,
        /// Frames that links lost at random; absent if no link loses frames.
        link_losses: u64,
        /// Frames marked with congestion experienced.
        ecn_marks: u64,
        /// PAUSE frames that stopped a sender.
        pauses: u64,
        /// The most bytes that waited in one queue.
        queue_bytes_max: u64,
        /// Share of the measured events or requests of which a switch dropped a frame, 0 to 1. A dropped frame counts for the
        /// first event of its connection whose answer is not complete.
        losing_share: f64,
    }
);

section!(
    /// Counters of the transport.
    TcpFigures {
        /// Segments with payload, retransmissions included.
        segments: u64,
        /// Segments sent again.
        retransmits: u64,
        /// Number of retransmission timeouts.
        timeouts: u64,
        /// Entries into fast recovery.
        fast_retransmits: u64,
        /// Retransmissions of data that had already arrived.
        spurious_retransmits: u64,
        /// Tail loss probes (RFC 8985 §7). One may wait as long as a timeout: with one segment in flight, Linux adds the minimum RTO.
        tail_loss_probes: u64,
    }
);

section!(
    /// Traffic of other applications over the same ports. No other section counts it, except for links, ports and switches.
    BackgroundFigures {
        /// Number of its connections.
        connections: u64,
        /// Payload bits a second that all of them delivered in the measured time.
        goodput_bps: f64,
        /// The same of the connection that delivered least.
        goodput_bps_min: f64,
        /// The same of the connection that delivered most.
        goodput_bps_max: f64,
        /// Transfers that ended in the measured time; absent for bulk data.
        transfers: u64,
        /// Times of the transfers, from when a transfer was due to its last byte.
        transfer_ms: Times,
        /// Segments with payload, retransmissions included.
        segments: u64,
        /// Segments sent again.
        retransmits: u64,
        /// Number of retransmission timeouts.
        timeouts: u64,
    }
);

section!(
    /// Application-level traffic shaping.
    ShapingFigures {
        /// Credits a collector may have outstanding, in fragments.
        credits: u64,
        /// Mean time a request waited for credits, in milliseconds.
        wait_ms_mean: f64,
    }
);

section!(
    /// The cost of the result; left out of comparisons, since it differs from machine to machine.
    Speed {
        /// Seconds by the clock.
        wall_s: f64,
        /// Seconds of processor time.
        cpu_s: f64,
        /// Each frame counted once for every link it was put on.
        packet_hops: u64,
        /// Packet-hops a second of processor time.
        packet_hops_per_cpu_s: f64,
        /// Wire bytes simulated a second of processor time.
        simulated_bytes_per_cpu_s: f64,
        /// Most memory held, in bytes.
        peak_rss_bytes: u64,
    }
);

section!(
    /// Load of the machine during a live run in its own network.
    MachineFigures {
        /// Share of the scenario's rates at which the system ran. All other figures are the scenario's again.
        scale: f64,
        /// True if the network, and not the machine, decided the figures.
        valid: bool,
        /// Reason why the figures are not valid.
        reason: String,
        /// Measured time by the clock, in seconds.
        run_s: f64,
        /// Bit/s of TCP payload that the switch and two hosts carried just before, as fast as they could.
        capacity_bps: f64,
        /// Microseconds by the clock of a path through one switch. They are subtracted from delays that are longer.
        own_delay_us: f64,
        /// Bit/s that the system asks of it at this scale, in each switch once.
        demand_bps: f64,
        /// Share of the switch's rounds that moved frames; of the busiest switch.
        switch_busy: f64,
        /// Processor time of the switch as a share of one core, polling included.
        switch_cpu: f64,
        /// Processor time of the rounds that moved frames, as a share of one core; of the switch with the most.
        switch_working: f64,
        /// Share of the time that it was ready to work and waited for a core.
        switch_wait: f64,
        /// The longest mean wait of any tenth of a second, in milliseconds: how late its shaper was.
        switch_late_ms: f64,
        /// Mean wait for a core each time that a switch was ready to work, in milliseconds.
        switch_late_mean_ms: f64,
        /// Mean time that a host's process was ready to work and waited for a core, in milliseconds.
        host_late_ms: f64,
        /// The same of the process that waited longest.
        host_late_worst_ms: f64,
        /// Share of all cores that was busy.
        cpu: f64,
        /// Share of all cores that a hypervisor gave to others.
        steal: f64,
        /// Frames lost because the machine did not keep up.
        frames_missed: u64,
        /// Attempts at larger scales before this one, and how the machine spoilt each.
        spoilt: Vec<String>,
    }
);

section!(
    /// The ideal: the least time and the greatest goodput that the wire allows.
    IdealFigures {
        /// Collection time of a mean event, in milliseconds.
        collection_time_ms: f64,
        /// Goodput of one collector's link, in bit/s.
        goodput_bps: f64,
        /// The formula with its numbers filled in.
        how: String,
    }
);

/// The summary of one result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Schema name, always [`SCHEMA`].
    pub schema: String,
    /// Origin of the result.
    pub kind: ResultKind,
    /// Version of Fanin.
    pub version: String,
    /// Commit it was built from, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The scenario's name and digest.
    pub scenario: ScenarioName,
    /// Name among the results of one command, such as the technique of `fanin compare`; absent where a folder's name serves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Seed of all randomness.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Measured time in seconds, the warm-up left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_s: Option<f64>,
    /// The stretch of the run that was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_ps: Option<MeasuredPeriod>,
    /// Events of an event-building workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<EventCounts>,
    /// Rounds of a barrier-synchronised workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<RequestCounts>,
    /// The data-collection time of an event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collection_time_ms: Option<Times>,
    /// Collection times over their ideals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slowdown: Option<Slowdown>,
    /// The least times that any schedule of the measured collections could reach; simulations only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
    /// Slowdown over that of `bound`: 1 is as good as any schedule can be. Times count from the assignment's arrival over idle
    /// links, also those of events that began in the warm-up and ended after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slowdown_bound: Option<MeanP99>,
    /// The same over the slowdown of `bound.clairvoyant`, which a schedule reaches; it is not always the best, so that a ratio may be
    /// below 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slowdown_clairvoyant: Option<MeanP99>,
    /// Outputs of switches that lost frames or filled up, worst first, at most five; absent where none did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<PortFigures>,
    /// Connections that timed out most, worst first, at most five; absent where none did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub connections: Vec<ConnectionFigures>,
    /// The slowest event of a simulation, and the chain of causes that made it late; absent where none was collected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<LateSummary>,
    /// The rate of events that the system does not keep up with; absent where it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overload: Option<Overload>,
    /// Losses and timeouts of the warm-up, which may hold up what is measured; absent where no frame was dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warmup: Option<WarmupLosses>,
    /// Fragment bytes delivered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goodput_bps: Option<Goodput>,
    /// Loads of the links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<Load>,
    /// Frames, drops, marks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkFigures>,
    /// Segments, retransmissions, timeouts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<TcpFigures>,
    /// Figures of the background traffic; absent without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<BackgroundFigures>,
    /// Figures of the credits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shaping: Option<ShapingFigures>,
    /// The cost of the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<Speed>,
    /// Load of the machine during a live run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineFigures>,
    /// The ideal: the least time and the greatest goodput that the wire allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ideal: Option<IdealFigures>,
    /// The planner's derivations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanSummary>,
    /// Figures of the technique in force, under its own key, and fields of later versions.
    #[serde(flatten)]
    pub techniques: BTreeMap<String, Value>,
}

/// A summary that cannot be written as JSON: some figure is not a number.
#[derive(Debug, thiserror::Error)]
#[error("the figure `{key}` of the summary is not a finite number")]
pub struct NotFinite {
    /// Dotted key of the figure.
    pub key: String,
}

impl Summary {
    /// Makes a summary without any figure.
    pub fn new(kind: ResultKind, version: impl Into<String>, scenario: ScenarioName) -> Self {
        Self {
            schema: SCHEMA.into(),
            kind,
            version: version.into(),
            commit: None,
            scenario,
            label: None,
            seed: None,
            duration_s: None,
            measured_ps: None,
            events: None,
            requests: None,
            collection_time_ms: None,
            slowdown: None,
            bound: None,
            slowdown_bound: None,
            slowdown_clairvoyant: None,
            ports: Vec::new(),
            connections: Vec::new(),
            late: None,
            overload: None,
            warmup: None,
            goodput_bps: None,
            load: None,
            network: None,
            tcp: None,
            background: None,
            shaping: None,
            speed: None,
            machine: None,
            ideal: None,
            plan: None,
            techniques: BTreeMap::new(),
        }
    }

    /// Returns the summary as a JSON tree.
    ///
    /// # Errors
    /// If a figure is infinite or not a number: JSON has no value for it.
    pub fn to_value(&self) -> Result<Value, NotFinite> {
        let tree = serde_json::to_value(self).expect("a summary has only text keys");
        match null_key(&tree) {
            Some(key) => Err(NotFinite { key }),
            None => Ok(tree),
        }
    }

    /// Returns the summary as JSON text, indented, with a line end.
    ///
    /// # Errors
    /// As for [`Self::to_value`].
    pub fn to_json(&self) -> Result<String, NotFinite> {
        let mut text = serde_json::to_string_pretty(&self.to_value()?).expect("a tree without odd keys");
        text.push('\n');
        Ok(text)
    }

    /// Returns the distribution by which the result is judged: collection times, or else round times.
    pub fn times(&self) -> Option<&Times> {
        self.collection_time_ms
            .as_ref()
            .or_else(|| self.requests.as_ref().and_then(|requests| requests.time_ms.as_ref()))
    }

    /// Returns the reason why the figures do not describe the network. A measurement marks itself invalid if the machine was
    /// its bottleneck. `None` if it does not.
    pub fn invalid(&self) -> Option<&str> {
        let machine = self.machine.as_ref().filter(|machine| machine.valid == Some(false))?;
        Some(machine.reason.as_deref().unwrap_or("the machine was the bottleneck"))
    }
}

/// Returns the dotted key of the first null in a tree.
fn null_key(tree: &Value) -> Option<String> {
    let join = |key: &str, rest: String| if rest.is_empty() { key.into() } else { format!("{key}.{rest}") };
    match tree {
        Value::Null => Some(String::new()),
        Value::Object(fields) => {
            fields.iter().find_map(|(key, value)| null_key(value).map(|rest| join(key, rest)))
        }
        Value::Array(items) => items
            .iter()
            .enumerate()
            .find_map(|(index, value)| null_key(value).map(|rest| join(&index.to_string(), rest))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_that_do_not_apply_are_absent() {
        let summary = Summary::new(
            ResultKind::Plan,
            "0.1.0",
            ScenarioName { name: "incast".into(), hash: "00ff".into() },
        );
        assert_eq!(
            serde_json::to_string(&summary).unwrap(),
            r#"{"schema":"fanin.summary/1","kind":"plan","version":"0.1.0","scenario":{"name":"incast","hash":"00ff"}}"#
        );
    }

    #[test]
    fn not_a_number_is_refused_by_name() {
        let mut summary = Summary::new(ResultKind::Sim, "0.1.0", ScenarioName::default());
        summary.goodput_bps = Some(Goodput { total: f64::NAN, per_collector_mean: None });
        assert_eq!(summary.to_json().unwrap_err().key, "goodput_bps.total");
        summary.goodput_bps = None;
        summary.techniques.insert("daqring".into(), serde_json::json!({"rings": [1, null]}));
        assert_eq!(summary.to_value().unwrap_err().key, "daqring.rings.1");
    }

    #[test]
    fn a_technique_keeps_its_own_key() {
        let mut summary = Summary::new(ResultKind::Sim, "0.1.0", ScenarioName::default());
        summary.techniques.insert("m21tcp".into(), serde_json::json!({"window_bytes_min": 1460}));
        let text = summary.to_json().unwrap();
        assert!(text.contains("\"m21tcp\": {"));
        assert_eq!(serde_json::from_str::<Summary>(&text).unwrap(), summary);
    }
}

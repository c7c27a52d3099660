//! Metrics of a process for Prometheus (`/metrics`), its health (`/healthz`) and its readiness (`/readyz`).

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use fanin_dataflow::{EventRecord, EventStep};
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

use crate::config::{COLLECTION_BUCKETS, PREDICTED_FIGURES, PredictedBands, PredictedUnit};
use crate::http::{self, HttpAnswer};
use crate::journal::{OUTCOMES, outcome_name};
use crate::names::STANDBY;
use crate::wire::{CALLER_CONNECTIONS_PER_SECOND_MAX, PeerConnections};

/// Age of the last measurement above which a process counts as hanging.
const HANGS_AFTER: Duration = Duration::from_secs(10);
/// The content type of `/metrics`.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByOutcome {
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByReadout {
    readout: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByBound {
    bound: &'static str,
}

/// Roles that export a metric.
const ALL: &[&str] = &["supervisor", "readout", "collector", "logger"];
const SUPERVISOR: &[&str] = &["supervisor"];
const COLLECTOR: &[&str] = &["collector"];
const READOUT: &[&str] = &["readout"];
const LOGGER: &[&str] = &["logger"];
const TRIGGER: &[&str] = &["supervisor", "readout"];
const FRAGMENTS: &[&str] = &["collector", "readout"];
const MEMORY: &[&str] = &["readout", "logger"];

macro_rules! metrics {
    ($($(#[$about:meta])* $field:ident: $kind:ty, $name:literal, $help:literal, $unit:expr, $roles:expr;)*) => {
        /// Metrics of a process. It exports the metrics of its own role.
        pub struct Metrics {
            registry: Arc<Mutex<Registry>>,
            healthy: Arc<AtomicBool>,
            /// Reason why the process is not ready; `None` if it is ready.
            unready: Arc<Mutex<Option<String>>>,
            measured_ms: Arc<AtomicU64>,
            completed: Family<ByOutcome, Counter>,
            collection: Histogram,
            /// Connections for metrics that were closed because their address connects too often.
            requests_too_frequent: Arc<AtomicU64>,
            last_answers: Family<ByReadout, Counter>,
            /// Registered with the first value: a kernel before Linux 6.7 does not count timeouts.
            tcp_timeouts: OnceLock<Counter>,
            $($(#[$about])* pub $field: $kind,)*
        }

        impl Metrics {
            /// Creates the metrics of the process with this name, all zero.
            pub fn new(process: &str) -> Self {
                let role = match process.split('-').next().unwrap_or_default() {
                    STANDBY => "supervisor".to_owned(),
                    role => role.to_owned(),
                };
                let labels = [
                    ("process".into(), process.to_owned().into()),
                    ("role".into(), role.clone().into()),
                ];
                let mut registry = Registry::with_prefix_and_labels("fanin", labels.into_iter());
                let completed = Family::<ByOutcome, Counter>::default();
                let about = "Events that are finished with, as the supervisor knows";
                if role == "supervisor" {
                    // An alert on a rate of 0 needs the series before the first event is completed.
                    for (_, outcome) in OUTCOMES {
                        let _ = completed.get_or_create(&ByOutcome { outcome });
                    }
                    registry.register("events_completed", about, completed.clone());
                }
                // 0.1 ms to 26 s.
                let (first, ratio, count) = COLLECTION_BUCKETS;
                let collection = Histogram::new(exponential_buckets(first, ratio, count));
                let about = "Time from an event's first request to its last fragment";
                if role == "collector" {
                    registry.register_with_unit("collection_time", about, Unit::Seconds, collection.clone());
                }
                let last_answers = Family::<ByReadout, Counter>::default();
                let about = "Collections whose last answer came from this readout";
                if role == "collector" {
                    registry.register("last_answers", about, last_answers.clone());
                }
                $(let $field = <$kind>::default();
                match $unit {
                    _ if !$roles.contains(&role.as_str()) => {}
                    Some(unit) => registry.register_with_unit($name, $help, unit, $field.clone()),
                    None => registry.register($name, $help, $field.clone()),
                })*
                Self {
                    registry: Arc::new(Mutex::new(registry)),
                    healthy: Arc::new(AtomicBool::new(true)),
                    unready: Arc::new(Mutex::new(Some("it is starting".to_owned()))),
                    measured_ms: Arc::new(AtomicU64::new(now_ms())),
                    completed,
                    collection,
                    requests_too_frequent: Arc::default(),
                    last_answers,
                    tcp_timeouts: OnceLock::new(),
                    $($field,)*
                }
            }
        }
    };
}

type Float = Counter<f64, AtomicU64>;
/// A gauge that is absent while its value is unknown.
type OptionalGauge = Family<[(&'static str, &'static str); 0], Gauge>;

metrics! {
    /// 1 while the process takes work, 0 while it stops.
    up: Gauge, "up", "1 while the process takes work, 0 while it stops", None, ALL;
    /// 1 while the process has all that its role needs, 0 otherwise.
    ready: Gauge, "ready", "1 while the process has all that its role needs, 0 otherwise: /readyz says what it lacks", None, ALL;
    /// Number of connected peers.
    connections: Gauge, "connections", "Peers that are connected", None, ALL;
    /// Number of connections lost.
    connections_lost: Counter, "connections_lost", "Connections that broke", None, ALL;
    /// Connections that ended because the two sides have no common version.
    no_common_version: Counter, "no_common_version", "Connections that ended because the two sides speak no common version of the messages", None, ALL;
    /// Connected peers with an older version than this process.
    connections_older: Gauge, "connections_older", "Connected peers that speak an older version of the messages than this process", None, ALL;
    /// Number of connections refused.
    connections_refused: Counter, "connections_refused", "Connections to the process that ended without a valid greeting, such as those of callers without the key", None, ALL;
    /// Connections closed because of their address's rate.
    connections_too_frequent: Counter, "connections_too_frequent", "Connections that were closed because their address connects too often, those for metrics included", None, ALL;
    /// Read calls on connections.
    connection_reads: Counter, "connection_reads", "Read calls on the connections of messages, those of refused callers included", None, ALL;
    /// Number of messages sent.
    messages_sent: Counter, "messages_sent", "Messages sent", None, ALL;
    /// Number of messages received.
    messages_received: Counter, "messages_received", "Messages received", None, ALL;
    /// Messages to peers without a connection.
    messages_undeliverable: Counter, "messages_undeliverable", "Messages whose peer was gone", None, ALL;
    /// Number of invalid messages.
    messages_invalid: Counter, "messages_invalid", "Invalid messages; the connection of their sender was closed", None, ALL;
    /// Bytes sent, headers included.
    sent_bytes: Counter, "sent", "Bytes of messages sent, with headers", Some(Unit::Bytes), ALL;
    /// Bytes received, headers included.
    received_bytes: Counter, "received", "Bytes of messages received, with headers", Some(Unit::Bytes), ALL;
    /// Journal lines that were dropped before they were written.
    journal_dropped: Counter, "journal_lines_dropped", "Lines of the journal that the disk never took", None, ALL;
    /// 1 while the journal cannot be written, 0 otherwise.
    journal_failing: Gauge, "journal_failing", "1 while the journal cannot be written and its lines wait in memory: the log names the error", None, ALL;
    /// Bytes of the journal's file, without those that were put aside.
    journal_bytes: Gauge, "journal", "Bytes of the journal's present file", Some(Unit::Bytes), ALL;
    /// Free bytes of the file system with the journal; [`Metrics::set_journal_free`] sets it.
    journal_free_bytes: OptionalGauge, "journal_free", "Free bytes of the file system with the journal", Some(Unit::Bytes), ALL;
    /// Failed writes of TCP's counters.
    tcp_counts_failed: Counter, "tcp_counts_failed", "Times that TCP's counters could not be written to their file, which a result then lacks", None, ALL;
    /// Segments with payload sent by TCP.
    tcp_segments: Counter, "tcp_segments", "Segments with payload that TCP sent, retransmissions included", None, ALL;
    /// Segments retransmitted by TCP.
    tcp_retransmits: Counter, "tcp_retransmits", "Segments that TCP sent again", None, ALL;
    /// Retransmitted segments that the peer had already received.
    tcp_duplicates: Counter, "tcp_duplicates", "Segments that TCP sent and the peer had already", None, ALL;
    /// Segments that arrived marked with congestion experienced (CE).
    tcp_delivered_ce: Counter, "tcp_delivered_ce", "Segments that arrived with congestion experienced", None, ALL;
    /// Payload bytes that peers acknowledged.
    tcp_acked_bytes: Counter, "tcp_acked", "Payload bytes that peers acknowledged", Some(Unit::Bytes), ALL;
    /// Largest congestion window of a connection, segments.
    tcp_window: Gauge, "tcp_window_segments", "Largest congestion window of a connection", None, ALL;
    /// Longest smoothed round-trip time of a connection, seconds.
    tcp_rtt: Gauge<f64, AtomicU64>, "tcp_rtt", "Longest smoothed round-trip time of a connection", Some(Unit::Seconds), ALL;
    /// Number of events assigned.
    assigned: Counter, "events_assigned", "Events that the supervisor assigned, each counted once", None, SUPERVISOR;
    /// Number of events reassigned.
    reassigned: Counter, "events_reassigned", "Times that an event was taken from a lost collector", None, SUPERVISOR;
    /// Assigned events that are not finished.
    outstanding: Gauge, "events_outstanding", "Events that are assigned and not finished with", None, SUPERVISOR;
    /// 1 in the supervisor that leads, 0 in its standby.
    leads: Gauge, "supervisor_leads", "1 in the supervisor that assigns events, 0 in its standby", None, SUPERVISOR;
    /// The latest decided term.
    term: Gauge, "supervisor_term", "Number of the latest decided term, where the system has a standby", None, SUPERVISOR;
    /// 1 in a paired leader and in its partner, 0 otherwise.
    paired: Gauge, "supervisor_paired", "1 in a leader that is paired and in its partner, which may take over; 0 otherwise", None, SUPERVISOR;
    /// Number of readouts of the system.
    readouts: Gauge, "readouts", "Readouts of the system, also those that are down", None, SUPERVISOR;
    /// 1 in a readout that votes on the leading supervisor, 0 otherwise.
    votes: Gauge, "readout_votes", "1 in a readout that votes on the leading supervisor, 0 in one that abstains, and without a standby", None, READOUT;
    /// Number of free units.
    units_free: Gauge, "units_free", "Processing units that wait for an event", None, SUPERVISOR;
    /// Number of XOFF states entered.
    xoff: Counter, "xoff", "Times that the trigger was stopped (supervisor) or memory was full (readout)", None, TRIGGER;
    /// Time for which the trigger was stopped or memory was full, seconds.
    xoff_seconds: Float, "xoff_time", "Time for which the trigger was stopped or memory was full", Some(Unit::Seconds), TRIGGER;
    /// Number of requests.
    requests: Counter, "requests", "Requests sent (collector) or received (readout)", None, FRAGMENTS;
    /// Number of repeated requests.
    requests_repeated: Counter, "requests_repeated", "Requests that had no answer in time and were sent again", None, COLLECTOR;
    /// Sum of the ideal times of all collections, seconds.
    ideal_seconds: Float, "collection_ideal", "Ideal time of the collections: the answers' delay, then their data at the rate of the ideal", Some(Unit::Seconds), COLLECTOR;
    /// Fixed number of credits; 0 without one.
    credits: Gauge, "credits", "Credits of the collector, 0 without a fixed number", None, COLLECTOR;
    /// Requests that wait for credits.
    requests_waiting: Gauge, "requests_waiting", "Requests that wait for credits", None, COLLECTOR;
    /// Credits in use.
    credits_used: Gauge, "credits_used", "Credits that are out", None, COLLECTOR;
    /// Events at the collector.
    events_building: Gauge, "events_building", "Events that a collector has", None, COLLECTOR;
    /// Fragment bytes received (collector) or answered (readout).
    fragment_bytes: Counter, "fragments", "Bytes of fragments received (collector) or answered (readout)", Some(Unit::Bytes), FRAGMENTS;
    /// Number of missing fragments.
    fragments_missing: Counter, "fragments_missing", "Fragments that never came", None, FRAGMENTS;
    /// Number of corrupted answers.
    answers_corrupted: Counter, "answers_corrupted", "Answers whose checksums are wrong", None, COLLECTOR;
    /// Number of units lost.
    units_lost: Counter, "units_lost", "Processors that crashed or took too long", None, COLLECTOR;
    /// Events shipped to another logger.
    reshipped: Counter, "events_reshipped", "Events sent to another logger after one failed", None, COLLECTOR;
    /// Events too large for a logger.
    too_large: Counter, "events_too_large", "Events sent without their fragments: no message holds them", None, COLLECTOR;
    /// Events in a readout's memory.
    events_held: Gauge, "events_held", "Events in a readout's memory", None, READOUT;
    /// Bytes in memory.
    held_bytes: Gauge, "held", "Bytes in memory: fragments (readout), events that are not on disk yet (logger)", Some(Unit::Bytes), MEMORY;
    /// Events on disk.
    stored: Counter, "events_stored", "Events that are safely on disk", None, LOGGER;
    /// Events in the debug stream.
    stored_debug: Counter, "events_stored_debug", "Of these, in the debug stream", None, LOGGER;
    /// Bytes on disk.
    stored_bytes: Counter, "stored", "Bytes of events that are safely on disk", Some(Unit::Bytes), LOGGER;
    /// Events that were not written.
    store_failed: Counter, "events_store_failed", "Events that could not be written", None, LOGGER;
    /// Events stored with stand-ins.
    stand_ins: Counter, "events_unwritable", "Events stored with stand-ins for damaged fragments", None, LOGGER;
    /// Offers that a logger refused.
    offers_refused: Counter, "offers_refused", "Offers of events that a logger turned down", None, LOGGER;
    /// Events that were never assigned.
    unassigned: Counter, "events_unassigned", "Events that a logger refused because the supervisor never assigned them", None, LOGGER;
    /// Copies of damaged files in the folder of stored events.
    damaged_copies: Gauge, "damaged_copies", "Copies of damaged files (PROCESS-STREAM-NUMBER.damaged), which stay until they are deleted by hand", None, LOGGER;
    /// 1 while the disk is full, 0 otherwise.
    disk_full: Gauge, "disk_full", "1 while the disk is full", None, LOGGER;
    /// 1 while writes fail for another reason than a full disk, 0 otherwise.
    disk_failing: Gauge, "disk_failing", "1 while events cannot be written for another reason than a full disk: the log names it", None, LOGGER;
}

/// Milliseconds since the first call, by a monotonic clock.
fn now_ms() -> u64 {
    static FIRST: LazyLock<Instant> = LazyLock::new(Instant::now);
    FIRST.elapsed().as_millis() as u64
}

/// Sets a counter to a value that a state machine or the kernel has counted.
pub fn set(counter: &Counter, value: u64) {
    counter.inner().store(value, Ordering::Relaxed);
}

/// Sets a counter of seconds to a duration.
pub fn set_time(counter: &Float, time: fanin_units::Duration) {
    set_seconds(counter, time.as_secs_f64());
}

/// Sets a counter of seconds.
pub fn set_seconds(counter: &Float, seconds: f64) {
    counter.inner().store(seconds.to_bits(), Ordering::Relaxed);
}

/// Sets a gauge; values above `i64::MAX` become `i64::MAX`.
pub fn level(gauge: &Gauge, value: u64) {
    gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
}

impl Metrics {
    /// Counts a record: outcomes by kind, and the duration of collections.
    pub fn count(&self, record: &EventRecord) {
        match record.step {
            EventStep::Completed { outcome, .. } => {
                self.completed.get_or_create(&ByOutcome { outcome: outcome_name(outcome) }).inc();
            }
            EventStep::Collected { first_request, .. } => {
                self.collection.observe(record.at.saturating_since(first_request).as_secs_f64());
            }
            _ => {}
        }
    }

    /// Sets the free bytes of the file system with the journal, or removes the metric if they are unknown.
    pub fn set_journal_free(&self, bytes: Option<u64>) {
        match bytes {
            Some(bytes) => level(&self.journal_free_bytes.get_or_create(&[]), bytes),
            None => self.journal_free_bytes.clear(),
        }
    }

    /// Sets the number of collections whose last answer came from this readout.
    pub fn set_last_answers(&self, readout: u16, collections: u64) {
        set(&self.last_answers.get_or_create(&ByReadout { readout }), collections);
    }

    /// Adds gauges with the limits of the bands that are predicted for the system's metrics.
    pub fn add_predicted(&self, bands: &PredictedBands) {
        let mut registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        for figure in PREDICTED_FIGURES {
            let Some(band) = (figure.band)(bands) else { continue };
            let family = Family::<ByBound, Gauge<f64, AtomicU64>>::default();
            family.get_or_create(&ByBound { bound: "low" }).set(band.low);
            family.get_or_create(&ByBound { bound: "high" }).set(band.high);
            let name = format!("predicted_{}", figure.key);
            match figure.unit {
                PredictedUnit::Seconds => {
                    registry.register_with_unit(name, figure.help, Unit::Seconds, family);
                }
                PredictedUnit::BytesPerSecond => {
                    registry.register_with_unit(name, figure.help, Unit::Bytes, family);
                }
                PredictedUnit::PerSecond | PredictedUnit::Count => {
                    registry.register(name, figure.help, family);
                }
            }
        }
    }

    /// Updates the metrics that all roles have. `lacks` names what the role lacks besides connections; `None` if nothing.
    /// `up` is false while the process stops.
    pub fn measure(&self, wire: &PeerConnections, lacks: Option<&str>, journal_dropped: u64, up: bool) {
        let counters = wire.counters();
        self.up.set(i64::from(up));
        level(&self.connections, wire.connected() as u64);
        set(&self.connections_lost, counters.connections_lost);
        set(&self.no_common_version, counters.no_common_version);
        level(&self.connections_older, wire.older() as u64);
        set(&self.connections_refused, counters.connections_refused);
        let too_frequent = self.requests_too_frequent.load(Ordering::Relaxed);
        set(&self.connections_too_frequent, wire.totals().too_frequent + too_frequent);
        set(&self.connection_reads, wire.totals().reads);
        set(&self.messages_sent, counters.messages_sent);
        set(&self.messages_received, counters.messages_received);
        set(&self.messages_undeliverable, counters.messages_undeliverable);
        set(&self.messages_invalid, counters.messages_invalid);
        set(&self.sent_bytes, counters.bytes_sent);
        set(&self.received_bytes, counters.bytes_received);
        set(&self.journal_dropped, journal_dropped);
        set(&self.tcp_counts_failed, wire.tcp_counts_failed());
        let tcp = wire.tcp_totals();
        set(&self.tcp_segments, tcp.segments);
        set(&self.tcp_retransmits, tcp.retransmits);
        self.set_tcp_timeouts(tcp.timeouts);
        set(&self.tcp_duplicates, tcp.duplicates);
        set(&self.tcp_delivered_ce, tcp.delivered_ce);
        set(&self.tcp_acked_bytes, tcp.acked_bytes);
        level(&self.tcp_window, tcp.cwnd);
        self.tcp_rtt.set(tcp.rtt_ns as f64 / 1e9);
        let peers = wire.lacks().map(|peers| format!("no connection to {peers}"));
        let unready = peers.or_else(|| lacks.map(str::to_owned));
        level(&self.ready, u64::from(up && unready.is_none()));
        *self.unready.lock().unwrap_or_else(PoisonError::into_inner) = unready;
        self.healthy.store(up, Ordering::Relaxed);
        self.measured_ms.store(now_ms(), Ordering::Relaxed);
    }

    /// Sets the number of TCP's retransmission timeouts; `None` if the kernel does not count them.
    fn set_tcp_timeouts(&self, timeouts: Option<u64>) {
        let Some(timeouts) = timeouts else { return };
        let counter = self.tcp_timeouts.get_or_init(|| {
            let counter = Counter::default();
            let mut registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
            registry.register("tcp_timeouts", "Retransmission timeouts of TCP", counter.clone());
            counter
        });
        set(counter, timeouts);
    }

    /// Returns the metrics in the OpenMetrics text format.
    pub fn text(&self) -> String {
        render(&self.registry)
    }
}

fn render(registry: &Mutex<Registry>) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = text::encode(&mut out, &registry.lock().unwrap_or_else(PoisonError::into_inner));
    out
}

/// Serves `/metrics`, `/healthz` and `/readyz` from a separate thread until the process ends.
///
/// # Errors
/// If the address cannot be used.
pub fn serve(metrics: &Metrics, address: SocketAddr) -> io::Result<()> {
    let registry = Arc::clone(&metrics.registry);
    let (healthy, measured) = (Arc::clone(&metrics.healthy), Arc::clone(&metrics.measured_ms));
    let (unready, too_frequent) = (Arc::clone(&metrics.unready), Arc::clone(&metrics.requests_too_frequent));
    let answer = move |path: &str| {
        let plain = |status, text: &str| HttpAnswer { status, kind: "text/plain", body: text.to_owned() };
        match path {
            "/metrics" => HttpAnswer { status: "200 OK", kind: OPEN_METRICS, body: render(&registry) },
            "/healthz" | "/readyz" => {
                let age_ms = now_ms().saturating_sub(measured.load(Ordering::Relaxed));
                let lacks = unready.lock().unwrap_or_else(PoisonError::into_inner).clone();
                match (age_ms > HANGS_AFTER.as_millis() as u64, healthy.load(Ordering::Relaxed), lacks) {
                    (true, ..) => plain("503 Service Unavailable", "the process hangs\n"),
                    (_, false, _) => plain("503 Service Unavailable", "the process is stopping\n"),
                    (_, _, Some(lacks)) if path == "/readyz" => {
                        plain("503 Service Unavailable", &format!("not ready: {lacks}\n"))
                    }
                    _ => plain("200 OK", "ok\n"),
                }
            }
            _ => plain("404 Not Found", "only /metrics, /healthz and /readyz are served\n"),
        }
    };
    http::serve(address, CALLER_CONNECTIONS_PER_SECOND_MAX, too_frequent, answer).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
        text.lines().filter(|line| line.starts_with(name)).collect()
    }

    /// `FaninNoEventCompleted` asks for a rate of 0, and a series that is missing has none.
    #[test]
    fn all_outcomes_are_served_before_an_event_is_completed() {
        let served = Metrics::new("standby").text();
        let lines = sample(&served, "fanin_events_completed_total{");
        assert_eq!(lines.len(), OUTCOMES.len(), "{served}");
        assert!(lines.iter().all(|line| line.ends_with(" 0")), "{served}");
        assert!(sample(&Metrics::new("collector-0").text(), "fanin_events_completed").is_empty());
    }

    /// `FaninJournalDiskFilling` takes 0 for a full disk.
    #[test]
    fn free_space_is_not_served_while_it_is_unknown() {
        let metrics = Metrics::new("logger-0");
        for free in [None, Some(7), None] {
            metrics.set_journal_free(free);
            let served = metrics.text();
            let lines = sample(&served, "fanin_journal_free_bytes");
            assert_eq!(lines.len(), usize::from(free.is_some()), "{served}");
            assert!(lines.iter().all(|line| line.ends_with("} 7")), "{served}");
        }
    }

    /// `FaninFewerTimeoutsThanPredicted` takes a series of 0 for a network without timeouts.
    #[test]
    fn timeouts_that_the_kernel_does_not_count_are_not_served() {
        let metrics = Metrics::new("readout-0");
        metrics.set_tcp_timeouts(None);
        assert!(sample(&metrics.text(), "fanin_tcp_timeouts").is_empty());
        for timeouts in [0, 3] {
            metrics.set_tcp_timeouts(Some(timeouts));
            let served = metrics.text();
            let lines = sample(&served, "fanin_tcp_timeouts_total{");
            assert!(lines.len() == 1 && lines[0].ends_with(&format!(" {timeouts}")), "{served}");
        }
    }
}

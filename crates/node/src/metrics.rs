//! Metrics of a process for Prometheus (`/metrics`), and its health (`/healthz`).

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fanin_dataflow::{Outcome, Record, What};
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

use crate::http::{self, HttpAnswer};
use crate::wire::PeerConnections;

/// A process that has not measured itself for so long hangs.
const HANGS_AFTER: Duration = Duration::from_secs(10);
/// The content type of `/metrics`.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByOutcome {
    outcome: &'static str,
}

/// The name of an outcome in metrics.
const fn outcome_name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Rejected => "rejected",
        Outcome::Accepted => "accepted",
        Outcome::Stored => "stored",
        Outcome::Debug => "debug",
    }
}

macro_rules! metrics {
    ($($(#[$about:meta])* $field:ident: $kind:ty, $name:literal, $help:literal, $unit:expr;)*) => {
        /// All metrics of a process. Those of other roles stay at zero.
        pub struct Metrics {
            registry: Arc<Mutex<Registry>>,
            healthy: Arc<AtomicBool>,
            measured_ms: Arc<AtomicU64>,
            completed: Family<ByOutcome, Counter>,
            collection: Histogram,
            $($(#[$about])* pub $field: $kind,)*
        }

        impl Metrics {
            /// Metrics of the process with this name, all zero.
            pub fn new(process: &str) -> Self {
                let role = process.split('-').next().unwrap_or_default().to_owned();
                let labels = [
                    ("process".into(), process.to_owned().into()),
                    ("role".into(), role.into()),
                ];
                let mut registry = Registry::with_prefix_and_labels("fanin", labels.into_iter());
                let completed = Family::<ByOutcome, Counter>::default();
                let about = "Events that are finished with, as the supervisor knows";
                registry.register("events_completed", about, completed.clone());
                // 0.1 ms to 26 s.
                let collection = Histogram::new(exponential_buckets(0.0001, 2.0, 19));
                let about = "Time from an event's first request to its last fragment";
                registry.register_with_unit("collection_time", about, Unit::Seconds, collection.clone());
                $(let $field = <$kind>::default();
                match $unit {
                    Some(unit) => registry.register_with_unit($name, $help, unit, $field.clone()),
                    None => registry.register($name, $help, $field.clone()),
                })*
                Self {
                    registry: Arc::new(Mutex::new(registry)),
                    healthy: Arc::new(AtomicBool::new(true)),
                    measured_ms: Arc::new(AtomicU64::new(now_ms())),
                    completed,
                    collection,
                    $($field,)*
                }
            }
        }
    };
}

type Float = Counter<f64, AtomicU64>;

metrics! {
    /// True if it works, or is stopping.
    up: Gauge, "up", "Whether the process takes work: 0 while it stops", None;
    /// Connections.
    connections: Gauge, "connections", "Peers that are connected", None;
    /// Connections lost.
    connections_lost: Counter, "connections_lost", "Connections that broke", None;
    /// Messages sent.
    messages_sent: Counter, "messages_sent", "Messages sent", None;
    /// Messages received.
    messages_received: Counter, "messages_received", "Messages received", None;
    /// Messages whose peer was gone.
    messages_undeliverable: Counter, "messages_undeliverable", "Messages whose peer was gone", None;
    /// Messages without sense.
    messages_invalid: Counter, "messages_invalid", "Messages that made no sense; their sender was shut out", None;
    /// Bytes sent.
    sent_bytes: Counter, "sent", "Bytes of messages sent, with headers", Some(Unit::Bytes);
    /// Bytes received.
    received_bytes: Counter, "received", "Bytes of messages received, with headers", Some(Unit::Bytes);
    /// Journal lines given up.
    journal_dropped: Counter, "journal_lines_dropped", "Lines of the journal that the disk never took", None;
    /// TCP's segments.
    tcp_segments: Counter, "tcp_segments", "Segments with payload that TCP sent, retransmissions included", None;
    /// TCP's retransmissions.
    tcp_retransmits: Counter, "tcp_retransmits", "Segments that TCP sent again", None;
    /// TCP's time-outs.
    tcp_timeouts: Counter, "tcp_timeouts", "Retransmission time-outs of TCP", None;
    /// TCP's needless retransmissions.
    tcp_duplicates: Counter, "tcp_duplicates", "Segments that TCP sent and the peer had already", None;
    /// TCP's marked segments.
    tcp_delivered_ce: Counter, "tcp_delivered_ce", "Segments that arrived with congestion experienced", None;
    /// TCP's acknowledged bytes.
    tcp_acked_bytes: Counter, "tcp_acked", "Payload bytes that peers acknowledged", Some(Unit::Bytes);
    /// TCP's largest window.
    tcp_window: Gauge, "tcp_window_segments", "Largest congestion window of a connection", None;
    /// TCP's longest round trip.
    tcp_rtt: Gauge<f64, AtomicU64>, "tcp_rtt", "Longest smoothed round-trip time of a connection", Some(Unit::Seconds);
    /// Events assigned.
    assigned: Counter, "events_assigned", "Events that the supervisor assigned, each counted once", None;
    /// Events reassigned.
    reassigned: Counter, "events_reassigned", "Times that an event was taken from a lost collector", None;
    /// Events that collectors have.
    outstanding: Gauge, "events_outstanding", "Events that are assigned and not finished with", None;
    /// Free units.
    units_free: Gauge, "units_free", "Processing units that wait for an event", None;
    /// XOFF.
    xoff: Counter, "xoff", "Times that the trigger was stopped (supervisor) or memory was full (readout)", None;
    /// How long the trigger was stopped.
    xoff_seconds: Float, "xoff_time", "Time for which the trigger was stopped or memory was full", Some(Unit::Seconds);
    /// Requests.
    requests: Counter, "requests", "Requests sent (collector) or received (readout)", None;
    /// Repetitions.
    requests_repeated: Counter, "requests_repeated", "Requests that had no answer in time and were sent again", None;
    /// Requests that wait.
    requests_waiting: Gauge, "requests_waiting", "Requests that wait for credits", None;
    /// Credits in use.
    credits_used: Gauge, "credits_used", "Credits that are out", None;
    /// Events at the collector.
    events_building: Gauge, "events_building", "Events that a collector has", None;
    /// Fragment bytes.
    fragment_bytes: Counter, "fragments", "Bytes of fragments received (collector) or answered (readout)", Some(Unit::Bytes);
    /// Missing fragments.
    fragments_missing: Counter, "fragments_missing", "Fragments that never came", None;
    /// Corrupted answers.
    answers_corrupted: Counter, "answers_corrupted", "Answers whose checksums are wrong", None;
    /// Units lost.
    units_lost: Counter, "units_lost", "Processors that crashed or took too long", None;
    /// Reshipped.
    reshipped: Counter, "events_reshipped", "Events sent to another logger after one failed", None;
    /// Events in memory.
    events_held: Gauge, "events_held", "Events in a readout's memory", None;
    /// Bytes in memory.
    held_bytes: Gauge, "held", "Bytes in memory: fragments (readout), events that are not on disk yet (logger)", Some(Unit::Bytes);
    /// Events on disk.
    stored: Counter, "events_stored", "Events that are safely on disk", None;
    /// Events in the debug stream.
    stored_debug: Counter, "events_stored_debug", "Of these, in the debug stream", None;
    /// Bytes on disk.
    stored_bytes: Counter, "stored", "Bytes of events that are safely on disk", Some(Unit::Bytes);
    /// Store failures.
    store_failed: Counter, "events_store_failed", "Events that could not be written", None;
    /// Refusals.
    offers_refused: Counter, "offers_refused", "Offers of events that a logger turned down", None;
    /// Disk full.
    disk_full: Gauge, "disk_full", "Whether the disk takes nothing more", None;
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}

/// Brings a counter to what was counted elsewhere.
pub fn set(counter: &Counter, value: u64) {
    counter.inner().store(value, Ordering::Relaxed);
}

/// Brings a counter of seconds to a span of time.
pub fn set_time(counter: &Float, time: fanin_units::Duration) {
    counter.inner().store(time.as_secs_f64().to_bits(), Ordering::Relaxed);
}

/// Brings a gauge to a number.
pub fn level(gauge: &Gauge, value: u64) {
    gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
}

impl Metrics {
    /// Takes note of a record.
    pub fn count(&self, record: &Record) {
        match record.what {
            What::Completed { outcome, .. } => {
                self.completed.get_or_create(&ByOutcome { outcome: outcome_name(outcome) }).inc();
            }
            What::Collected { first_request, .. } => {
                self.collection.observe(record.at.saturating_since(first_request).as_secs_f64());
            }
            _ => {}
        }
    }

    /// Brings what all processes have up to date.
    pub fn measure(&self, wire: &PeerConnections, journal_dropped: u64, up: bool) {
        let counters = wire.counters();
        self.up.set(i64::from(up));
        level(&self.connections, wire.connected() as u64);
        set(&self.connections_lost, counters.connections_lost);
        set(&self.messages_sent, counters.messages_sent);
        set(&self.messages_received, counters.messages_received);
        set(&self.messages_undeliverable, counters.messages_undeliverable);
        set(&self.messages_invalid, counters.messages_invalid);
        set(&self.sent_bytes, counters.bytes_sent);
        set(&self.received_bytes, counters.bytes_received);
        set(&self.journal_dropped, journal_dropped);
        let tcp = wire.tcp_totals();
        set(&self.tcp_segments, tcp.segments);
        set(&self.tcp_retransmits, tcp.retransmits);
        set(&self.tcp_timeouts, tcp.timeouts.unwrap_or_default());
        set(&self.tcp_duplicates, tcp.duplicates);
        set(&self.tcp_delivered_ce, tcp.delivered_ce);
        set(&self.tcp_acked_bytes, tcp.acked_bytes);
        level(&self.tcp_window, tcp.cwnd);
        self.tcp_rtt.set(tcp.rtt_ns as f64 / 1e9);
        self.healthy.store(up, Ordering::Relaxed);
        self.measured_ms.store(now_ms(), Ordering::Relaxed);
    }

    /// The text that Prometheus reads.
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

/// Serves `/metrics` and `/healthz` from a thread of its own, for as long as the process lives.
///
/// # Errors
/// If the address cannot be used.
pub fn serve(metrics: &Metrics, address: SocketAddr) -> io::Result<()> {
    let registry = Arc::clone(&metrics.registry);
    let (healthy, measured) = (Arc::clone(&metrics.healthy), Arc::clone(&metrics.measured_ms));
    let answer = move |path: &str| {
        let plain = |status, text: &str| HttpAnswer { status, kind: "text/plain", body: text.to_owned() };
        match path {
            "/metrics" => HttpAnswer { status: "200 OK", kind: OPEN_METRICS, body: render(&registry) },
            "/healthz" => {
                let age_ms = now_ms().saturating_sub(measured.load(Ordering::Relaxed));
                match (age_ms > HANGS_AFTER.as_millis() as u64, healthy.load(Ordering::Relaxed)) {
                    (true, _) => plain("503 Service Unavailable", "the process hangs\n"),
                    (false, false) => plain("503 Service Unavailable", "the process is stopping\n"),
                    (false, true) => plain("200 OK", "ok\n"),
                }
            }
            _ => plain("404 Not Found", "only /metrics and /healthz are served\n"),
        }
    };
    http::serve(address, answer).map(drop)
}

//! The rows of a result's tables: one struct for each table, one field for each column.
//!
//! Times are integer picoseconds since the run began, and every column's name has its unit. So a
//! table means the same in Rust, pandas, Polars or DuckDB.

use std::sync::Arc;

use fanin_dataflow::Outcome;
pub use fanin_dataflow::SystemLevels;

/// The outcome of an event by the end of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EventOutcome {
    /// Assigned to a collector and still being collected when the run ended.
    #[default]
    Assigned,
    /// Every fragment arrived; no decision was requested or taken.
    Collected,
    /// Collected, and the processing unit accepted it.
    Accepted,
    /// Collected or partly collected, and the processing unit rejected it.
    Rejected,
    /// Accepted and written by a logger.
    Stored,
    /// Given up: some fragment never came, or the collector died.
    Lost,
    /// Written by a logger undecided, in the debug stream: its processing unit or its collector was lost.
    Debug,
}

impl From<Outcome> for EventOutcome {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Rejected => Self::Rejected,
            Outcome::Accepted => Self::Accepted,
            Outcome::Stored => Self::Stored,
            Outcome::Debug => Self::Debug,
        }
    }
}

impl EventOutcome {
    /// Every outcome, in the order an event goes through them.
    pub const ALL: [Self; 7] = [
        Self::Assigned,
        Self::Collected,
        Self::Accepted,
        Self::Rejected,
        Self::Stored,
        Self::Lost,
        Self::Debug,
    ];

    /// Returns the word that stands in the table.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Assigned => "assigned",
            Self::Collected => "collected",
            Self::Accepted => "accepted",
            Self::Rejected => "rejected",
            Self::Stored => "stored",
            Self::Lost => "lost",
            Self::Debug => "debug",
        }
    }
}

/// One event, or one request of a barrier-synchronised workload (`events.parquet`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventRow {
    /// Level-1 ID, or the request's number.
    pub id: u64,
    /// Bytes of all fragments, without any header.
    pub size_bytes: u64,
    /// Time of its assignment by the supervisor (the barrier opened).
    pub assigned_ps: u64,
    /// Time at which the first request for a fragment left the collector; absent if none did.
    pub first_request_ps: Option<u64>,
    /// Time at which the collector read the last byte of the last fragment; absent if never.
    pub last_byte_ps: Option<u64>,
    /// Data-collection time as the collecting application sees it; absent if collection did not end.
    pub collection_time_ps: Option<u64>,
    /// Least time for the same bytes, if the collector's link carried nothing else and the event waited only for its shortest
    /// response delay. Absent if unknown.
    pub ideal_ps: Option<u64>,
    /// Retransmission timeouts on connections that had messages of this event to deliver; absent where they cannot be known.
    pub timeouts: Option<u64>,
    /// Number of the collector.
    pub collector: u32,
    /// Number of the collector's rack.
    pub rack: u32,
    /// Number of the processing unit within its collector.
    pub unit: u32,
    /// Outcome of the event.
    pub outcome: EventOutcome,
}

impl Default for EventRow {
    /// Returns an event of which nothing has happened. Its timeouts are counted, and 0.
    fn default() -> Self {
        Self {
            id: 0,
            size_bytes: 0,
            assigned_ps: 0,
            first_request_ps: None,
            last_byte_ps: None,
            collection_time_ps: None,
            ideal_ps: None,
            timeouts: Some(0),
            collector: 0,
            rack: 0,
            unit: 0,
            outcome: EventOutcome::default(),
        }
    }
}

impl EventRow {
    /// Adds timeouts to those counted so far.
    pub const fn add_timeouts(&mut self, more: u64) {
        if let Some(timeouts) = &mut self.timeouts {
            *timeouts += more;
        }
    }

    /// Returns true if timeouts were counted for this event.
    pub fn has_timeouts(&self) -> bool {
        self.timeouts > Some(0)
    }
}

/// A watched queue at one moment (`queues.parquet`); rows of one queue follow each other in time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueRow {
    /// The queue's name, such as `tor→collector-3`.
    pub queue: Arc<str>,
    /// Time of the sample, ps since the start.
    pub time_ps: u64,
    /// Bytes waiting, as the buffering scheme counts them.
    pub queue_bytes: u64,
    /// Number of frames waiting.
    pub queue_frames: u64,
    /// Frames refused so far.
    pub drops: u64,
    /// Frames marked with congestion experienced so far.
    pub ecn_marks: u64,
    /// The most bytes it may hold; absent where no limit applies to this queue alone.
    pub limit_bytes: Option<u64>,
}

/// One TCP connection over the whole run (`flows.parquet`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowRow {
    /// Number of the connection.
    pub flow: u64,
    /// Host that sent the data of the row.
    pub source: Arc<str>,
    /// Host that receives it.
    pub destination: Arc<str>,
    /// Payload bytes acknowledged.
    pub acked_bytes: u64,
    /// Segments with payload sent, retransmissions included.
    pub segments: u64,
    /// Segments sent again, for any reason.
    pub retransmits: u64,
    /// Retransmission timeouts; absent where it cannot be known.
    pub timeouts: Option<u64>,
    /// Entries into fast recovery; absent where it cannot be known.
    pub fast_retransmits: Option<u64>,
    /// Retransmissions of data that had already arrived; absent if unknown.
    pub spurious_retransmits: Option<u64>,
    /// Largest congestion window.
    pub cwnd_packets_max: Option<u64>,
    /// Smallest round-trip time seen.
    pub rtt_min_ps: Option<u64>,
    /// Smoothed round-trip time at the end.
    pub rtt_smoothed_ps: Option<u64>,
}

/// The traffic of one event up to a moment (`io.parquet`): the "IO graph" of ICC'15 figs. 6 and 10.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IoRow {
    /// Identifier of the event.
    pub event: u64,
    /// Time since the event's first request.
    pub since_request_ps: u64,
    /// Bytes on the wire towards the collector so far.
    pub to_collector_bytes: u64,
    /// Bytes on the wire from the collector to the readouts so far.
    pub from_collector_bytes: u64,
}

/// A connection's windows at one moment (`windows.parquet`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WindowRow {
    /// The connection, as in [`FlowRow::flow`].
    pub flow: u64,
    /// Time of the sample, ps since the start.
    pub time_ps: u64,
    /// Congestion window, bytes.
    pub cwnd_bytes: u64,
    /// Window advertised by the receiver; absent where it is not watched.
    pub rwnd_bytes: Option<u64>,
    /// Bytes sent and not yet acknowledged.
    pub in_flight_bytes: u64,
}

/// The levels of a simulated event-building system at one moment. No table has these rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelRow {
    /// Time of the levels, ps since the start.
    pub time_ps: u64,
    /// The levels at this time.
    pub levels: SystemLevels,
}

/// All the tables of one result; any of them may be empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Records {
    /// Events or requests, by the time they were assigned.
    pub events: Vec<EventRow>,
    /// Samples of the recorded queues.
    pub queues: Vec<QueueRow>,
    /// Rows of the connections.
    pub flows: Vec<FlowRow>,
    /// Traffic of chosen events.
    pub io: Vec<IoRow>,
    /// Windows of chosen connections.
    pub windows: Vec<WindowRow>,
}

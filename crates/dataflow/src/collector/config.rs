//! The settings of a collector, the reasons to refuse them, and its counters.

use alloc::vec::Vec;

use fanin_units::{Bytes, Duration, Rate, Ratio};

use crate::{Delay, Selection};

/// Order of a collector's requests to the readouts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(
    feature = "schemars",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(rename_all = "kebab-case")
)]
pub enum RequestOrder {
    /// From the first readout to the last.
    #[default]
    Fixed,
    /// Cyclic order that begins at another readout for each collector, so that collectors do not meet at one readout.
    Rotated,
    /// A new random order for each step of an event, from the seed.
    Random,
}

/// One round of collecting and processing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectionStep {
    /// The fragments that this step collects.
    pub collect: Selection,
    /// Processing time of the unit after this collection.
    pub processing_time: Delay,
    /// Probability of the next step or, after the last one, of acceptance. Otherwise the event is rejected.
    pub accept: Ratio,
}

/// The behaviour of the processing units.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnitModel {
    /// Units go through these steps with drawn times and decisions. One step that collects everything is full event
    /// building (thesis §4.3.2), two are the L2 and EB phases of ICC'15 §IV.C.
    Steps(Vec<CollectionStep>),
    /// Units are real processes: the driver passes [`crate::UnitCommand`]s on to them and their decisions to
    /// [`crate::Collector::handle_decision`]. The selection is collected before the first
    /// [`crate::UnitCommand::Process`].
    External(Selection),
}

/// Settings that a collector refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CollectorError {
    /// The collector has no unit.
    #[error("a collector needs at least one processing unit")]
    NoUnits,
    /// The model has no step.
    #[error("a processing unit needs at least one step")]
    NoSteps,
    /// A readout serves more fragments than a request can name.
    #[error("readout {readout} serves {fragments} fragments; at most {max} are possible")]
    TooManyFragments {
        /// The readout's number.
        readout: u16,
        /// The number of fragments.
        fragments: u16,
        /// The most fragments that can be named.
        max: u16,
    },
    /// The number of readouts is too large.
    #[error("there are {readouts} readouts; at most 65535 can be numbered")]
    TooManyReadouts {
        /// The number of readouts.
        readouts: usize,
    },
    /// A request for all fragments of a readout would wait for ever.
    #[error("a request to readout {readout} costs {fragments} credits, but there are only {credits}")]
    CreditsBelowRequest {
        /// The credits of the collector.
        credits: u32,
        /// The readout's number.
        readout: u16,
        /// The credits that the request needs.
        fragments: u16,
    },
    /// Both kinds of credits are set.
    #[error("a collector has {credits} credits and paced credits: give it one of the two")]
    TwoCredits {
        /// The credits that were set.
        credits: u32,
    },
    /// Paced credits lack a link rate or a segment.
    #[error(
        "paced credits need a link rate and a segment above zero and a frame no smaller, not {rate}, {segment} and {frame}"
    )]
    NoPace {
        /// The link rate.
        rate: Rate,
        /// The payload of a full segment.
        segment: Bytes,
        /// The bytes of that segment on the wire.
        frame: Bytes,
    },
    /// A share exceeds 1.
    #[error("a share or probability exceeds 1")]
    ShareAboveOne,
    /// The request order starts at a readout that does not exist.
    #[error("requests start at readout {first}, but there are only {readouts}")]
    NoSuchReadout {
        /// The readout that requests start at.
        first: u16,
        /// The number of readouts.
        readouts: usize,
    },
    /// `shipping_max` is zero.
    #[error("at least one event has to be allowed to wait for storage")]
    NoShipping,
    /// `clear_group` is zero.
    #[error("a clear message has to name at least one event")]
    EmptyClear,
}

/// Counters of a collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CollectorCounters {
    /// Events that were received.
    pub events: u64,
    /// Requests sent, repetitions included.
    pub requests: u64,
    /// Requests among these that are repetitions.
    pub retries: u64,
    /// Requests sent again for one fragment, as an answer was late; not among `requests`.
    pub reminders: u64,
    /// Answers that belong to a request.
    pub answers: u64,
    /// Answers that came after their request was given up, repeated or withdrawn.
    pub stale_answers: u64,
    /// Answers that were corrupted.
    pub corrupted: u64,
    /// Payload bytes in answers that belong to a request.
    pub bytes: u64,
    /// Fragments that never arrived.
    pub missing: u64,
    /// Requests that had to wait for credits.
    pub waited: u64,
    /// The sum of all requests' waits for credits.
    pub wait_time: Duration,
    /// Units that were lost or took too long.
    pub units_lost: u64,
    /// Events sent to another logger after one failed.
    pub reshipped: u64,
    /// Events above [`CollectorConfig::event_max`](super::CollectorConfig::event_max), sent without their fragments.
    pub too_large: u64,
    /// Events forgotten because the supervisor gave them to another collector.
    pub abandoned: u64,
}

//! Settings and counters of a collector.

use alloc::vec::Vec;

use fanin_units::{Duration, Ratio};

use crate::{ClearConfig, CreditDiscipline, Delay, FragmentSet, Selection};

/// The order in which a collector requests from the readouts.
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
    /// From a readout that differs from collector to collector, and on from the first after the last: collectors do not
    /// meet at one readout.
    Rotated,
    /// A new random order for each step of an event, from the seed.
    Random,
}

/// One round of collecting and processing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectionStep {
    /// The fragments that this step collects.
    pub collect: Selection,
    /// Processing time of the unit after them.
    pub processing_time: Delay,
    /// The probability that the event goes on to the next step, or, in the last one, that it is accepted. Otherwise
    /// it is rejected.
    pub accept: Ratio,
}

/// The behaviour of the processing units.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnitModel {
    /// They go through these steps; times and decisions are drawn. One step that collects everything is full event
    /// building (thesis §4.3.2), two are the L2 and EB phases of ICC'15 §IV.C.
    Steps(Vec<CollectionStep>),
    /// They are real: the driver passes [`crate::UnitCommand`]s on to them and their decisions to
    /// [`crate::Collector::handle_decision`]. The selection is collected before the first [`crate::UnitCommand::Process`].
    External(Selection),
}

/// Settings of a collector.
#[derive(Debug, Clone)]
pub struct CollectorConfig {
    /// The number of its processing units.
    pub units: u16,
    /// The number of fragments that each readout serves; zero is allowed.
    pub readouts: Vec<u16>,
    /// The number of data loggers. Without any, accepted events leave the system as soon as they are complete.
    pub loggers: u16,
    /// Credits that its units share: a request costs one for each fragment. `None`: no shaping.
    pub credits: Option<u32>,
    /// The order in which requests that wait for credits are sent.
    pub discipline: CreditDiscipline,
    /// The order of the requests of one step.
    pub request_order: RequestOrder,
    /// The readout that [`RequestOrder::Rotated`] begins with.
    pub first_readout: u16,
    /// The behaviour of the units.
    pub model: UnitModel,
    /// True: an accepted event is completed before it is shipped. False: it is shipped with the fragments collected so far.
    pub build_accepted: bool,
    /// The longest time until an answer; then the request is repeated or given up. `None`: no limit.
    pub request_timeout: Option<Duration>,
    /// The number of repetitions of a request before its fragments are taken as missing.
    pub request_retries: u8,
    /// The longest absence of a readout, from the start or from the loss of its connection, before its fragments are
    /// taken as missing.
    pub readout_wait: Duration,
    /// The longest time for which a unit may process one step before it is taken for dead. `None`: no limit.
    pub processor_timeout: Option<Duration>,
    /// The longest time in which a logger grants or stores an event before another is asked. `None`: no limit.
    pub logger_timeout: Option<Duration>,
    /// The number of decided events that may wait for storage before free units are no longer announced; at least 1.
    pub shipping_max: u16,
    /// The grouping of clears to the readouts. `None`: the supervisor sends them, or the readouts keep nothing.
    pub clear: Option<ClearConfig>,
    /// True: an accepted event is cleared from the readouts when it was sent to a logger, rather than when it is on disk.
    /// Faster, but events are lost with a lost logger (thesis §3.7.4).
    pub clear_before_stored: bool,
    /// True: each answer gets a record of its own.
    pub trace_requests: bool,
    /// The seed of its random numbers.
    pub seed: u64,
}

impl Default for CollectorConfig {
    /// One unit that collects everything, decides at once and rejects; no readout yet, no credits; no time-outs except 5 s for
    /// a readout to come back; at most 64 events in storage; clears as in [`ClearConfig::default`], once stored.
    fn default() -> Self {
        let step =
            CollectionStep { collect: Selection::Rest, processing_time: Delay::ZERO, accept: Ratio::ZERO };
        Self {
            units: 1,
            readouts: Vec::new(),
            loggers: 0,
            credits: None,
            discipline: CreditDiscipline::Fifo,
            request_order: RequestOrder::Fixed,
            first_readout: 0,
            model: UnitModel::Steps(alloc::vec![step]),
            build_accepted: true,
            request_timeout: None,
            request_retries: 0,
            readout_wait: Duration::from_secs(5),
            processor_timeout: None,
            logger_timeout: None,
            shipping_max: 64,
            clear: Some(ClearConfig::default()),
            clear_before_stored: false,
            trace_requests: false,
            seed: 0,
        }
    }
}

/// Settings that a collector refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CollectorError {
    /// There is no unit.
    #[error("a collector needs at least one processing unit")]
    NoUnits,
    /// There is no step.
    #[error("a processing unit needs at least one step")]
    NoSteps,
    /// A readout serves more fragments than can be named.
    #[error("readout {readout} serves {fragments} fragments; at most {max} are possible")]
    TooManyFragments {
        /// Which.
        readout: u16,
        /// How many.
        fragments: u16,
        /// Possible.
        max: u16,
    },
    /// There are more readouts than numbers for them.
    #[error("there are {readouts} readouts; at most 65535 can be numbered")]
    TooManyReadouts {
        /// There are.
        readouts: usize,
    },
    /// A request for all fragments of a readout would wait for ever.
    #[error("a request to readout {readout} costs {fragments} credits, but there are only {credits}")]
    CreditsBelowRequest {
        /// There are.
        credits: u32,
        /// Which.
        readout: u16,
        /// Needed.
        fragments: u16,
    },
    /// A share exceeds 1.
    #[error("a share or probability exceeds 1")]
    ShareAboveOne,
    /// The request order starts at a readout that does not exist.
    #[error("requests start at readout {first}, but there are only {readouts}")]
    NoSuchReadout {
        /// Where.
        first: u16,
        /// There are.
        readouts: usize,
    },
    /// `shipping_max` is zero.
    #[error("at least one event has to be allowed to wait for storage")]
    NoShipping,
    /// `clear_group` is zero.
    #[error("a clear message has to name at least one event")]
    EmptyClear,
}

impl CollectorConfig {
    /// Checks the settings.
    ///
    /// # Errors
    /// The first setting that a collector refuses.
    pub fn validate(&self) -> Result<(), CollectorError> {
        if self.units == 0 {
            return Err(CollectorError::NoUnits);
        }
        if self.readouts.len() > usize::from(u16::MAX) {
            return Err(CollectorError::TooManyReadouts { readouts: self.readouts.len() });
        }
        for (readout, &fragments) in self.readouts.iter().enumerate() {
            let (readout, max) = (readout as u16, FragmentSet::FRAGMENTS_MAX);
            if fragments > max {
                return Err(CollectorError::TooManyFragments { readout, fragments, max });
            }
            // An event of a lost collector is collected as a whole, whatever the steps select.
            if let Some(credits) = self.credits.filter(|&credits| credits < u32::from(fragments)) {
                return Err(CollectorError::CreditsBelowRequest { credits, readout, fragments });
            }
        }
        let first = self.first_readout;
        if usize::from(first) >= self.readouts.len().max(1) {
            return Err(CollectorError::NoSuchReadout { first, readouts: self.readouts.len() });
        }
        let share_is_bad = |selection: &Selection| match selection {
            Selection::Readouts(share) | Selection::Fragments(share) => *share > Ratio::ONE,
            Selection::Rest | Selection::Region | Selection::List(_) => false,
        };
        let bad = match &self.model {
            UnitModel::Steps(steps) if steps.is_empty() => return Err(CollectorError::NoSteps),
            UnitModel::Steps(steps) => {
                steps.iter().any(|step| step.accept > Ratio::ONE || share_is_bad(&step.collect))
            }
            UnitModel::External(selection) => share_is_bad(selection),
        };
        if bad {
            return Err(CollectorError::ShareAboveOne);
        }
        if self.shipping_max == 0 {
            return Err(CollectorError::NoShipping);
        }
        if self.clear.is_some_and(|clear| clear.clear_group == 0) {
            return Err(CollectorError::EmptyClear);
        }
        Ok(())
    }
}

/// Counters of a collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CollectorCounters {
    /// Events received.
    pub events: u64,
    /// Requests sent, repetitions included.
    pub requests: u64,
    /// Of these, repetitions.
    pub retries: u64,
    /// Answers that belong to a request.
    pub answers: u64,
    /// Answers that came after their request was given up, repeated or withdrawn.
    pub stale_answers: u64,
    /// Answers that were corrupted.
    pub corrupted: u64,
    /// Payload bytes in answers that belong to a request.
    pub bytes: u64,
    /// Fragments that never came.
    pub missing: u64,
    /// Requests that had to wait for credits.
    pub waited: u64,
    /// The sum of all requests' waits for credits.
    pub wait_time: Duration,
    /// Units that were lost or took too long.
    pub units_lost: u64,
    /// Events sent to another logger after one failed.
    pub reshipped: u64,
    /// Events forgotten because the supervisor gave them to another collector.
    pub abandoned: u64,
}

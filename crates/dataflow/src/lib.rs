//! The decisions of a data-acquisition system, as state machines without I/O.
//!
//! Five roles of event building: [`Supervisor`], [`Readout`], [`Collector`] with its [`ProcessingUnit`]s, and [`Logger`] (thesis §3.7).
//! Each is one struct with inputs and outputs for a driver: the simulator through simulated TCP, the live processes
//! through sockets. A driver
//!
//! 1. calls `handle_connected`, `handle_message`, `handle_closed` or `handle_deadline` with the time,
//! 2. then drains `poll_transmit` (messages to send) and `poll_record` (occurrences, for the result files),
//! 3. and asks `poll_deadline` for the time of the next `handle_deadline`, if nothing else happens before.
//!
//! The barrier workloads have two state machines with the same inputs and outputs: [`Aggregator`] and [`BarrierSender`].
//! [`BackgroundSource`] is a connection of another application on the same hosts.
//!
//! The crate also has the decisions of techniques against incast: [`CreditPool`] (credits), [`PacedCredits`], [`Arbiter`]
//! (Fastpass), [`WindowShares`] (DIATCP), [`Ictcp`], [`LinearShift`] (barrel shifter) and [`Sird`].
//!
//! No code of this crate reads a clock, opens a socket or starts a thread; the configuration seeds the random numbers.
//! Messages are generic over their payload, which the roles never read. In the simulator it is a length
//! ([`fanin_units::Bytes`]), in a live process a buffer.
//!
//! A driver reports `handle_closed` of an old connection before `handle_connected` of a new one to the same peer. The
//! driver keeps messages of one connection in order, and drops those of a lost connection. A deadline of
//! [`fanin_units::Instant::FAR_FUTURE`] never comes.
//!
//! ```
//! use fanin_dataflow::*;
//! use fanin_units::{Bytes, Duration, Instant};
//!
//! let response_delay = Delay::Constant(Duration::from_micros(200));
//! let config = ReadoutConfig { response_delay, ..ReadoutConfig::default() };
//! let mut readout = Readout::new(config, UniformSource { fragment: Bytes::new(1_100) })?;
//!
//! let request = Message::Request { tag: 1, event: L1Id(42), fragments: FragmentSet::first(12) };
//! readout.handle_message(Instant::START, Peer::Collector(3), request)?;
//!
//! let due = readout.poll_deadline().expect("an answer is in preparation");
//! readout.handle_deadline(due);
//! let (to, answer) = readout.poll_transmit().expect("it is due");
//! assert_eq!((to, answer.wire_bytes()), (Peer::Collector(3), Bytes::new(12 + 10 + 12 * 1_100)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod audit;
mod background;
mod barrel_shifter;
mod barrier;
mod bitset;
mod clear;
mod collector;
mod credit;
mod diatcp;
mod fastpass;
mod ictcp;
mod levels;
mod logger;
mod message;
mod paced_credits;
mod payload;
mod peer;
mod policy;
mod push;
mod random;
mod readout;
mod record;
mod seeds;
mod shift_message;
mod sird;
mod supervisor;
mod timers;
mod unit;

pub use audit::{AuditError, Auditor, Totals};
pub use background::{
    BULK_BYTES, BackgroundHost, BackgroundSource, BackgroundTraffic, TRANSFER_HEADER_BYTES, Transfer,
    background_seed,
};
pub use barrel_shifter::{BarrierCounters, LinearShift, PhaseBarrier, ShiftHost};
pub use barrier::{
    Aggregator, AggregatorConfig, AggregatorError, AnswerSize, BARRIER_REQUEST_BYTES, BarrierMessage,
    BarrierRecord, BarrierSender, BarrierSenderConfig, SENDERS_MAX,
};
pub use clear::ClearConfig;
pub use collector::{
    CollectionStep, Collector, CollectorConfig, CollectorCounters, CollectorError, Decision, REMINDER_TAG,
    RequestOrder, UnitCommand, UnitModel, WaitsFor,
};
pub use credit::{CreditDiscipline, CreditPool};
pub use diatcp::{ShareCounters, WindowShares};
pub use fastpass::Arbiter;
pub use ictcp::{Ictcp, IctcpCounters};
pub use levels::SystemLevels;
pub use logger::{Logger, LoggerConfig, LoggerCounters, LoggerError, StoreId, WriteJob, WriteModel};
pub use message::{
    CONTROL_BYTES_MAX, EventStream, FRAME_HEADER_BYTES, FinishedEvent, Hello, Message, Outcome, Selection,
    Wanted, answer_bytes, clear_bytes, event_bytes, message_name, request_bytes,
};
pub use paced_credits::{ByteCredit, PacedCredits, PacedCreditsConfig, RelativeSize};
pub use payload::{FragmentPayload, FragmentSet, FragmentSource, UniformSource};
pub use peer::{L1Id, Peer, Unexpected};
pub use policy::{Assignment, Policy, TieBreak, UnitLayout};
pub use push::{DESTINATION_BYTES, PushedAnswers};
pub use random::{Delay, NormalBound, Random};
pub use readout::{Readout, ReadoutConfig, ReadoutCounters, ReadoutError};
pub use record::{EventRecord, EventStep};
pub use seeds::{Purpose, SeedOwner, event_stream, fragment_stream, stream_seed};
pub use shift_message::{ControlMessage, ShiftMessage};
pub use sird::{AccessLink, CreditPolicy, Sird, SirdConfig, SirdCounters, SirdEndCounters, SirdPacket};
pub use supervisor::{
    Arrivals, StartOrder, Supervisor, SupervisorConfig, SupervisorCounters, SupervisorError,
};
pub use unit::{ProcessingUnit, UnitState};

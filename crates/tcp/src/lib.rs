//! TCP as kernels run it, one state machine per end of a connection, without I/O.
//!
//! An [`Endpoint`] is fed with [`handle_segment`](Endpoint::handle_segment),
//! [`handle_deadline`](Endpoint::handle_deadline) and [`write`](Endpoint::write), and drained with
//! [`poll_transmit`](Endpoint::poll_transmit), [`poll_deadline`](Endpoint::poll_deadline) and
//! [`delivered`](Endpoint::delivered). Payload is only lengths; stream offsets are 64 bits wide, start at 0
//! in each direction and never wrap.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod config;
mod congestion;
mod control;
mod cubic;
mod dctcp;
mod detection;
mod endpoint;
mod flight;
mod offload;
mod opening;
mod profile;
mod receive;
mod recovery;
mod retransmit;
mod rtt;
mod runs;
mod segment;
mod swift;
mod undo;
mod validation;

/// `TCP_TIMEOUT_MIN_US`: what Linux adds to probe and reordering timers, in picoseconds.
const TIMEOUT_MARGIN: u64 = fanin_units::Duration::from_millis(2).get();

pub use config::{
    Config, CongestionControl, CubicParameters, DctcpParameters, DelayedAck, Growth, LossDetection,
    Reduction, RtoConfig, RtoEstimator, RttSource, Segmentation, SwiftParameters, TimeoutRules, Validation,
    WindowUnit,
};
pub use endpoint::{Endpoint, State, Stats, Written};
pub use profile::PROFILES;
pub use segment::{Flags, Framing, SackBlock, Segment};

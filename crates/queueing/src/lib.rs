//! Buffering schemes, schedulers and markers of switches, without I/O.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod aqm;
mod bucket;
mod fifo;
mod frame;
mod layout;
mod m21tcp;
mod memory;
mod pause;
mod ring;

pub use aqm::{Aqm, Decision, Depth, NotCapable, Red, RedError, RedSettings, Threshold};
pub use bucket::{BucketError, TokenBucket};
pub use fifo::{FIFO_FRAMES_MAX, FifoMemory, InService, Link, Passage};
pub use frame::{Count, Counters, Ecn, Frame, Limit, Occupancy, Verdict};
pub use layout::{Layout, LayoutError, PORTS_MAX, PoolBy, VOQS_MAX};
pub use m21tcp::{M21Accounting, m21tcp_flows_max, m21tcp_window};
pub use memory::Memory;
pub use pause::{PauseError, PauseSignal, PauseThresholds};

//! Packet-level simulation of fan-in networks: from a [`fanin_scenario::Scenario`] and a seed to records.
//!
//! [`run`] builds the network of the scenario: hosts, switches, links, paths. It puts the roles of `fanin-dataflow` or
//! a barrier-synchronised client on its hosts, and sends every TCP segment over every link. The same scenario and seed give
//! the same outcome to the bit, on any machine. The crate has no clock, thread or file: `fanin-runs` has them. The end of
//! every run, in release builds too, checks conservation. Bytes sent are delivered, dropped or in flight; no link carried
//! more than its rate; no event was lost or counted twice.
//!
//! A partition simulates a group of hosts and switches. An occurrence of its schedule is the arrival of a frame, a timer or a
//! step of a technique. `docs/simulator.md` describes the model, `docs/techniques.md` each technique.

#![forbid(unsafe_code)]

mod boundary;
mod connect;
mod engine;
mod error;
mod fabric;
mod index;
mod lists;
mod messages;
mod occurrence;
mod parcel;
mod partition;
mod run;
mod schedule;
mod stack;
mod techniques;
mod ties;
mod turns;
mod workload;

pub use error::Error;
pub use fanin_queueing::LayoutError;
pub use fanin_recording::{FrameSeen, LinkCapture, RecordError};
pub use run::{RunControl, RunEnd, RunOutcome, run, run_on};
pub use workload::RecordedSizes;

//! Packet-level simulation of fan-in networks: from a [`fanin_scenario::Scenario`] and a seed to records.
//!
//! [`run`] builds the network of the scenario (hosts, switches, links, paths), puts the roles of `fanin-dataflow` or a
//! barrier-synchronised client on its hosts, and lets every TCP segment travel over every link. The same scenario and
//! seed give the same outcome to the bit, on any number of threads of a [`sweep`]. At the end of every run, in release
//! builds too, the books are balanced: bytes sent are delivered, dropped or in flight; no link carried more than its
//! rate; no event was lost or counted twice.
//!
//! # How it is fast
//!
//! - A queue on a link of constant rate is first in, first out, so that a frame's departure is booked when it arrives. No
//!   occurrence is spent on departures, memory is given back when the queue is next settled, and of each link only the next
//!   arrival is pending: a hop costs one occurrence. Outputs that PAUSE can stop, or that have rings, spend one more
//!   on each frame that had to wait.
//! - Occurrences lie in a timing wheel of two levels; a link owns its place in it.
//! - A frame is copied from port to port along a path found beforehand; its segment stays where it is.
//! - Timers are lazy: a connection has one pending occurrence, which is re-armed only when it comes.

#![forbid(unsafe_code)]

mod capture;
mod connect;
mod diatcp;
mod error;
mod fabric;
mod ictcp;
mod index;
mod lists;
mod m21;
mod occurrence;
mod pacer;
mod prefetch;
mod random;
mod run;
mod schedule;
mod sird;
mod speed;
mod stack;
mod sweep;
mod techniques;
mod workload;
mod world;

pub use capture::{Capture, Tapped};
pub use error::Error;
pub use run::{Control, End, Outcome, run};
pub use sweep::{Point, sweep};

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
//! - A queue on a link of constant rate is first in, first out, so that a frame's departure is known when it is accepted.
//!   No occurrence is spent on departures, memory is released when somebody looks, and of each link only the next
//!   arrival is pending: a hop costs one occurrence.
//! - Occurrences lie in a timing wheel of two levels; a link owns its place in it.
//! - A frame is 24 bytes that are copied from port to port along a path found beforehand; its segment stays where it is. The
//!   first frame of a link lies in its port, the others in a ring; what a hop needs of a port is two cache lines.
//! - Timers are lazy: one pending look a connection, re-armed only when it comes.
//! - What the next delivery on a link needs is prefetched when it comes near, and lies in the order of use.
//!
//! # What the time goes into
//!
//! Of some 530 instructions a hop of the thesis' rack with credits, two fifths are spent on links, queues and the wheel,
//! the rest in TCP, the roles and the delivery of messages. In time it is first of all cache misses (6 of the first level
//! a hop, 1.2 of the second) and branches that no predictor can know (4 a hop); `docs/simulator.md` says how measured.

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
mod memories;
mod occurrence;
mod pacer;
mod prefetch;
mod random;
mod rings;
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

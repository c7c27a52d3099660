//! Packet-level simulation of fan-in networks.

#![forbid(unsafe_code)]

mod capture;
mod error;
mod fabric;
mod ideal;
mod memories;
pub mod network;
mod random;
mod run;
mod schedule;
mod speed;
mod stack;
mod sweep;
pub mod tcp;
pub mod topology;
mod workload;
mod world;

pub use capture::{Capture, Tapped};
pub use error::Error;
pub use run::{Control, End, Outcome, run};
pub use sweep::{Point, sweep};

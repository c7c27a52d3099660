//! Packet-level simulation of fan-in networks.

#![forbid(unsafe_code)]

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

pub use error::Error;
pub use run::{Capture, Control, End, Outcome, run};
pub use sweep::{Point, sweep};
pub use world::Tapped;


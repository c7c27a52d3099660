//! Packet-level simulation of fan-in networks.

#![forbid(unsafe_code)]

mod error;
mod fabric;
mod memories;
pub mod network;
pub mod random;
mod schedule;
pub mod tcp;
pub mod topology;
pub mod workload;
mod world;

pub use error::Error;


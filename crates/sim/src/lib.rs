//! Packet-level simulation of fan-in networks.

#![forbid(unsafe_code)]

pub mod tcp;

//! The data path of one worker, without threads and clocks.
//!
//! `switch/path.rs` is the path of one frame, top to bottom: receive, parse, learn and look up, classify, admit, queue,
//! transmit. Each step calls one of these parts with private fields:
//!
//! - `ports.rs`: a port's VLANs, storm control and counters.
//! - `forwarding.rs`, `stations.rs`: the stations' ports, and the output of a frame.
//! - `rules.rs`, `classify/`: the ring of a frame at its output.
//! - `outputs.rs`, `output.rs`, `buffers.rs`: admission, queues and departures.
//! - `pause.rs`, `m21.rs`, `impair.rs`: flow control, M21TCP windows, link impairments.
//!
//! Ten functions of this path are `inline(always)`; without that, plain switching is slower.

mod buffers;
mod classify;
mod forwarding;
mod impair;
mod m21;
mod output;
mod outputs;
mod pause;
mod ports;
mod rules;
mod stations;
mod storm;
mod switch;
mod timers;

pub use m21::{M21_ECHO, M21_FORWARD, M21_KIND};
pub use switch::{Activity, Switch};

#[cfg(test)]
mod churn_tests;
#[cfg(test)]
mod served_first_tests;
#[cfg(test)]
mod verdicts_tests;

//! The data path of one worker, without threads and clocks.
//!
//! `switch/path.rs` is the way of one frame, top to bottom: receive, parse, learn and look up, classify, admit, queue, transmit. Each
//! step calls one of these parts, whose fields are private:
//!
//! - `ports.rs`: a port's VLANs, storm control and counters.
//! - `forwarding.rs`, `stations.rs`: where stations are, and which output a frame leaves by.
//! - `rules.rs`, `classify/`: which ring of its output a frame waits in.
//! - `outputs.rs`, `output.rs`, `buffers.rs`: admission, queues, and the frames that leave them.
//! - `pause.rs`, `m21.rs`, `impair.rs`: flow control, M21TCP windows, link impairments.
//!
//! Ten functions of this way are `inline(always)`: without that, plain switching takes 27 ns a frame instead of 21.

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

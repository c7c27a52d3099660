//! Runs of the simulator on this machine.
//!
//! `fanin-sim` uses no clock, no thread and no file. [`run`] reads the scenario's file of fragment sizes, estimates its memory,
//! and measures the cost of the run. [`sweep`] simulates many runs at once, one in each thread.

#![forbid(unsafe_code)]

mod causes;
mod error;
mod memory;
mod meter;
mod run;
mod sizes;
mod sweep;

pub use causes::fill_overload;
pub use error::{Error, RefusedSetting};
pub use fanin_sim::{FrameSeen, LinkCapture, RunControl, RunEnd, RunOutcome};
pub use memory::{MemoryEstimate, check_results};
pub use run::{check, run};
pub use sizes::fragment_sizes;
pub use sweep::{SweepRun, on_threads, sweep, sweep_each};

//! Records a simulated run, and makes its results from the records.
//!
//! The simulator reports observations to a [`Recorder`]: a lost frame, an arrived message, the depth of a queue. At the end the
//! simulator hands [`Finished`] the run's [`RunTotals`], and takes the tables, the summary's figures of the network and the
//! picture. Nothing here schedules, sends or queues anything, and nothing recorded changes the run.

#![forbid(unsafe_code)]

mod background;
mod capture;
mod critical_path;
mod error;
mod groups;
mod late;
mod losses;
mod picture;
mod recorder;
mod rest;
mod ring_bins;
mod samples;
mod steps;
mod summary;
mod tables;
mod timeline;
mod totals;
mod trace;

pub use background::CompletedTransfer;
pub use capture::{FrameSeen, LinkCapture};
pub use error::{RecordError, captured_port, check_samples};
pub use picture::Finished;
pub use recorder::{HoldingTechniques, Recorder};
pub use ring_bins::RingVisitor;
pub use samples::{QueueState, SAMPLES_MAX};
pub use steps::StepTimes;
pub use tables::EndStats;
pub use timeline::PortOccupancy;
pub use totals::{EndpointCounts, RunTotals};
pub use trace::{CollectedEvent, MessageStep};

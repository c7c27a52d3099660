//! The roles as processes: each drives a state machine of `fanin-dataflow` with its connections, files and timers.

mod collector;
mod logger;
mod paired;
pub mod processor;
mod readout;
pub mod settings;
mod supervisor;

pub use collector::CollectorNode;
pub use logger::LoggerNode;
pub use paired::{LogLines, PairedSupervisor};
pub use readout::ReadoutNode;
pub use supervisor::SupervisorNode;

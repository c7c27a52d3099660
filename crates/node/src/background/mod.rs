//! Background traffic as processes: plain TCP connections from readouts' hosts to collectors' hosts.
//!
//! A sink runs on the host of each collector, and a source on the host of each readout with background connections. A source
//! drives [`fanin_dataflow::BackgroundSource`]. Each transfer begins with a header; sinks discard the rest.

mod config;
mod error;
mod launch;
mod result;
mod sink;
mod source;
mod wire;

pub use config::BackgroundSystem;
pub use error::BackgroundError;
pub use launch::{BackgroundLaunch, BackgroundPlace, BackgroundRole, LiveBackground};
pub use result::{BackgroundResult, SinkResult, SourceResult, read_result};
pub use sink::receive;
pub use source::send;

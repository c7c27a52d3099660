//! Barrier workloads as processes: drives the aggregator and the senders of `fanin_dataflow` over the kernel's TCP.
//!
//! The aggregator keeps one connection to each sender for the whole run. A request has 64 bytes. An answer has no header,
//! because the aggregator knows its size.

mod aggregator;
mod config;
mod counts;
mod error;
mod launch;
mod request;
mod result;
mod sender;

pub use aggregator::aggregate;
pub use config::BarrierSystem;
pub use counts::TcpCounts;
pub use error::BarrierError;
pub use fanin_dataflow::BARRIER_REQUEST_BYTES;
pub use launch::{BarrierLaunch, BarrierPlace, BarrierRole, LiveBarrier};
pub use result::{AggregatorResult, BarrierResult, SenderResult, read_result};
pub use sender::send;

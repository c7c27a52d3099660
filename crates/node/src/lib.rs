//! The roles of a data-acquisition system as processes that really run.
//!
//! The decisions of a role are made in `fanin-dataflow`; this crate gives it sockets, files, memory and time:
//!
//! - [`config`] says which process is where, [`process`] is the life of a process, [`roles`] its work;
//! - [`transport`] chooses socket options, [`tcp`] keeps TCP's counters, and [`trace`] its windows; [`flows`]
//!   numbers connections;
//! - [`wire`] and [`codec`] bring messages, [`data`] is their content, [`source`] its origin;
//! - [`mod@unit`] and [`shared`] show events to processors, [`store`] brings them to disk, [`journal`] remembers;
//! - [`machine`] is the operating system below all of them, and may be simulated;
//! - [`barrier`] drives the barrier workloads;
//! - [`launch`] runs a whole system from one command, [`result`](mod@result) and [`ideal`] make its figures, and [`audit`](mod@audit) proves that it
//!   kept its promises.
//!
//! Each thread of a process waits for one thing. The first waits for messages and the time; others wait for the
//! disk, for one processor each, and for scrapes of the metrics.

#![deny(unsafe_code)]

pub mod audit;
pub mod barrier;
pub mod clock;
pub mod codec;
pub mod config;
pub mod data;
pub mod explain;
pub mod flows;
pub mod http;
pub mod ideal;
pub mod journal;
mod key;
pub mod launch;
mod lines;
pub mod log;
pub mod machine;
pub mod metrics;
pub mod names;
pub mod node;
pub mod process;
mod proof;
mod replaced;
pub mod result;
pub mod resume;
pub mod roles;
#[allow(unsafe_code, reason = "mappings of shared memory")]
pub mod shared;
pub mod source;
pub mod store;
pub mod succession;
pub mod tcp;
pub mod trace;
pub mod transport;
pub mod unit;
pub mod wake;
pub mod wire;

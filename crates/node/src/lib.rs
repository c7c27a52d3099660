//! The roles of a data-acquisition system as processes of an operating system.
//!
//! The state machines of the roles are in `fanin-dataflow`; this crate drives them with sockets, files, memory and time:
//!
//! - [`config`] reads the file of a system, [`process`] is the main loop of a process, [`roles`] are its state machines;
//! - [`transport`] sets socket options, [`techniques`] has those of each congestion control, [`tcp`] keeps TCP's counters,
//!   [`trace`] records its windows, and [`flows`] numbers connections;
//! - [`wire`] carries messages, [`codec`] encodes them, [`data`] is their payload, and [`source`] supplies the fragments;
//! - [`mod@unit`] and [`shared`] pass events to processors, [`store`] writes events to disk, [`journal`] writes records;
//! - [`machine`] is the operating system below all of them, and may be simulated;
//! - [`barrier`] drives the barrier workloads;
//! - [`launch`] runs a whole system from one command, [`result`](mod@result) and [`ideal`] compute its figures, and
//!   [`audit`](mod@audit) proves that no event was lost.
//!
//! Each thread of a process waits for one kind of input. The main thread waits for messages and deadlines. Other threads
//! wait for the disk, for one processor each, and for HTTP requests for metrics.

#![deny(unsafe_code)]

pub mod audit;
pub mod background;
pub mod barrier;
mod child;
pub mod clock;
pub mod codec;
pub mod config;
pub mod data;
pub mod explain;
pub mod flows;
mod free_space;
pub mod http;
pub mod ideal;
pub mod journal;
mod key;
pub mod launch;
mod lines;
mod lock;
pub mod log;
pub mod machine;
pub mod metrics;
pub mod names;
pub mod node;
pub mod panic;
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
pub mod techniques;
pub mod trace;
pub mod transport;
pub mod unit;
pub mod wake;
pub mod wire;

//! The lossless software switch: ordinary Ethernet switching, with one deep queue in memory for each data collector.
//!
//! Jereczek, "A lossless switch for data acquisition networks" (LCN 2015), and Jereczek et al., "Approaching incast
//! congestion with multi-host Ethernet controllers". Queues, buffering schemes, token buckets and markers come from
//! `fanin-queueing`, as in the simulator; this crate adds ports, forwarding and operation.
//!
//! - [`config`]: the TOML file; problems name line and column.
//! - [`Switch`]: the data path of one worker, without threads and clocks: `poll(now)` makes one round over its ports.
//! - [`Driver`]: a set of ports that move frames without copying them; [`MemoryPorts`] are in memory.
//! - [`XdpPorts`]: AF_XDP on the kernel's interfaces. [`Running`]: one thread for each worker.
//! - [`Command`] and [`Snapshot`]: changes of a running switch, and its counters.
//! - [`control`]: commands and snapshots over a local socket and HTTP, with metrics; [`capture`]: frames as pcapng.

#![warn(missing_docs)]

mod address;
pub mod capture;
mod chunk;
mod command;
pub mod config;
pub mod control;
mod datapath;
#[cfg(feature = "dpdk")]
mod dpdk;
mod driver;
mod frame;
mod memory;
mod pool;
mod prefetch;
mod random;
mod run;
mod schema;
mod service;
mod snapshot;
mod sync;
mod sys;
mod worker;
mod workers;
mod xdp;

pub use address::{AddressError, IpPrefix, Mac, MacPrefix, Vlan};
pub use chunk::HEADROOM;
pub use command::{Command, CommandError, Control, PortChange, Reply};
pub use config::Config;
pub use datapath::{Activity, M21_ECHO, M21_FORWARD, M21_KIND, Switch};
#[cfg(feature = "dpdk")]
pub use dpdk::{DpdkError, DpdkFrame, DpdkPorts};
pub use driver::{BURST, Driver, Received};
pub use frame::{ETHERNET_HEADER, Ethernet, IpHeader, TAG_BYTES, checksum, checksum_update};
pub use memory::{CirculatingPorts, MemoryPort, MemoryPorts};
pub use pool::{Buffer, Pool};
pub use run::{Running, StartError, SwitchResult};
pub use service::ServiceNotifier;
pub use snapshot::{
    Cause, Dropped, HISTOGRAM_BUCKETS, Histogram, PortSnapshot, QueueSnapshot, RingSnapshot, RuleSnapshot,
    Snapshot, Station, Tally, WorkerSnapshot,
};
pub use xdp::{OpenError, XdpPorts};

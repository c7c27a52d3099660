//! Limits of a configuration.

use fanin_units::{Bytes, Rate};

/// The most ports of a switch.
pub const PORTS_MAX: usize = 1024;
/// The most workers.
pub const WORKERS_MAX: usize = 64;
/// The most packet memory.
pub const MEMORY_MAX: Bytes = Bytes::new(64 << 30);
/// The longest name of a port, ring or rule.
pub const NAME_BYTES_MAX: usize = 64;
/// The assumed rate of a port without a configured one: for RED's average while the queue is empty, and for the quanta of
/// PAUSE.
pub(crate) const RATE_ASSUMED: Rate = Rate::new(10_000_000_000);

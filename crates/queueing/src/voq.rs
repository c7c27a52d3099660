//! Virtual output queues: input modules with a packet memory each, and in it one queue for every output.
//!
//! The core routers of thesis §4.2.1 have modules of 8 ports with 1.5 GB each.

use alloc::vec;
use alloc::vec::Vec;

use fanin_units::Bytes;

use crate::layout::{Layout, PoolBy};

/// The occupancy of each virtual output queue, and the limit that all of them have.
#[derive(Debug, Clone)]
pub(crate) struct VirtualOutputQueues {
    /// By pool, then by output.
    bytes: Vec<u64>,
    outputs: usize,
    limit: u64,
}

impl VirtualOutputQueues {
    pub(crate) fn new(pools: usize, outputs: usize, limit: Bytes) -> Self {
        Self { bytes: vec![0; pools * outputs], outputs, limit: limit.get() }
    }

    #[inline]
    const fn place(&self, pool: usize, output: usize) -> usize {
        pool * self.outputs + output
    }

    /// Returns true if the queue of a pool towards an output has no room for `charge` bytes.
    #[inline]
    pub(crate) fn refuses(&self, pool: usize, output: usize, charge: u64) -> bool {
        self.bytes[self.place(pool, output)] + charge > self.limit
    }

    #[inline]
    pub(crate) fn free(&self, pool: usize, output: usize) -> u64 {
        self.limit.saturating_sub(self.bytes[self.place(pool, output)])
    }

    #[inline]
    pub(crate) fn add(&mut self, pool: usize, output: usize, charge: u64) {
        let place = self.place(pool, output);
        self.bytes[place] += charge;
    }

    /// Adds `charge` bytes to the queue of a pool towards an output if it has room for them.
    #[inline]
    pub(crate) fn add_if_free(&mut self, pool: usize, output: usize, charge: u64) -> bool {
        let place = self.place(pool, output);
        let bytes = &mut self.bytes[place];
        let is_free = *bytes + charge <= self.limit;
        if is_free {
            *bytes += charge;
        }
        is_free
    }

    #[inline]
    pub(crate) fn remove(&mut self, pool: usize, output: usize, charge: u64) {
        let place = self.place(pool, output);
        assert!(charge <= self.bytes[place], "a virtual output queue gives back more than it took");
        self.bytes[place] -= charge;
    }

    /// Bytes in all queues of a pool.
    pub(crate) fn total(&self, pool: usize) -> u64 {
        self.bytes[self.place(pool, 0)..self.place(pool + 1, 0)].iter().sum()
    }
}

impl Layout {
    /// Input modules with a packet memory each and one virtual output queue for every output.
    ///
    /// Only the memory is modelled: traffic to one output never delays a module's traffic to another.
    pub fn modules(ports: usize, ports_per_module: usize, module: Bytes, voq_limit: Bytes) -> Self {
        let modules = ports.div_ceil(ports_per_module.max(1));
        Self {
            pools: vec![module; modules],
            pool_by: PoolBy::Input((0..ports).map(|port| port / ports_per_module.max(1)).collect()),
            pools_are_modules: true,
            voq_limit: Some(voq_limit),
            ..Self::unlimited(ports)
        }
    }
}

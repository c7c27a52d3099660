//! Shared memory: pools that several ports use, and limits on each input port.
//!
//! Switch B of thesis §4.2.1 has several pools, each charged by the input port; figure 5.2b of the thesis has one for all ports.

use alloc::vec;
use alloc::vec::Vec;

use fanin_units::Bytes;

use crate::dynamic_threshold::DynamicThreshold;
use crate::frame::{AdmissionLimit, MemoryLevel};
use crate::layout::{Layout, PoolBy};
use crate::voq::VirtualOutputQueues;

/// The accounts of a switch that frames of several outputs are charged to.
#[derive(Debug, Clone)]
pub(crate) struct SharedAccounts {
    inputs: Vec<Account>,
    pools: Vec<Account>,
    /// The pool of each port, by input or by output; empty without pools.
    pool_of: Vec<u32>,
    pool_by_input: bool,
    counts_inputs: bool,
    pool_limit_name: AdmissionLimit,
    threshold: Option<DynamicThreshold>,
    voqs: Option<VirtualOutputQueues>,
}

/// An input port or a pool.
#[derive(Debug, Clone)]
struct Account {
    level: MemoryLevel,
    limit: u64,
}

impl Account {
    const fn new(limit: Bytes) -> Self {
        Self { level: MemoryLevel { bytes: 0, bytes_max: 0 }, limit: limit.get() }
    }

    #[inline]
    const fn refuses(&self, charge: u64) -> bool {
        self.level.bytes + charge > self.limit
    }

    #[inline]
    const fn free(&self) -> u64 {
        self.limit.saturating_sub(self.level.bytes)
    }

    /// Returns true if `charge` bytes more would break the limit or set a high-water mark.
    #[inline]
    fn would_rise(&self, charge: u64) -> bool {
        self.level.bytes + charge > self.level.bytes_max.min(self.limit)
    }
}

impl SharedAccounts {
    /// The shared accounts of a checked layout; `None` if there is no limit except each output's own.
    pub(crate) fn new(layout: &Layout) -> Option<Self> {
        if !layout.couples_outputs() {
            return None;
        }
        let (pools, pool_of, pool_by_input): (&[Bytes], &[usize], bool) = match &layout.pool_by {
            PoolBy::Nothing => (&[], &[], false),
            PoolBy::Output(pool_of) => (&layout.pools, pool_of, false),
            PoolBy::Input(pool_of) => (&layout.pools, pool_of, true),
        };
        let outputs = layout.output_limits.len();
        Some(Self {
            inputs: layout.input_limits.iter().map(|&limit| Account::new(limit)).collect(),
            pools: pools.iter().map(|&size| Account::new(size)).collect(),
            pool_of: pool_of.iter().map(|&pool| pool as u32).collect(),
            pool_by_input,
            counts_inputs: layout.counts_inputs(),
            pool_limit_name: if layout.pools_are_modules {
                AdmissionLimit::Module
            } else {
                AdmissionLimit::Pool
            },
            threshold: layout.alpha.map(DynamicThreshold::new),
            voqs: layout.voq_limit.map(|limit| VirtualOutputQueues::new(pools.len(), outputs, limit)),
        })
    }

    /// The pool that a frame from `input` to `output` is charged to.
    #[inline]
    fn pool_of(&self, input: usize, output: usize) -> Option<usize> {
        self.pool_of.get(if self.pool_by_input { input } else { output }).map(|&pool| pool as usize)
    }

    /// The first limit that refuses a frame taking `charge` bytes, while `queued` bytes are queued for its output.
    #[inline]
    pub(crate) fn refusal(
        &self,
        input: usize,
        output: usize,
        queued: u64,
        charge: u64,
    ) -> Option<AdmissionLimit> {
        if self.counts_inputs && self.inputs[input].refuses(charge) {
            return Some(AdmissionLimit::Input);
        }
        let pool = self.pool_of(input, output)?;
        let account = &self.pools[pool];
        if self.voqs.as_ref().is_some_and(|voqs| voqs.refuses(pool, output, charge)) {
            return Some(AdmissionLimit::Voq);
        }
        if self.threshold.is_some_and(|threshold| threshold.refuses(queued, account.free())) {
            return Some(AdmissionLimit::Dynamic);
        }
        account.refuses(charge).then_some(self.pool_limit_name)
    }

    /// Free memory for a frame, in bytes, as [`Self::refusal`] counts it.
    #[inline]
    pub(crate) fn free(&self, input: usize, output: usize, queued: u64) -> u64 {
        let free = if self.counts_inputs { self.inputs[input].free() } else { u64::MAX };
        let Some(pool) = self.pool_of(input, output) else { return free };
        let in_pool = self.pools[pool].free();
        if self.threshold.is_some_and(|threshold| threshold.refuses(queued, in_pool)) {
            return 0;
        }
        let in_voq = self.voqs.as_ref().map_or(u64::MAX, |voqs| voqs.free(pool, output));
        free.min(in_pool).min(in_voq)
    }

    /// Returns true if settling the departures of other outputs first could change the verdict on a frame, or a high-water
    /// mark.
    /// Freed memory only loosens a limit, so a frame that passes now would pass then.
    #[inline]
    pub(crate) fn depends_on_others(&self, input: usize, output: usize, queued: u64, charge: u64) -> bool {
        if self.counts_inputs && self.inputs[input].would_rise(charge) {
            return true;
        }
        let Some(pool) = self.pool_of(input, output) else { return false };
        let account = &self.pools[pool];
        account.would_rise(charge)
            || self.threshold.is_some_and(|threshold| threshold.refuses(queued, account.free()))
    }

    /// Charges a frame if it breaks no limit and sets no high-water mark.
    #[inline(always)]
    pub(crate) fn admit_below_marks(
        &mut self,
        input: usize,
        output: usize,
        queued: u64,
        charge: u64,
    ) -> bool {
        if self.counts_inputs && self.inputs[input].would_rise(charge) {
            return false;
        }
        if let Some(pool) = self.pool_of(input, output) {
            let account = &mut self.pools[pool];
            if account.would_rise(charge)
                || self.threshold.is_some_and(|threshold| threshold.refuses(queued, account.free()))
            {
                return false;
            }
            if let Some(voqs) = &mut self.voqs
                && !voqs.add_if_free(pool, output, charge)
            {
                return false;
            }
            account.level.bytes += charge;
        }
        if self.counts_inputs {
            self.inputs[input].level.bytes += charge;
        }
        true
    }

    /// Charges a frame.
    #[inline]
    pub(crate) fn admit(&mut self, input: usize, output: usize, charge: u64) {
        if self.counts_inputs {
            self.inputs[input].level.add(charge);
        }
        let Some(pool) = self.pool_of(input, output) else { return };
        self.pools[pool].level.add(charge);
        if let Some(voqs) = &mut self.voqs {
            voqs.add(pool, output, charge);
        }
    }

    /// Gives back the memory of a frame.
    #[inline]
    pub(crate) fn depart(&mut self, input: usize, output: usize, charge: u64) {
        if self.counts_inputs {
            self.inputs[input].level.remove(charge);
        }
        let Some(pool) = self.pool_of(input, output) else { return };
        self.pools[pool].level.remove(charge);
        if let Some(voqs) = &mut self.voqs {
            voqs.remove(pool, output, charge);
        }
    }

    pub(crate) fn set_pool_size(&mut self, pool: usize, size: Bytes) {
        self.pools[pool].limit = size.get();
    }

    pub(crate) fn pools_len(&self) -> usize {
        self.pools.len()
    }

    pub(crate) fn input(&self, input: usize) -> Option<&MemoryLevel> {
        self.counts_inputs.then(|| &self.inputs[input].level)
    }

    pub(crate) fn pool(&self, pool: usize) -> &MemoryLevel {
        &self.pools[pool].level
    }

    pub(crate) fn reset_marks(&mut self) {
        self.inputs.iter_mut().chain(&mut self.pools).for_each(|account| account.level.reset_marks());
    }

    /// Asserts that each account adds up to what is `queued` at all outputs together.
    ///
    /// # Panics
    /// If it does not.
    pub(crate) fn assert_conserved(&self, queued: u64) {
        let total = |accounts: &[Account]| accounts.iter().map(|account| account.level.bytes).sum::<u64>();
        if self.counts_inputs {
            assert_eq!(total(&self.inputs), queued, "the inputs' occupancy is not what is queued");
        }
        if !self.pools.is_empty() {
            assert_eq!(total(&self.pools), queued, "the pools' occupancy is not what is queued");
        }
        for (number, pool) in self.pools.iter().enumerate() {
            let in_voqs = self.voqs.as_ref().map_or(pool.level.bytes, |voqs| voqs.total(number));
            assert_eq!(in_voqs, pool.level.bytes, "virtual output queues do not add up to their module");
        }
    }
}

impl Layout {
    /// One pool for all ports (thesis §5.1.3, figure 5.2b).
    pub fn shared(ports: usize, pool: Bytes) -> Self {
        Self { pools: vec![pool], pool_by: PoolBy::Output(vec![0; ports]), ..Self::unlimited(ports) }
    }

    /// Several pools, each shared by the input ports assigned to it, with the same limit on every port's
    /// input and output queue (switch B of thesis §4.2.1).
    pub fn shared_by_input(pool_of_input: Vec<usize>, pools: Vec<Bytes>, port_limit: Bytes) -> Self {
        let ports = pool_of_input.len();
        Self {
            output_limits: vec![port_limit; ports],
            input_limits: vec![port_limit; ports],
            pools,
            pool_by: PoolBy::Input(pool_of_input),
            ..Self::unlimited(0)
        }
    }
}

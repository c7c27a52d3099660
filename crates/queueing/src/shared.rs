//! Shared memory: pools that several ports use, and limits on each input port.
//!
//! Switch B of thesis §4.2.1 has several pools, charged by input port; figure 5.2b of the thesis has one for all ports.
//!
//! The file admits frames and counts their bytes. In the simulator `drive/booked.rs` books each departure, and the frame is
//! at once on its link (`sim/src/fabric/link.rs`). In the live switch it waits in ring 0 of its port (`rings.rs`).

use alloc::vec;
use alloc::vec::Vec;

use fanin_units::Bytes;

use crate::account::{Account, assert_holds};
use crate::buffering::BufferingSettings;
use crate::frame::{AdmissionLimit, MemoryOccupancy};
use crate::layout::{Layout, LayoutError};

/// The pool that a frame is charged to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PoolBy {
    /// The pool of its output port; indexed by port.
    Output(Vec<usize>),
    /// The pool of its input port; indexed by port.
    Input(Vec<usize>),
}

impl PoolBy {
    /// The pool that a frame from `input` to `output` is charged to.
    #[inline]
    fn pool_of(&self, input: usize, output: usize) -> usize {
        match self {
            Self::Output(pools) => pools[output],
            Self::Input(pools) => pools[input],
        }
    }
}

/// The same limits on every port; [`Bytes::MAX`] is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortLimits {
    /// The number of ports.
    pub ports: usize,
    /// The most memory that frames from one input may take.
    pub input: Bytes,
    /// The most memory that frames to one output may take.
    pub output: Bytes,
}

/// Settings of shared memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedSettings {
    /// The sizes of the pools.
    pub sizes: Vec<Bytes>,
    /// The rule that assigns a frame to a pool.
    pub by: PoolBy,
    /// The most memory that frames from each input port may take; [`Bytes::MAX`] is no limit.
    pub input_limits: Vec<Bytes>,
}

impl SharedSettings {
    /// The pool that a frame from `input` to `output` is charged to.
    #[inline]
    pub(crate) fn pool_of(&self, input: usize, output: usize) -> usize {
        self.by.pool_of(input, output)
    }

    /// The size of the smallest pool: one output cannot hold more.
    pub(crate) fn pool_min(&self) -> Bytes {
        min_of(&self.sizes)
    }

    /// The sum of the pools to which frames from `input` to any output are charged.
    pub(crate) fn pools_of_input(&self, input: usize) -> Bytes {
        let outputs = 0..self.input_limits.len();
        let is_used = |pool| outputs.clone().any(|output| self.pool_of(input, output) == pool);
        let used = self.sizes.iter().enumerate().filter(|&(pool, _)| is_used(pool));
        used.fold(Bytes::ZERO, |sum, (_, &size)| sum.saturating_add(size))
    }

    /// The bytes that every pool and every input admits.
    pub(crate) fn room(&self) -> Bytes {
        self.pool_min().min(min_of(&self.input_limits))
    }

    /// Returns an error if a port has no pool or no limit, or if its pool does not exist.
    pub(crate) fn check(&self, ports: usize) -> Result<(), LayoutError> {
        let (PoolBy::Output(assigned) | PoolBy::Input(assigned)) = &self.by;
        if let Some(&actual) =
            [assigned.len(), self.input_limits.len()].iter().find(|&&actual| actual != ports)
        {
            return Err(LayoutError::Assignment { actual, needed: ports });
        }
        let pools = self.sizes.len();
        match assigned.iter().enumerate().find(|&(_, &pool)| pool >= pools) {
            Some((port, &pool)) => Err(LayoutError::Pool { port, pool, pools }),
            None => Ok(()),
        }
    }
}

fn min_of(sizes: &[Bytes]) -> Bytes {
    sizes.iter().copied().min().unwrap_or(Bytes::MAX)
}

/// The accounts of shared memory. A frame must meet the limit of its input and fit its pool.
#[derive(Debug, Clone)]
pub(crate) struct SharedAccounts {
    pools: Vec<Account>,
    by: PoolBy,
    inputs: Vec<Account>,
    limits_inputs: bool,
}

impl SharedAccounts {
    pub(crate) fn new(settings: &SharedSettings) -> Self {
        Self {
            pools: settings.sizes.iter().copied().map(Account::new).collect(),
            by: settings.by.clone(),
            inputs: settings.input_limits.iter().copied().map(Account::new).collect(),
            limits_inputs: settings.input_limits.iter().any(|&limit| limit != Bytes::MAX),
        }
    }

    #[inline]
    pub(crate) fn pool_of(&self, input: usize, output: usize) -> usize {
        self.by.pool_of(input, output)
    }

    /// The limit that refuses a frame, if one does.
    #[inline]
    pub(crate) fn refusal(&self, input: usize, output: usize, charge: u64) -> Option<AdmissionLimit> {
        if self.limits_inputs && self.inputs[input].refuses(charge) {
            return Some(AdmissionLimit::Input);
        }
        self.pools[self.pool_of(input, output)].refuses(charge).then_some(AdmissionLimit::Pool)
    }

    /// Free memory for a frame, in bytes, by the rules of [`Self::refusal`].
    #[inline]
    pub(crate) fn free(&self, input: usize, output: usize) -> u64 {
        let free = self.pools[self.pool_of(input, output)].free();
        if self.limits_inputs { free.min(self.inputs[input].free()) } else { free }
    }

    /// Returns true if earlier departures could change the verdict on a frame, or a high-water mark.
    #[inline]
    pub(crate) fn depends_on_departures(&self, input: usize, output: usize, charge: u64) -> bool {
        (self.limits_inputs && self.inputs[input].depends_on_departures(charge))
            || self.pools[self.pool_of(input, output)].depends_on_departures(charge)
    }

    /// Charges a frame and returns true. Returns false without charging it if departures that are not settled yet could
    /// change the verdict or a high-water mark.
    #[inline]
    pub(crate) fn admit_below_high_water(&mut self, input: usize, output: usize, charge: u64) -> bool {
        let is_below = !self.depends_on_departures(input, output, charge);
        if is_below {
            self.admit(input, output, charge);
        }
        is_below
    }

    /// Charges a frame that no limit refuses.
    #[inline]
    pub(crate) fn admit(&mut self, input: usize, output: usize, charge: u64) {
        let pool = self.pool_of(input, output);
        self.pools[pool].admit(charge);
        if self.limits_inputs {
            self.inputs[input].admit(charge);
        }
    }

    /// Frees the memory of a frame.
    #[inline]
    pub(crate) fn depart(&mut self, input: usize, output: usize, charge: u64) {
        let pool = self.pool_of(input, output);
        self.pools[pool].depart(charge);
        if self.limits_inputs {
            self.inputs[input].depart(charge);
        }
    }

    pub(crate) fn pools(&self) -> usize {
        self.pools.len()
    }

    pub(crate) fn pool(&self, pool: usize) -> &Account {
        &self.pools[pool]
    }

    pub(crate) fn set_pool_size(&mut self, pool: usize, size: Bytes) {
        self.pools[pool].set_limit(size);
    }

    pub(crate) fn set_input_limit(&mut self, input: usize, limit: Bytes) {
        assert!(self.limits_inputs, "an input is asked for in a memory without input limits");
        self.inputs[input].set_limit(limit);
    }

    /// The occupancy of an input port; `None` without input limits.
    pub(crate) fn input(&self, input: usize) -> Option<&MemoryOccupancy> {
        self.limits_inputs.then(|| self.inputs[input].level())
    }

    pub(crate) fn reset_high_water_marks(&mut self) {
        self.pools.iter_mut().chain(&mut self.inputs).for_each(Account::reset_high_water_marks);
    }

    /// Asserts that each pool and input holds the bytes of its frames.
    ///
    /// # Panics
    /// If one holds more or fewer bytes.
    pub(crate) fn assert_holds(&self, frames: &[(usize, usize, u64)]) {
        assert_holds(&self.pools, "pool", frames, |input, output| self.pool_of(input, output));
        if self.limits_inputs {
            assert_holds(&self.inputs, "input", frames, |input, _| input);
        }
    }
}

impl Layout {
    /// One pool for all ports (thesis §5.1.3, figure 5.2b).
    pub fn shared(ports: usize, pool: Bytes) -> Self {
        let by = PoolBy::Output(vec![0; ports]);
        let pools = SharedSettings { sizes: vec![pool], by, input_limits: vec![Bytes::MAX; ports] };
        Self::new(vec![Bytes::MAX; ports], BufferingSettings::Shared(pools))
    }

    /// A pool of `pool` bytes for the first `split` ports and one for the others, or one for all ports if `split` is 0. Frames are
    /// charged by input port or by output port.
    pub fn shared_split(pool: Bytes, split: usize, by_input: bool, port_limits: PortLimits) -> Self {
        let PortLimits { ports, input, output } = port_limits;
        let pool_of = (0..ports).map(|port| usize::from(split > 0 && port >= split)).collect();
        let pools = SharedSettings {
            sizes: vec![pool; if split > 0 && ports > split { 2 } else { 1 }],
            by: if by_input { PoolBy::Input(pool_of) } else { PoolBy::Output(pool_of) },
            input_limits: vec![input; ports],
        };
        Self::new(vec![output; ports], BufferingSettings::Shared(pools))
    }
}

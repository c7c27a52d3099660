//! The memory of plain queues: one worker's accounts, and those that all workers share.

use std::sync::Arc;

use fanin_queueing::{
    AdmissionLimit, Aqm, Counters, Frame, FrameCount, Layout, LayoutError, Memory, Occupancy, StoredFrame,
    Verdict,
};
use fanin_units::{Bytes, Instant};

use crate::config::Config;
use crate::workers::{CommonAccount, SharedCounts};

/// [`Memory`] of one worker, which decides about every frame of a plain queue.
///
/// An output and its virtual output queues belong to one worker. Pools, modules and inputs may be charged by several
/// workers. A worker then reserves a frame's bytes in the [`SharedCounts`] before its own accounts decide. The other
/// workers' bytes are subtracted from the limits of these accounts, so that no account is ever overdrawn.
#[derive(Debug)]
pub(super) struct Buffers {
    memory: Memory,
    /// Present if several workers share an account.
    common: Option<Common>,
}

/// The accounts that several workers charge.
#[derive(Debug)]
struct Common {
    counts: Arc<SharedCounts>,
    layout: Layout,
    /// Size of each pool or module.
    pool_sizes: Vec<Bytes>,
    /// Limit of each input port; empty without limits on inputs.
    input_limits: Vec<Bytes>,
}

impl Common {
    /// Returns the frame's accounts, each with its limit and this worker's bytes in it.
    fn accounts(
        &self,
        memory: &Memory,
        input: usize,
        output: usize,
    ) -> [Option<(CommonAccount, u64, u64)>; 2] {
        let pool =
            self.layout.buffering().pool_of(input, output).map(|pool| {
                (CommonAccount::Pool(pool), self.pool_sizes[pool].get(), memory.pool(pool).bytes)
            });
        let input = memory
            .input(input)
            .map(|own| (CommonAccount::Input(input), self.input_limits[input].get(), own.bytes));
        [pool, input]
    }
}

impl Buffers {
    pub(super) fn new(config: &Config, shared: &Arc<SharedCounts>) -> Result<Self, LayoutError> {
        let layout = config.layout();
        let memory = Memory::new(&layout)?;
        let is_common = config.workers() > 1 && layout.couples_outputs();
        let common = is_common.then(|| Common {
            counts: Arc::clone(shared),
            pool_sizes: layout.pool_sizes(),
            input_limits: layout.input_limits().unwrap_or_default().to_vec(),
            layout,
        });
        Ok(Self { memory, common })
    }

    /// Sets the marker of an output, as [`Memory::set_aqm`].
    pub(super) fn set_aqm(&mut self, output: usize, aqm: Aqm) {
        self.memory.set_aqm(output, aqm);
    }

    /// Admits or refuses a frame, as [`Memory::arrive`] does. First its bytes are reserved in the accounts that workers
    /// share.
    #[inline]
    pub(super) fn arrive(
        &mut self,
        now: Instant,
        input: usize,
        output: usize,
        frame: Frame,
        draw: impl FnOnce() -> u32,
    ) -> Verdict {
        if self.common.is_none() {
            return self.memory.arrive(now, input, output, frame, draw);
        }
        self.arrive_in_common(now, input, output, frame, draw)
    }

    #[inline(never)]
    fn arrive_in_common(
        &mut self,
        now: Instant,
        input: usize,
        output: usize,
        frame: Frame,
        draw: impl FnOnce() -> u32,
    ) -> Verdict {
        let charge = self.memory.charge(frame.bytes);
        self.see_common(input, output, |counts, account| counts.take(account, charge));
        let verdict = self.memory.arrive(now, input, output, frame, draw);
        if let Verdict::Dropped(_) = verdict {
            self.give(input, output, frame.bytes);
        }
        verdict
    }

    /// Sets the limits of a frame's accounts to the memory that the other workers leave free. `taken` returns the occupancy
    /// of an account, over all workers.
    fn see_common(
        &mut self,
        input: usize,
        output: usize,
        taken: impl Fn(&SharedCounts, CommonAccount) -> u64,
    ) {
        let Self { memory, common: Some(common) } = self else { return };
        for (account, limit, own) in common.accounts(memory, input, output).into_iter().flatten() {
            let others = taken(&common.counts, account).checked_sub(own);
            let others = others.expect("this worker's bytes are part of the common account");
            let left = Bytes::new(limit.saturating_sub(others));
            match account {
                CommonAccount::Pool(pool) => memory.set_pool_size(pool, left),
                CommonAccount::Input(input) => memory.set_input_limit(input, left),
            }
        }
    }

    /// Returns the longest frame that would be accepted now, as [`Memory::room`] does, if no worker frees memory.
    #[inline]
    pub(super) fn room(&mut self, input: usize, output: usize) -> u32 {
        self.see_common(input, output, SharedCounts::taken);
        self.memory.room(input, output)
    }

    /// Counts frames that left without being stored, as [`Memory::count_cut_through`].
    #[inline]
    pub(super) fn count_cut_through(&mut self, at: Instant, output: usize, passed: FrameCount) {
        self.memory.count_cut_through(at, output, passed);
    }

    /// Takes back an admission, as [`Memory::withdraw`], in the shared accounts, too.
    pub(super) fn withdraw(&mut self, input: usize, output: usize, bytes: u32, limit: AdmissionLimit) {
        self.memory.withdraw(input, output, bytes, limit);
        self.give(input, output, bytes);
    }

    /// Frees the memory of a frame that left, as [`Memory::depart`], in the shared accounts, too.
    #[inline]
    pub(super) fn depart(&mut self, at: Instant, input: usize, output: usize, bytes: u32) {
        self.memory.depart(at, input, output, bytes);
        self.give(input, output, bytes);
    }

    /// Returns the bytes of a frame to the shared accounts.
    #[inline]
    fn give(&self, input: usize, output: usize, bytes: u32) {
        let Some(common) = &self.common else { return };
        let charge = self.memory.charge(bytes);
        for (account, ..) in common.accounts(&self.memory, input, output).into_iter().flatten() {
            common.counts.give(account, charge);
        }
    }

    /// Returns the occupancy of an output.
    #[inline]
    pub(super) fn occupancy(&self, output: usize) -> &Occupancy {
        self.memory.occupancy(output)
    }

    /// Returns the counters of an output.
    pub(super) fn counters(&self, output: usize) -> &Counters {
        self.memory.counters(output)
    }

    /// Starts all high-water marks afresh from the present occupancy.
    pub(super) fn reset_high_water_marks(&mut self) {
        self.memory.reset_high_water_marks();
    }

    /// Asserts that the occupancies of outputs, inputs and pools agree with the frames in the plain queues.
    ///
    /// # Panics
    /// If one differs.
    pub(super) fn assert_conserved(&self, queued: impl Iterator<Item = StoredFrame>) {
        self.memory.assert_conserved(queued);
        let Some(common) = &self.common else { return };
        for pool in 0..self.memory.pools_len() {
            let all = common.counts.taken(CommonAccount::Pool(pool));
            assert!(all >= self.memory.pool(pool).bytes, "pool {pool}: {all} bytes of all workers");
        }
    }
}

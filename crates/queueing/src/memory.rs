//! The packet memory of one switch: who takes how much of it, and who is let in.

use alloc::vec;
use alloc::vec::Vec;

use fanin_units::{Bytes, Instant};

use crate::aqm::{Aqm, Decision};
use crate::frame::{Count, Counters, Frame, Level, Limit, Occupancy, Verdict};
use crate::layout::{Layout, LayoutError, PoolBy};

/// No limit.
const NONE: u64 = u64::MAX;

/// The memory of one switch, in byte counts only; the frames are elsewhere.
///
/// Every frame that [`Self::admit`] accepts is given back by one [`Self::release`] with the same ports and size.
/// Where all ports are first-in first-out on links of fixed rate, [`crate::FifoMemory`] does this by itself.
#[derive(Debug, Clone)]
pub struct Memory {
    outputs: Vec<Output>,
    inputs: Vec<Account>,
    pools: Vec<Account>,
    /// By pool and output; empty where virtual output queues have no limit.
    voqs: Vec<u64>,
    voq_limit: u64,
    pool_by_input: bool,
    counts_inputs: bool,
    /// Whether an output's own limit is all there is.
    plain: bool,
    pool_limit_name: Limit,
    /// In millionths; `None` without a dynamic threshold.
    alpha: Option<u64>,
    overhead: u32,
    cell: u32,
    /// One a port, or empty where no port has any.
    aqms: Vec<Aqm>,
}

#[derive(Debug, Clone)]
struct Output {
    held: Occupancy,
    limit: u64,
    /// The pool of this output, where pools are assigned by output.
    pool: u32,
    /// When a frame last left; while the queue is empty, since when it is.
    emptied_at: Instant,
    counters: Counters,
}

/// An input port or a pool.
#[derive(Debug, Clone)]
struct Account {
    held: Level,
    limit: u64,
    /// The pool of this input, where pools are assigned by input.
    pool: u32,
}

impl Output {
    /// Whether the queue is shorter than `alpha`, in millionths, times what is free in its pool.
    #[inline]
    fn is_below(&self, alpha: u64, pool: &Account) -> bool {
        let free = pool.limit.saturating_sub(pool.held.bytes);
        u128::from(self.held.bytes) * 1_000_000 < u128::from(free) * u128::from(alpha)
    }
}

impl Account {
    /// Whether so much more would break the limit or set a high-water mark.
    #[inline]
    fn rises(&self, charge: u64) -> bool {
        self.held.bytes + charge > self.held.bytes_max.min(self.limit)
    }
}

impl Memory {
    /// An empty memory.
    pub fn new(layout: &Layout) -> Result<Self, LayoutError> {
        layout.check()?;
        let pool = |pools: &[usize], port: usize| pools.get(port).map_or(0, |&pool| pool as u32);
        let (by_output, by_input): (&[usize], &[usize]) = match &layout.pool_by {
            PoolBy::Nothing => (&[], &[]),
            PoolBy::Output(pools) => (pools, &[]),
            PoolBy::Input(pools) => (&[], pools),
        };
        let account = |limit: &Bytes, pool: u32| Account { held: Level::default(), limit: limit.get(), pool };
        let pooled = layout.pool_by != PoolBy::Nothing;
        Ok(Self {
            outputs: layout
                .output_limits
                .iter()
                .enumerate()
                .map(|(port, limit)| Output {
                    held: Occupancy::default(),
                    limit: limit.get(),
                    pool: pool(by_output, port),
                    emptied_at: Instant::START,
                    counters: Counters::default(),
                })
                .collect(),
            inputs: layout
                .input_limits
                .iter()
                .enumerate()
                .map(|(port, limit)| account(limit, pool(by_input, port)))
                .collect(),
            pools: if pooled {
                layout.pools.iter().map(|size| account(size, 0)).collect()
            } else {
                Vec::new()
            },
            voqs: match layout.voq_limit {
                Some(_) => vec![0; layout.pools.len() * layout.output_limits.len()],
                None => Vec::new(),
            },
            voq_limit: layout.voq_limit.map_or(NONE, Bytes::get),
            pool_by_input: matches!(layout.pool_by, PoolBy::Input(_)),
            counts_inputs: layout.counts_inputs(),
            plain: !layout.couples_outputs(),
            pool_limit_name: if layout.pools_are_modules { Limit::Module } else { Limit::Pool },
            alpha: layout.alpha.map(|alpha| alpha.get()),
            overhead: layout.overhead.get() as u32,
            cell: layout.cell.get() as u32,
            aqms: Vec::new(),
        })
    }

    /// Marks, or drops early, by `aqm` at one output from now on.
    pub fn set_aqm(&mut self, output: usize, aqm: Aqm) {
        assert!(output < self.outputs.len(), "no output port {output}");
        self.aqms.resize(self.outputs.len(), Aqm::None);
        self.aqms[output] = aqm;
    }

    /// The memory that a frame of so many bytes takes, with its bookkeeping and in whole cells.
    #[inline]
    pub const fn charge(&self, bytes: u32) -> u64 {
        let bytes = bytes as u64 + self.overhead as u64;
        if self.cell == 1 { bytes } else { bytes.next_multiple_of(self.cell as u64) }
    }

    /// A frame arrives from `input` for `output`. `draw` gives 32 uniform random bits and is called only where RED needs them.
    ///
    /// A limit is met while what is held, with this frame, does not exceed it; the dynamic threshold looks at the queue
    /// without the frame, as its authors do. Markers see the queue as the frame finds it.
    ///
    /// # Panics
    /// If there is no such port.
    #[inline]
    pub fn admit(
        &mut self,
        now: Instant,
        input: usize,
        output: usize,
        frame: Frame,
        draw: impl FnOnce() -> u32,
    ) -> Verdict {
        let charge = self.charge(frame.bytes);
        let mut marked = false;
        if !self.aqms.is_empty() {
            let port = &self.outputs[output];
            match self.aqms[output].decide(now, &port.held, port.emptied_at, frame, draw) {
                Decision::Pass => {}
                Decision::Mark => marked = true,
                Decision::Drop => {
                    self.outputs[output].counters.count_drop(Limit::Early, frame.bytes);
                    return Verdict::Dropped(Limit::Early);
                }
            }
        }
        if let Some(limit) = self.refusal(input, output, charge) {
            self.outputs[output].counters.count_drop(limit, frame.bytes);
            return Verdict::Dropped(limit);
        }
        let port = &mut self.outputs[output];
        port.held.add(charge);
        port.counters.enqueued.add(frame.bytes);
        if marked {
            port.counters.marked.add(frame.bytes);
        }
        if !self.plain {
            self.charge_others(input, output, charge);
        }
        Verdict::Accepted { marked }
    }

    /// The longest frame that would be let in now, markers aside; 0 where none would.
    ///
    /// # Panics
    /// If there is no such port.
    #[inline]
    pub fn room(&self, input: usize, output: usize) -> u32 {
        let port = &self.outputs[output];
        let mut room = port.limit.saturating_sub(port.held.bytes);
        if !self.plain {
            room = room.min(self.room_of_others(input, output));
        }
        let in_cells = if self.cell == 1 { room } else { room - room % u64::from(self.cell) };
        u32::try_from(in_cells).unwrap_or(u32::MAX).saturating_sub(self.overhead)
    }

    /// As [`Self::room`], in memory, the output's own limit aside.
    fn room_of_others(&self, input: usize, output: usize) -> u64 {
        let of = |account: &Account| account.limit.saturating_sub(account.held.bytes);
        let mut room = if self.counts_inputs { of(&self.inputs[input]) } else { NONE };
        let pool = self.pool_of(input, output);
        let Some(account) = self.pools.get(pool) else { return room };
        if let Some(&voq) = self.voqs.get(pool * self.outputs.len() + output) {
            room = room.min(self.voq_limit.saturating_sub(voq));
        }
        if self.alpha.is_some_and(|alpha| !self.outputs[output].is_below(alpha, account)) {
            return 0;
        }
        room.min(of(account))
    }

    /// Frames that [`Self::room`] had room for have left at `at` without being held: they count as enqueued and departed, and show in
    /// no high-water mark.
    ///
    /// # Panics
    /// If there is no such port.
    #[inline]
    pub fn pass(&mut self, at: Instant, output: usize, passed: Count) {
        let port = &mut self.outputs[output];
        for count in [&mut port.counters.enqueued, &mut port.counters.departed] {
            count.frames += passed.frames;
            count.bytes += passed.bytes;
        }
        port.emptied_at = at;
    }

    /// A frame that was admitted has left at `at`.
    ///
    /// # Panics
    /// If no such frame was admitted, as far as the counts can tell.
    #[inline]
    pub fn release(&mut self, at: Instant, input: usize, output: usize, bytes: u32) {
        let charge = self.charge(bytes);
        self.uncharge_input(input, output, charge);
        let one = Count { frames: 1, bytes: bytes.into() };
        self.settle_output(at, output, charge, one);
    }

    /// Frames have left an output, the last of them at `at`. Each has gone through [`Self::uncharge_input`] already.
    #[inline]
    pub(crate) fn settle_output(&mut self, at: Instant, output: usize, charges: u64, departed: Count) {
        self.uncharge_output(output, charges, departed.frames);
        let counters = &mut self.outputs[output].counters;
        counters.departed.frames += departed.frames;
        counters.departed.bytes += departed.bytes;
        self.outputs[output].emptied_at = at;
    }

    /// Takes an admission back because something after this memory refused the frame, and counts it as dropped by `limit`.
    /// A high-water mark that it set stays.
    pub fn withdraw(&mut self, input: usize, output: usize, bytes: u32, limit: Limit) {
        let charge = self.charge(bytes);
        self.uncharge_input(input, output, charge);
        self.uncharge_output(output, charge, 1);
        let counters = &mut self.outputs[output].counters;
        counters.enqueued.remove(bytes);
        counters.count_drop(limit, bytes);
    }

    /// Charges a frame to its input and pool.
    #[inline]
    fn charge_others(&mut self, input: usize, output: usize, charge: u64) {
        if self.counts_inputs {
            self.inputs[input].held.add(charge);
        }
        let pool = self.pool_of(input, output);
        if let Some(account) = self.pools.get_mut(pool) {
            account.held.add(charge);
            if let Some(voq) = self.voqs.get_mut(pool * self.outputs.len() + output) {
                *voq += charge;
            }
        }
    }

    /// Takes a frame off the accounts that its input decides.
    #[inline]
    pub(crate) fn uncharge_input(&mut self, input: usize, output: usize, charge: u64) {
        if self.counts_inputs {
            self.inputs[input].held.remove(charge);
        }
        if self.pool_by_input {
            self.uncharge_pool(self.inputs[input].pool, output, charge);
        }
    }

    /// Takes frames off the accounts that their output decides.
    #[inline]
    fn uncharge_output(&mut self, output: usize, charges: u64, frames: u64) {
        let port = &mut self.outputs[output];
        port.held.remove(charges, frames);
        if !self.plain && !self.pool_by_input {
            let pool = port.pool;
            self.uncharge_pool(pool, output, charges);
        }
    }

    #[inline]
    fn uncharge_pool(&mut self, pool: u32, output: usize, charges: u64) {
        let outputs = self.outputs.len();
        if let Some(account) = self.pools.get_mut(pool as usize) {
            account.held.remove(charges);
            if let Some(voq) = self.voqs.get_mut(pool as usize * outputs + output) {
                *voq -= charges;
            }
        }
    }

    /// Another size for a pool, for instance because others outside of this memory take of it. What is held stays.
    ///
    /// # Panics
    /// If there is no such pool.
    #[inline]
    pub fn set_pool_size(&mut self, pool: usize, size: Bytes) {
        self.pools[pool].limit = size.get();
    }

    /// Counts a frame as refused for a reason outside this memory, such as a port's descriptors.
    pub(crate) fn count_drop(&mut self, output: usize, limit: Limit, bytes: u32) {
        self.outputs[output].counters.count_drop(limit, bytes);
    }

    #[inline]
    fn pool_of(&self, input: usize, output: usize) -> usize {
        if self.pool_by_input { self.inputs[input].pool as usize } else { self.outputs[output].pool as usize }
    }

    /// The first limit that a frame taking `charge` would break.
    #[inline]
    fn refusal(&self, input: usize, output: usize, charge: u64) -> Option<Limit> {
        let port = &self.outputs[output];
        if exceeds(port.held.bytes, charge, port.limit) {
            return Some(Limit::Output);
        }
        if self.plain { None } else { self.refusal_of_others(input, output, charge) }
    }

    /// As [`Self::refusal`], the output's own limit aside.
    #[inline]
    fn refusal_of_others(&self, input: usize, output: usize, charge: u64) -> Option<Limit> {
        if self.counts_inputs {
            let account = &self.inputs[input];
            if exceeds(account.held.bytes, charge, account.limit) {
                return Some(Limit::Input);
            }
        }
        let pool = self.pool_of(input, output);
        let account = self.pools.get(pool)?;
        if let Some(&voq) = self.voqs.get(pool * self.outputs.len() + output)
            && exceeds(voq, charge, self.voq_limit)
        {
            return Some(Limit::Voq);
        }
        if let Some(alpha) = self.alpha
            && !self.outputs[output].is_below(alpha, account)
        {
            return Some(Limit::Dynamic);
        }
        exceeds(account.held.bytes, charge, account.limit).then_some(self.pool_limit_name)
    }

    /// Whether the outcome for this frame, or a high-water mark, could change if frames that other outputs have sent already
    /// were released first. Every limit only loosens when memory is freed, so that a frame which passes now passes then.
    ///
    /// # Panics
    /// If there is no such port.
    #[inline]
    pub fn depends_on_others(&self, input: usize, output: usize, charge: u64) -> bool {
        if self.counts_inputs && self.inputs[input].rises(charge) {
            return true;
        }
        let Some(account) = self.pools.get(self.pool_of(input, output)) else { return false };
        account.rises(charge)
            || self.alpha.is_some_and(|alpha| !self.outputs[output].is_below(alpha, account))
    }

    /// Whether any output marks or drops early.
    pub fn marks(&self) -> bool {
        !self.aqms.is_empty()
    }

    /// Number of output ports.
    pub fn outputs_len(&self) -> usize {
        self.outputs.len()
    }

    /// Number of input ports.
    pub fn inputs_len(&self) -> usize {
        self.inputs.len()
    }

    /// Number of pools or modules.
    pub fn pools_len(&self) -> usize {
        self.pools.len()
    }

    /// What happened at an output port.
    pub fn counters(&self, output: usize) -> &Counters {
        &self.outputs[output].counters
    }

    /// What is queued for an output port.
    #[inline]
    pub fn output(&self, output: usize) -> &Occupancy {
        &self.outputs[output].held
    }

    /// What an input port has in memory; `None` unless input limits or [`Layout::watch_inputs`] ask for this account.
    #[inline]
    pub fn input(&self, input: usize) -> Option<&Level> {
        self.counts_inputs.then(|| &self.inputs[input].held)
    }

    /// What a pool or module holds.
    #[inline]
    pub fn pool(&self, pool: usize) -> &Level {
        &self.pools[pool].held
    }

    /// Starts all high-water marks afresh from what is held now.
    pub fn reset_marks(&mut self) {
        self.outputs.iter_mut().for_each(|port| port.held.reset_marks());
        self.inputs.iter_mut().chain(&mut self.pools).for_each(|account| account.held.reset_marks());
    }
}

#[inline]
const fn exceeds(held: u64, charge: u64, limit: u64) -> bool {
    held + charge > limit
}

//! The packet memory of one switch: a buffer for each output, and the accounts that outputs share under its scheme.

use alloc::vec;
use alloc::vec::Vec;

use fanin_units::{Bytes, Instant};

use crate::aqm::Aqm;
use crate::buffering::BufferingAccounts;
use crate::dedicated::OutputBuffer;
use crate::frame::{AdmissionLimit, Counters, Frame, FrameCount, MemoryOccupancy, Occupancy, Verdict};
use crate::layout::{Layout, LayoutError};

/// A frame that takes memory of a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredFrame {
    /// The port by which it enters.
    pub input: usize,
    /// The port by which it leaves.
    pub output: usize,
    /// Length of the frame in bytes, as [`Frame::bytes`].
    pub bytes: u32,
}

/// The memory of one switch, in byte counts only; the frames are elsewhere.
///
/// Every frame that [`Self::arrive`] accepts leaves by one [`Self::depart`] with the same ports and size.
#[derive(Debug, Clone)]
pub struct Memory {
    outputs: Vec<OutputBuffer>,
    shared: BufferingAccounts,
}

impl Memory {
    /// Makes an empty memory.
    ///
    /// # Errors
    /// If the layout contradicts itself ([`Layout::check`]).
    pub fn new(layout: &Layout) -> Result<Self, LayoutError> {
        layout.check()?;
        Ok(Self {
            outputs: (0..layout.ports()).map(|output| OutputBuffer::of(layout, output)).collect(),
            shared: BufferingAccounts::new(layout.buffering(), layout.ports()),
        })
    }

    /// Sets the queue management of one output, which marks or drops early from now on.
    ///
    /// # Panics
    /// If there is no such port.
    pub fn set_aqm(&mut self, output: usize, aqm: Aqm) {
        self.outputs[output].set_aqm(aqm);
    }

    /// The memory that a frame of `bytes` bytes takes, with its bookkeeping and in whole cells.
    #[inline]
    pub fn charge(&self, bytes: u32) -> u64 {
        self.outputs[0].charge(bytes)
    }

    /// Admits, marks or drops a frame from `input` for `output`. `draw` returns 32 uniform random bits; only RED calls
    /// it.
    ///
    /// The output's own limit is checked before the shared ones. A limit is met while the occupancy, with this frame,
    /// does not exceed it. The dynamic threshold compares the queue without the frame, as its authors do. Markers see
    /// the queue without the frame.
    ///
    /// # Panics
    /// If there is no such port.
    #[inline]
    pub fn arrive(
        &mut self,
        now: Instant,
        input: usize,
        output: usize,
        frame: Frame,
        draw: impl FnOnce() -> u32,
    ) -> Verdict {
        let own = &mut self.outputs[output];
        let refusal = |queued, charge| self.shared.refusal(input, output, queued, charge);
        let verdict = own.arrive_in_shared(now, frame, draw, refusal);
        if verdict.is_accepted() {
            self.shared.admit(input, output, own.charge(frame.bytes));
        }
        verdict
    }

    /// Frees the memory of an accepted frame that left at `at`.
    ///
    /// # Panics
    /// If an account holds less than this frame, or if an earlier departure of the output has a later time.
    #[inline]
    pub fn depart(&mut self, at: Instant, input: usize, output: usize, bytes: u32) {
        let own = &mut self.outputs[output];
        own.depart(at, bytes);
        self.shared.depart(input, output, own.charge(bytes));
    }

    /// The longest frame that the limits accept now, in bytes, without markers; 0 if none.
    ///
    /// # Panics
    /// If there is no such port.
    #[inline]
    pub fn room(&self, input: usize, output: usize) -> u32 {
        let own = &self.outputs[output];
        let shared = self.shared.free(input, output, own.occupancy().bytes);
        own.frame_in(own.free().min(shared))
    }

    /// Counts frames that left at `at` without being stored, as [`Self::room`] had room for them. They count as
    /// enqueued and departed, and leave the high-water marks unchanged.
    ///
    /// # Panics
    /// If there is no such port.
    #[inline]
    pub fn count_cut_through(&mut self, at: Instant, output: usize, passed: FrameCount) {
        self.outputs[output].count_cut_through(at, passed);
    }

    /// Takes back an admission after a later stage refused the frame, and counts the frame as dropped by `limit`. A
    /// high-water mark of this admission stays.
    pub fn withdraw(&mut self, input: usize, output: usize, bytes: u32, limit: AdmissionLimit) {
        self.outputs[output].withdraw(bytes, limit);
        self.shared.depart(input, output, self.charge(bytes));
    }

    /// Sets another size for a pool, for instance if memory is taken from it without a frame. Queued frames stay.
    ///
    /// # Panics
    /// If there is no such pool.
    #[inline]
    pub fn set_pool_size(&mut self, pool: usize, size: Bytes) {
        self.shared.set_pool_size(pool, size);
    }

    /// Sets another limit for an input port, as [`Self::set_pool_size`] does for a pool.
    ///
    /// # Panics
    /// If inputs have no limits, or if there is no such port.
    #[inline]
    pub fn set_input_limit(&mut self, input: usize, limit: Bytes) {
        self.shared.set_input_limit(input, limit);
    }

    /// Returns true if departures from other outputs could change the verdict on a frame that takes `charge` bytes, or
    /// a high-water mark. Freed memory only loosens a limit, so a frame that passes now would also pass then.
    #[inline]
    pub(crate) fn depends_on_others(&self, input: usize, output: usize, charge: u64) -> bool {
        let queued = self.outputs[output].occupancy().bytes;
        self.shared.depends_on_departures(input, output, queued, charge)
    }

    /// Admits a frame if it stays below all limits and high-water marks, so that no earlier departure could change the
    /// verdict or a high-water mark. Otherwise returns false.
    #[inline(always)]
    pub(crate) fn admit_below_high_water(&mut self, input: usize, output: usize, bytes: u32) -> bool {
        let own = &mut self.outputs[output];
        let (charge, queued) = (own.charge(bytes), own.occupancy().bytes);
        let Some(level) = own.below_high_water(charge) else { return false };
        if !self.shared.admit_below_high_water(input, output, queued, charge) {
            return false;
        }
        assert!(level == queued + charge, "an admission charges other bytes than its frame has");
        own.admit_below_high_water(level, bytes);
        true
    }

    /// An output's buffer and the shared accounts, for a driver that settles many departures at once.
    #[inline]
    pub(crate) fn accounts(&mut self, output: usize) -> (&mut OutputBuffer, &mut BufferingAccounts) {
        (&mut self.outputs[output], &mut self.shared)
    }

    /// Number of output ports, and of input ports.
    pub fn ports(&self) -> usize {
        self.outputs.len()
    }

    /// Number of pools or modules.
    pub fn pools_len(&self) -> usize {
        self.shared.pools()
    }

    /// The buffers of all output ports.
    pub fn outputs(&self) -> &[OutputBuffer] {
        &self.outputs
    }

    /// The counters of an output port.
    pub fn counters(&self, output: usize) -> &Counters {
        self.outputs[output].counters()
    }

    /// The occupancy of an output port.
    #[inline]
    pub fn occupancy(&self, output: usize) -> &Occupancy {
        self.outputs[output].occupancy()
    }

    /// The occupancy of an input port; `None` without input limits.
    pub fn input(&self, input: usize) -> Option<&MemoryOccupancy> {
        self.shared.input(input)
    }

    /// The occupancy of a pool or module.
    ///
    /// # Panics
    /// If there is no such pool.
    #[inline]
    pub fn pool(&self, pool: usize) -> &MemoryOccupancy {
        self.shared.pool(pool).level()
    }

    /// Starts all high-water marks afresh from the present occupancy.
    pub fn reset_high_water_marks(&mut self) {
        self.outputs.iter_mut().for_each(OutputBuffer::reset_high_water_marks);
        self.shared.reset_high_water_marks();
    }

    /// Asserts that every accepted frame has departed or is among `frames`. Outputs, inputs, pools and virtual output queues
    /// must hold the bytes of these frames.
    ///
    /// # Panics
    /// If one holds more or fewer bytes.
    pub fn assert_conserved(&self, frames: impl Iterator<Item = StoredFrame>) {
        let mut of_output = vec![Vec::new(); self.outputs.len()];
        let mut charges = Vec::new();
        for StoredFrame { input, output, bytes } in frames {
            of_output[output].push(bytes);
            charges.push((input, output, self.charge(bytes)));
        }
        for (output, frames) in self.outputs.iter().zip(of_output) {
            output.assert_conserved(frames.into_iter());
        }
        self.shared.assert_holds(&charges);
    }
}

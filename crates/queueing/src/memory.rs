//! The packet memory of one switch: a buffer for each output, and the accounts that outputs share.

use alloc::vec::Vec;

use fanin_units::{Bytes, Instant};

use crate::aqm::{Aqm, AqmDecision};
use crate::dedicated::Dedicated;
use crate::frame::{AdmissionLimit, Counters, Frame, FrameCount, MemoryLevel, Occupancy, Verdict};
use crate::layout::{Layout, LayoutError};
use crate::shared::SharedAccounts;

/// The memory of one switch, in byte counts only; the frames are elsewhere.
///
/// Every frame that [`Self::arrive`] accepts leaves by one [`Self::depart`] with the same ports and size.
#[derive(Debug, Clone)]
pub struct Memory {
    outputs: Vec<Dedicated>,
    inputs_len: usize,
    /// Absent if there is no limit except each output's own.
    shared: Option<SharedAccounts>,
}

impl Memory {
    /// An empty memory.
    pub fn new(layout: &Layout) -> Result<Self, LayoutError> {
        layout.check()?;
        Ok(Self {
            outputs: (0..layout.output_limits.len()).map(|output| Dedicated::of(layout, output)).collect(),
            inputs_len: layout.input_limits.len(),
            shared: SharedAccounts::new(layout),
        })
    }

    /// Marks, or drops early, by `aqm` at one output from now on.
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

    /// A frame arrives from `input` for `output`. `draw` gives 32 uniform random bits and is called only where RED needs them.
    ///
    /// A limit is met while the occupancy, with this frame, does not exceed it; the dynamic threshold looks at the queue
    /// without the frame, as its authors do. Markers see the queue without the frame.
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
        let Some(shared) = &mut self.shared else { return self.outputs[output].arrive(now, frame, draw) };
        let own = &mut self.outputs[output];
        let charge = own.charge(frame.bytes);
        let decision = own.decide(now, frame, draw);
        let refused_by = match decision {
            AqmDecision::Drop => Some(AdmissionLimit::Early),
            _ => own.refusal(charge).or_else(|| shared.refusal(input, output, own.occupancy().bytes, charge)),
        };
        if let Some(limit) = refused_by {
            own.drop_frame(limit, frame.bytes);
            return Verdict::Dropped(limit);
        }
        let marked = decision == AqmDecision::Mark;
        own.admit(charge, frame.bytes, marked);
        shared.admit(input, output, charge);
        Verdict::Accepted { marked }
    }

    /// A frame that was accepted left at `at`.
    ///
    /// # Panics
    /// If no such frame was accepted, as far as the counts can tell.
    #[inline]
    pub fn depart(&mut self, at: Instant, input: usize, output: usize, bytes: u32) {
        self.outputs[output].depart(at, bytes);
        if let Some(shared) = &mut self.shared {
            shared.depart(input, output, self.outputs[output].charge(bytes));
        }
    }

    /// The longest frame that would be accepted now, markers aside; 0 where none would.
    ///
    /// # Panics
    /// If there is no such port.
    #[inline]
    pub fn room(&self, input: usize, output: usize) -> u32 {
        let own = &self.outputs[output];
        let queued = own.occupancy().bytes;
        let shared = self.shared.as_ref().map_or(u64::MAX, |shared| shared.free(input, output, queued));
        own.frame_in(own.free().min(shared))
    }

    /// Frames left at `at` without being stored, because [`Self::room`] had room for them. They count as enqueued and
    /// departed and leave the high-water marks unchanged.
    ///
    /// # Panics
    /// If there is no such port.
    #[inline]
    pub fn pass(&mut self, at: Instant, output: usize, passed: FrameCount) {
        self.outputs[output].pass(at, passed);
    }

    /// Takes an admission back because something after this memory refused the frame, and counts it as dropped by `limit`.
    /// A high-water mark that it set stays.
    pub fn withdraw(&mut self, input: usize, output: usize, bytes: u32, limit: AdmissionLimit) {
        self.outputs[output].withdraw(bytes, limit);
        if let Some(shared) = &mut self.shared {
            shared.depart(input, output, self.outputs[output].charge(bytes));
        }
    }

    /// Sets another size for a pool, for instance because memory outside of this accounting is taken from it. Queued frames
    /// stay.
    ///
    /// # Panics
    /// If there is no such pool.
    #[inline]
    pub fn set_pool_size(&mut self, pool: usize, size: Bytes) {
        self.shared.as_mut().expect("a memory with pools").set_pool_size(pool, size);
    }

    /// Returns true if settling the departures of other outputs first could change the verdict on a frame that takes
    /// `charge` bytes, or a high-water mark.
    ///
    /// # Panics
    /// If there is no such port.
    #[inline]
    pub fn depends_on_others(&self, input: usize, output: usize, charge: u64) -> bool {
        let queued = self.outputs[output].occupancy().bytes;
        self.shared.as_ref().is_some_and(|shared| shared.depends_on_others(input, output, queued, charge))
    }

    /// Takes in a frame if it stays below all limits and high-water marks, so that no departure could change its verdict or
    /// a mark.
    #[inline(always)]
    pub(crate) fn admit_below_marks(&mut self, input: usize, output: usize, bytes: u32) -> bool {
        let own = &mut self.outputs[output];
        let charge = own.charge(bytes);
        if own.depends_on_departures(charge) {
            return false;
        }
        if let Some(shared) = &mut self.shared
            && !shared.admit_below_marks(input, output, own.occupancy().bytes, charge)
        {
            return false;
        }
        own.admit_below_marks(charge, bytes);
        true
    }

    /// The buffer of an output, and the accounts that it shares with others, for its driver.
    #[inline]
    pub(crate) fn accounts(&mut self, output: usize) -> (&mut Dedicated, Option<&mut SharedAccounts>) {
        (&mut self.outputs[output], self.shared.as_mut())
    }

    /// Returns true if any output marks or drops early.
    pub fn marks(&self) -> bool {
        self.outputs.iter().any(Dedicated::marks)
    }

    /// Number of output ports.
    pub fn outputs_len(&self) -> usize {
        self.outputs.len()
    }

    /// Number of input ports.
    pub fn inputs_len(&self) -> usize {
        self.inputs_len
    }

    /// Number of pools or modules.
    pub fn pools_len(&self) -> usize {
        self.shared.as_ref().map_or(0, SharedAccounts::pools_len)
    }

    /// The buffers of all output ports.
    pub fn outputs(&self) -> &[Dedicated] {
        &self.outputs
    }

    /// The counters of an output port.
    pub fn counters(&self, output: usize) -> &Counters {
        self.outputs[output].counters()
    }

    /// The occupancy of an output port.
    #[inline]
    pub fn output(&self, output: usize) -> &Occupancy {
        self.outputs[output].occupancy()
    }

    /// The occupancy of an input port; `None` without input limits.
    #[inline]
    pub fn input(&self, input: usize) -> Option<&MemoryLevel> {
        self.shared.as_ref()?.input(input)
    }

    /// The occupancy of a pool or module.
    ///
    /// # Panics
    /// If there is no such pool.
    #[inline]
    pub fn pool(&self, pool: usize) -> &MemoryLevel {
        self.shared.as_ref().expect("a memory with pools").pool(pool)
    }

    /// Starts all high-water marks afresh from the present occupancy.
    pub fn reset_marks(&mut self) {
        self.outputs.iter_mut().for_each(Dedicated::reset_marks);
        if let Some(shared) = &mut self.shared {
            shared.reset_marks();
        }
    }

    /// Asserts that every accepted frame has departed or is queued, and that inputs, pools and virtual output queues add up
    /// to the queued bytes.
    ///
    /// # Panics
    /// If they do not.
    pub fn assert_conserved(&self) {
        self.outputs.iter().for_each(Dedicated::assert_conserved);
        if let Some(shared) = &self.shared {
            shared.assert_conserved(self.outputs.iter().map(|output| output.occupancy().bytes).sum());
        }
    }
}

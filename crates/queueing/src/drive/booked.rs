//! Books departures ahead of time, for first-in first-out ports on links of fixed rate.
//!
//! A frame's departure is known when it arrives: the link is free again after `max(now, free) + wire time`. So
//! departures need no step of their own. Each output keeps a list of its booked departures, and frees their memory when
//! it is next settled. An arrival settles an output only if its departures could change the verdict, a mark or a
//! high-water mark. Until then the recorded occupancy is an upper bound. A departure at the instant of an arrival comes
//! first.

use alloc::vec;
use alloc::vec::Vec;

use fanin_units::Instant;

use crate::aqm::Aqm;
use crate::dedicated::OutputBuffer;
use crate::fifo::Fifo;
use crate::frame::{AdmissionLimit, EcnCodepoint, Frame, FrameCount, Occupancy, Verdict};
use crate::layout::{Layout, LayoutError};
use crate::link::{InService, OutputLink, Passage};
use crate::memory::{Memory, StoredFrame};

/// The most frames that one output may hold, for any memory. The high-water mark of frames never exceeds it, so an arrival
/// below that mark needs no check.
pub const FIFO_FRAMES_MAX: u32 = 1 << 24;

/// Outputs per group. A group keeps its earliest departure, so that a search can skip all of its outputs at once.
const GROUP: usize = 16;
/// Time that stands for no booked departure.
const NEVER: u64 = u64::MAX;

/// A departure that is booked.
#[derive(Debug, Clone, Copy, Default)]
struct BookedDeparture {
    /// Time at which the frame's memory is free.
    at: Instant,
    bytes: u32,
    input: u32,
}

/// The booked departures of one output, in order.
#[derive(Debug, Clone)]
struct Departures {
    /// Time of the first departure, or [`NEVER`].
    front: u64,
    /// Time at which the link is free.
    free_at: Instant,
    /// Time of the last departure.
    last: Instant,
    link: OutputLink,
    in_service: InService,
    booked: Fifo<BookedDeparture>,
}

impl Departures {
    fn new(link: OutputLink, in_service: InService) -> Self {
        Self {
            front: NEVER,
            free_at: Instant::START,
            last: Instant::START,
            link,
            in_service,
            booked: Fifo::new(),
        }
    }

    /// Books a frame behind all others; returns the departures of its first and last bit.
    #[inline(always)]
    fn book(&mut self, now: Instant, bytes: u32, input: u32) -> (Instant, Instant) {
        let start = now.max(self.free_at);
        let end = start + self.link.time_to_send(bytes);
        self.free_at = end;
        let at = match self.in_service {
            InService::Counted => end,
            InService::Free => start,
        };
        if self.booked.is_empty() {
            self.front = at.get();
        }
        assert!(self.last <= at, "a departure is booked before the last one");
        self.last = at;
        debug_assert!(
            self.booked.len() < FIFO_FRAMES_MAX,
            "more departures are booked than an output may hold"
        );
        self.booked.push(BookedDeparture { at, bytes, input });
        (start, end)
    }

    /// Books a frame if it was accepted.
    #[inline(always)]
    fn book_accepted(&mut self, verdict: Verdict, now: Instant, bytes: u32, input: u32) -> Passage {
        match verdict {
            Verdict::Accepted { marked } => {
                let (start, end) = self.book(now, bytes, input);
                Passage::Queued { start, end, marked }
            }
            Verdict::Dropped(limit) => Passage::Dropped(limit),
        }
    }

    /// Removes the departures that are due by `now`. Call [`Self::note_front`] afterwards.
    #[inline]
    fn due(&mut self, now: Instant) -> impl Iterator<Item = BookedDeparture> {
        core::iter::from_fn(move || self.booked.pop_if(|departure| departure.at <= now))
    }

    /// Updates `front` after the departures due by `now` were removed.
    #[inline]
    fn note_front(&mut self, now: Instant) {
        self.front = self.booked.front().map_or(NEVER, |next| next.at.get());
        assert!(self.front > now.get(), "a departure that is due stays booked");
    }

    /// Removes all departures, at least one. Returns their number, and the time of the last one.
    #[inline]
    fn take_all(&mut self) -> (u32, Instant) {
        let frames = self.booked.len();
        self.booked.clear();
        self.front = NEVER;
        (frames, self.last)
    }

    /// The frames towards `output` with a booked departure that is not settled.
    fn stored(&self, output: usize) -> impl Iterator<Item = StoredFrame> {
        let stored =
            move |BookedDeparture { input, bytes, .. }| StoredFrame { input: input as usize, output, bytes };
        self.booked.iter().map(stored)
    }
}

/// One first-in first-out output with a dedicated buffer, on a link of fixed rate.
///
/// Time must not run backwards from call to call.
#[derive(Debug, Clone)]
pub struct BookedDedicated {
    departures: Departures,
    buffer: OutputBuffer,
}

impl BookedDedicated {
    /// Makes an output with an empty `buffer` in front of `link`.
    pub fn new(buffer: OutputBuffer, link: OutputLink, in_service: InService) -> Self {
        Self { departures: Departures::new(link, in_service), buffer }
    }

    /// Handles the arrival of a frame of `bytes` bytes. `ecn` returns its ECN bits; only a marker calls it. `draw` is
    /// as for [`OutputBuffer::arrive`].
    #[inline(always)]
    pub fn arrive(
        &mut self,
        now: Instant,
        bytes: u32,
        ecn: impl FnOnce() -> EcnCodepoint,
        draw: impl FnOnce() -> u32,
    ) -> Passage {
        let charge = self.buffer.charge(bytes);
        let mut below = self.buffer.below_high_water(charge);
        if below.is_none() {
            self.settle(now);
            below = self.buffer.below_high_water(charge);
        }
        let verdict = match below {
            Some(level) => {
                self.buffer.admit_below_high_water(level, bytes);
                Verdict::Accepted { marked: false }
            }
            None => self.admit_settled(now, Frame { bytes, ecn: ecn() }, draw),
        };
        self.departures.book_accepted(verdict, now, bytes, 0)
    }

    /// Admits, marks or drops a frame, after all due departures were settled.
    #[inline(never)]
    fn admit_settled(&mut self, now: Instant, frame: Frame, draw: impl FnOnce() -> u32) -> Verdict {
        if self.departures.booked.len() >= FIFO_FRAMES_MAX {
            self.buffer.drop_frame(AdmissionLimit::Frames, frame.bytes);
            return Verdict::Dropped(AdmissionLimit::Frames);
        }
        self.buffer.arrive(now, frame, draw)
    }

    /// Frees the memory of every frame that has departed by `now`.
    #[inline]
    pub fn settle(&mut self, now: Instant) {
        if self.departures.front <= now.get() {
            self.settle_due(now);
        }
    }

    #[inline(never)]
    fn settle_due(&mut self, now: Instant) {
        // Usually the link is idle. All frames have then left, and one step settles them together.
        if self.departures.free_at <= now {
            let (frames, last) = self.departures.take_all();
            assert!(last <= now, "a departure is settled before its time");
            return self.buffer.depart_all(last, frames);
        }
        let (mut charges, mut departed, mut last) = (0, FrameCount::default(), Instant::START);
        for BookedDeparture { at, bytes, .. } in self.departures.due(now) {
            charges += self.buffer.charge(bytes);
            departed.add(bytes);
            last = at;
        }
        self.departures.note_front(now);
        self.buffer.depart_many(last, charges, departed);
        assert_eq!(
            self.buffer.occupancy().frames,
            u64::from(self.departures.booked.len()),
            "frames are stored without a departure, or the reverse"
        );
    }

    /// The buffer as of the last arrival or settlement. High-water marks and drops are always exact.
    pub const fn buffer(&self) -> &OutputBuffer {
        &self.buffer
    }

    /// Starts the high-water marks afresh from the occupancy at `now`.
    pub fn reset_high_water_marks(&mut self, now: Instant) {
        self.settle(now);
        self.buffer.reset_high_water_marks();
    }

    /// Asserts that every accepted frame has departed or has its departure booked, with all its bytes.
    ///
    /// # Panics
    /// If a frame or byte is missing.
    pub fn assert_conserved(&self) {
        self.buffer.assert_conserved(self.departures.stored(0).map(|frame| frame.bytes));
    }
}

/// The memory of a switch with first-in first-out outputs on links of fixed rate.
///
/// Time must not run backwards from call to call.
#[derive(Debug, Clone)]
pub struct BookedMemory {
    memory: Memory,
    departures: Vec<Departures>,
    /// True if an output's admissions depend on the frames queued for other outputs.
    is_coupled: bool,
    /// Lower bound of the earliest departure of each group of outputs.
    group_fronts: Vec<u64>,
}

impl BookedMemory {
    /// An empty memory; `links` has the link of each output port.
    ///
    /// # Errors
    /// If the layout contradicts itself ([`Layout::check`]).
    ///
    /// # Panics
    /// If the number of links differs from the number of output ports.
    pub fn new(layout: &Layout, links: &[OutputLink], in_service: InService) -> Result<Self, LayoutError> {
        let memory = Memory::new(layout)?;
        let outputs = memory.ports();
        assert_eq!(links.len(), outputs, "the number of links is not that of the output ports");
        Ok(Self {
            memory,
            departures: links.iter().map(|&link| Departures::new(link, in_service)).collect(),
            is_coupled: layout.couples_outputs(),
            group_fronts: vec![NEVER; outputs.div_ceil(GROUP)],
        })
    }

    /// Sets the active queue management of one output, which marks or drops early from now on.
    pub fn set_aqm(&mut self, output: usize, aqm: Aqm) {
        self.memory.set_aqm(output, aqm);
    }

    /// Handles the arrival of a frame of `bytes` bytes from `input` for `output`; `ecn` and `draw` are as for
    /// [`BookedDedicated::arrive`].
    ///
    /// # Panics
    /// If there is no such port.
    #[inline(always)]
    pub fn arrive(
        &mut self,
        now: Instant,
        input: usize,
        output: usize,
        bytes: u32,
        ecn: impl FnOnce() -> EcnCodepoint,
        draw: impl FnOnce() -> u32,
    ) -> Passage {
        let mut is_admitted = self.memory.admit_below_high_water(input, output, bytes);
        if !is_admitted {
            self.settle_output(now, output);
            is_admitted = self.memory.admit_below_high_water(input, output, bytes);
        }
        let verdict = if is_admitted {
            Verdict::Accepted { marked: false }
        } else {
            self.admit_settled(now, input, output, Frame { bytes, ecn: ecn() }, draw)
        };
        let departures = &mut self.departures[output];
        let before = departures.front;
        let passage = departures.book_accepted(verdict, now, bytes, input as u32);
        if departures.front < before {
            let group = &mut self.group_fronts[output / GROUP];
            *group = departures.front.min(*group);
        }
        passage
    }

    /// Admits, marks or drops a frame, after the due departures of `output` were settled.
    #[inline(never)]
    fn admit_settled(
        &mut self,
        now: Instant,
        input: usize,
        output: usize,
        frame: Frame,
        draw: impl FnOnce() -> u32,
    ) -> Verdict {
        let charge = self.memory.charge(frame.bytes);
        if self.is_coupled && self.memory.depends_on_others(input, output, charge) {
            self.settle(now);
        }
        if self.departures[output].booked.len() >= FIFO_FRAMES_MAX {
            self.memory.accounts(output).0.drop_frame(AdmissionLimit::Frames, frame.bytes);
            return Verdict::Dropped(AdmissionLimit::Frames);
        }
        self.memory.arrive(now, input, output, frame, draw)
    }

    /// Frees the memory of every frame that has departed by `now`, so that [`Self::memory`] is exact.
    pub fn settle(&mut self, now: Instant) {
        if !self.is_coupled {
            (0..self.departures.len()).for_each(|output| self.settle_output(now, output));
            return;
        }
        for group in 0..self.group_fronts.len() {
            let outputs = group * GROUP..self.departures.len().min((group + 1) * GROUP);
            if self.group_fronts[group] > now.get() {
                debug_assert!(
                    self.departures[outputs].iter().all(|departures| departures.front > now.get()),
                    "a departure that is due is skipped with its group"
                );
                continue;
            }
            outputs.clone().for_each(|output| self.settle_output(now, output));
            let fronts = self.departures[outputs].iter().map(|departures| departures.front);
            self.group_fronts[group] = fronts.fold(NEVER, u64::min);
        }
    }

    #[inline]
    fn settle_output(&mut self, now: Instant, output: usize) {
        if self.departures[output].front <= now.get() {
            self.settle_due(now, output);
        }
    }

    #[inline(never)]
    fn settle_due(&mut self, now: Instant, output: usize) {
        let departures = &mut self.departures[output];
        let (own, shared) = self.memory.accounts(output);
        let (mut charges, mut departed, mut last) = (0, FrameCount::default(), Instant::START);
        let due = departures.due(now).map(|BookedDeparture { at, bytes, input }| {
            let charge = own.charge(bytes);
            charges += charge;
            departed.add(bytes);
            last = at;
            (input as usize, charge)
        });
        shared.depart_each(output, due);
        departures.note_front(now);
        own.depart_many(last, charges, departed);
        assert_eq!(
            own.occupancy().frames,
            u64::from(departures.booked.len()),
            "frames are stored without a departure, or the reverse"
        );
    }

    /// The occupancy of an output port at `now`.
    #[inline]
    pub fn occupancy(&mut self, now: Instant, output: usize) -> &Occupancy {
        self.settle_output(now, output);
        self.memory.occupancy(output)
    }

    /// The accounts as of the last arrivals and settlements; call [`Self::settle`] first for exact ones.
    /// High-water marks and drops are always exact.
    pub const fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Starts all high-water marks afresh from the occupancy at `now`.
    pub fn reset_high_water_marks(&mut self, now: Instant) {
        self.settle(now);
        self.memory.reset_high_water_marks();
    }

    /// Asserts that every accepted frame has departed or has a booked departure. All accounts must have the bytes of the booked
    /// frames.
    ///
    /// # Panics
    /// If an account holds more or fewer bytes.
    pub fn assert_conserved(&self) {
        let departures = self.departures.iter().enumerate();
        self.memory.assert_conserved(departures.flat_map(|(output, departures)| departures.stored(output)));
    }
}

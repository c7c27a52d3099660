//! Books departures ahead of time, for first-in first-out ports on links of fixed rate.
//!
//! A frame's departure is known when it arrives: the link is free again after `max(now, free) + wire time`. So departures
//! need no step of their own. Each output keeps a list of its booked departures; memory is given back when the output is
//! next settled. An arrival settles an output only if its departures could change the verdict, a mark or a high-water mark.
//! Until then the recorded occupancy is an upper bound. A departure at the instant of an arrival comes first.

use alloc::vec;
use alloc::vec::Vec;

use fanin_units::Instant;

use crate::aqm::Aqm;
use crate::dedicated::Dedicated;
use crate::fifo::Fifo;
use crate::frame::{AdmissionLimit, Frame, FrameCount, Occupancy, Verdict};
use crate::layout::{Layout, LayoutError};
use crate::link::{InService, OutputLink, Passage};
use crate::memory::{Memory, StoredFrame};

/// The most frames that one output holds at a time, whatever its memory allows.
pub const FIFO_FRAMES_MAX: u32 = 1 << 24;

/// Outputs per group. A group keeps its earliest departure, so that a search can skip all of its outputs at once.
const GROUP: usize = 16;
/// No departure is booked.
const NEVER: u64 = u64::MAX;

/// A departure that is booked.
#[derive(Debug, Clone, Copy, Default)]
struct BookedDeparture {
    /// When the frame's memory is free.
    at: Instant,
    bytes: u32,
    input: u32,
}

/// The booked departures of one output, in order.
#[derive(Debug, Clone)]
struct Departures {
    /// The first one's time, or [`NEVER`].
    front: u64,
    /// When the link is free.
    free_at: Instant,
    link: OutputLink,
    in_service: InService,
    ring: Fifo<BookedDeparture>,
}

impl Departures {
    fn new(link: OutputLink, in_service: InService) -> Self {
        Self { front: NEVER, free_at: Instant::START, link, in_service, ring: Fifo::new() }
    }

    /// Books a frame behind all others; returns when it begins and ends to leave.
    #[inline(always)]
    fn book(&mut self, now: Instant, bytes: u32, input: u32) -> (Instant, Instant) {
        let start = now.max(self.free_at);
        let end = start + self.link.time_to_send(bytes);
        self.free_at = end;
        let at = match self.in_service {
            InService::Counted => end,
            InService::Free => start,
        };
        if self.ring.is_empty() {
            self.front = at.get();
        }
        assert!(self.front <= at.get(), "a departure is booked before the first one");
        self.ring.push(BookedDeparture { at, bytes, input });
        (start, end)
    }

    /// Takes out the departures that are due by `now`.
    #[inline]
    fn take_due(&mut self, now: Instant, mut take: impl FnMut(BookedDeparture)) {
        self.ring.pop_while(|&departure| {
            let is_due = departure.at <= now;
            if is_due {
                take(departure);
            }
            is_due
        });
        self.front = self.ring.front().map_or(NEVER, |next| next.at.get());
        assert!(self.front > now.get(), "a departure that is due stays booked");
    }

    /// Takes out all departures, of which there is at least one. Returns their number, and the time of the last one.
    #[inline]
    fn take_all(&mut self) -> (u32, Instant) {
        let frames = self.ring.len();
        let last = self.ring.back().expect("a departure is due").at;
        self.ring.clear();
        self.front = NEVER;
        (frames, last)
    }

    /// The frames whose departures are booked and not settled, towards `output`.
    fn stored(&self, output: usize) -> impl Iterator<Item = StoredFrame> {
        let stored =
            move |BookedDeparture { input, bytes, .. }| StoredFrame { input: input as usize, output, bytes };
        self.ring.iter().map(stored)
    }
}

/// One output with a dedicated buffer.
///
/// Time must not run backwards from call to call.
#[derive(Debug, Clone)]
pub struct BookedDedicated {
    departures: Departures,
    buffer: Dedicated,
}

impl BookedDedicated {
    /// An output with this buffer, which is empty, before `link`.
    pub fn new(buffer: Dedicated, link: OutputLink, in_service: InService) -> Self {
        Self { departures: Departures::new(link, in_service), buffer }
    }

    /// A frame arrives; `draw` is as for [`Dedicated::arrive`].
    #[inline(always)]
    pub fn arrive(&mut self, now: Instant, frame: Frame, draw: impl FnOnce() -> u32) -> Passage {
        let charge = self.buffer.charge(frame.bytes);
        if self.matters(charge) {
            self.settle(now);
            if self.matters(charge) {
                return self.arrive_settled(now, frame, draw);
            }
        }
        self.buffer.admit(charge, frame.bytes, false);
        let (start, end) = self.departures.book(now, frame.bytes, 0);
        Passage::Queued { start, end, marked: false }
    }

    /// Returns true if a frame that takes `charge` bytes could be refused or marked, or could set a high-water mark.
    #[inline]
    fn matters(&self, charge: u64) -> bool {
        self.buffer.depends_on_departures(charge) || self.departures.ring.len() >= FIFO_FRAMES_MAX
    }

    /// As [`Self::arrive`], after all departures were settled.
    #[inline(never)]
    fn arrive_settled(&mut self, now: Instant, frame: Frame, draw: impl FnOnce() -> u32) -> Passage {
        if self.departures.ring.len() >= FIFO_FRAMES_MAX {
            self.buffer.drop_frame(AdmissionLimit::Ring, frame.bytes);
            return Passage::Dropped(AdmissionLimit::Ring);
        }
        match self.buffer.arrive(now, frame, draw) {
            Verdict::Accepted { marked } => {
                let (start, end) = self.departures.book(now, frame.bytes, 0);
                Passage::Queued { start, end, marked }
            }
            Verdict::Dropped(limit) => Passage::Dropped(limit),
        }
    }

    /// Gives back the memory of every frame that has departed by `now`.
    #[inline]
    pub fn settle(&mut self, now: Instant) {
        if self.departures.front <= now.get() {
            self.settle_due(now);
        }
    }

    #[inline(never)]
    fn settle_due(&mut self, now: Instant) {
        // Mostly the link is idle: then all frames have left, and need not be counted one by one.
        if self.departures.free_at <= now {
            let (frames, last) = self.departures.take_all();
            return self.buffer.depart_all(last, frames);
        }
        let (mut charges, mut departed, mut last) = (0, FrameCount::default(), Instant::START);
        self.departures.take_due(now, |BookedDeparture { at, bytes, .. }| {
            charges += self.buffer.charge(bytes);
            departed.add(bytes);
            last = at;
        });
        self.buffer.depart_many(last, charges, departed);
        assert_eq!(
            self.buffer.occupancy().frames,
            u64::from(self.departures.ring.len()),
            "frames and departures"
        );
    }

    /// The buffer as of the last arrival or settlement. High-water marks and drops are always exact.
    pub const fn buffer(&self) -> &Dedicated {
        &self.buffer
    }

    /// Starts the high-water marks afresh from the occupancy at `now`.
    pub fn reset_marks(&mut self, now: Instant) {
        self.settle(now);
        self.buffer.reset_marks();
    }

    /// Asserts that every accepted frame has departed or has its departure booked, with all its bytes.
    ///
    /// # Panics
    /// If a frame or byte is missing.
    pub fn assert_conserved(&self) {
        self.buffer.assert_conserved(self.departures.stored(0).map(|frame| frame.bytes));
    }
}

/// The memory of a switch whose outputs are all first-in first-out, on links of fixed rate.
///
/// Time must not run backwards from call to call.
#[derive(Debug, Clone)]
pub struct BookedMemory {
    memory: Memory,
    departures: Vec<Departures>,
    /// An output's admissions depend on the frames queued for other outputs.
    is_coupled: bool,
    /// The earliest departure of each output; kept only where outputs are coupled.
    fronts: Vec<u64>,
    /// Not later than the earliest departure of each group of outputs.
    group_fronts: Vec<u64>,
}

impl BookedMemory {
    /// An empty memory; `links` has the link of each output port.
    ///
    /// # Panics
    /// If the number of links differs from the number of output ports.
    pub fn new(layout: &Layout, links: &[OutputLink], in_service: InService) -> Result<Self, LayoutError> {
        let memory = Memory::new(layout)?;
        let outputs = memory.ports();
        assert_eq!(links.len(), outputs, "one link for each output port");
        Ok(Self {
            memory,
            departures: links.iter().map(|&link| Departures::new(link, in_service)).collect(),
            is_coupled: layout.couples_outputs(),
            fronts: vec![NEVER; outputs],
            group_fronts: vec![NEVER; outputs.div_ceil(GROUP)],
        })
    }

    /// Marks, or drops early, by `aqm` at one output from now on.
    pub fn set_aqm(&mut self, output: usize, aqm: Aqm) {
        self.memory.set_aqm(output, aqm);
    }

    /// A frame arrives from `input` for `output`; `draw` is as for [`Memory::arrive`].
    ///
    /// # Panics
    /// If there is no such port.
    #[inline(always)]
    pub fn arrive(
        &mut self,
        now: Instant,
        input: usize,
        output: usize,
        frame: Frame,
        draw: impl FnOnce() -> u32,
    ) -> Passage {
        if !self.admit_below_marks(input, output, frame.bytes) {
            self.settle_output(now, output);
            if !self.admit_below_marks(input, output, frame.bytes) {
                return self.arrive_settled(now, input, output, frame, draw);
            }
        }
        self.book(now, input, output, frame.bytes, false)
    }

    /// As [`Memory::admit_below_marks`], if there is room for one more departure.
    #[inline(always)]
    fn admit_below_marks(&mut self, input: usize, output: usize, bytes: u32) -> bool {
        self.departures[output].ring.len() < FIFO_FRAMES_MAX
            && self.memory.admit_below_marks(input, output, bytes)
    }

    /// As [`Self::arrive`], after the departures of `output` were settled.
    #[inline(never)]
    fn arrive_settled(
        &mut self,
        now: Instant,
        input: usize,
        output: usize,
        frame: Frame,
        draw: impl FnOnce() -> u32,
    ) -> Passage {
        let charge = self.memory.charge(frame.bytes);
        if self.is_coupled && self.memory.depends_on_others(input, output, charge) {
            self.settle(now);
        }
        if self.departures[output].ring.len() >= FIFO_FRAMES_MAX {
            self.memory.accounts(output).0.drop_frame(AdmissionLimit::Ring, frame.bytes);
            return Passage::Dropped(AdmissionLimit::Ring);
        }
        match self.memory.arrive(now, input, output, frame, draw) {
            Verdict::Accepted { marked } => self.book(now, input, output, frame.bytes, marked),
            Verdict::Dropped(limit) => Passage::Dropped(limit),
        }
    }

    /// Books the departure of a frame that was admitted.
    #[inline(always)]
    fn book(&mut self, now: Instant, input: usize, output: usize, bytes: u32, marked: bool) -> Passage {
        let departures = &mut self.departures[output];
        let was_empty = departures.ring.is_empty();
        let (start, end) = departures.book(now, bytes, input as u32);
        if was_empty && self.is_coupled {
            let front = departures.front;
            self.fronts[output] = front;
            let group = &mut self.group_fronts[output / GROUP];
            *group = front.min(*group);
        }
        Passage::Queued { start, end, marked }
    }

    /// Gives back the memory of every frame that has departed by `now`, so that [`Self::memory`] is exact.
    pub fn settle(&mut self, now: Instant) {
        if !self.is_coupled {
            (0..self.departures.len()).for_each(|output| self.settle_output(now, output));
            return;
        }
        for group in 0..self.group_fronts.len() {
            if self.group_fronts[group] > now.get() {
                continue;
            }
            let outputs = group * GROUP..self.departures.len().min((group + 1) * GROUP);
            for output in outputs.clone() {
                if self.fronts[output] <= now.get() {
                    self.settle_output(now, output);
                }
            }
            self.group_fronts[group] = self.fronts[outputs].iter().copied().fold(NEVER, u64::min);
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
        departures.take_due(now, |BookedDeparture { at, bytes, input }| {
            let charge = own.charge(bytes);
            shared.depart(input as usize, output, charge);
            charges += charge;
            departed.add(bytes);
            last = at;
        });
        own.depart_many(last, charges, departed);
        assert_eq!(own.occupancy().frames, u64::from(departures.ring.len()), "frames and departures");
        self.fronts[output] = departures.front;
    }

    /// The occupancy of an output port at `now`.
    #[inline]
    pub fn occupancy(&mut self, now: Instant, output: usize) -> &Occupancy {
        self.settle_output(now, output);
        self.memory.output(output)
    }

    /// When an output port's link will be free, if nothing more arrives.
    #[inline]
    pub fn free_at(&self, output: usize) -> Instant {
        self.departures[output].free_at
    }

    /// The link of an output port.
    pub fn link(&self, output: usize) -> &OutputLink {
        &self.departures[output].link
    }

    /// The accounts as of the last arrivals and settlements; call [`Self::settle`] first for exact ones.
    /// High-water marks and drops are always exact.
    pub const fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Starts all high-water marks afresh from the occupancy at `now`.
    pub fn reset_marks(&mut self, now: Instant) {
        self.settle(now);
        self.memory.reset_marks();
    }

    /// Asserts that every accepted frame has departed or has its departure booked, and that all accounts have the bytes of those
    /// frames.
    ///
    /// # Panics
    /// If one has more or less.
    pub fn assert_conserved(&self) {
        let departures = self.departures.iter().enumerate();
        self.memory.assert_conserved(departures.flat_map(|(output, departures)| departures.stored(output)));
    }
}

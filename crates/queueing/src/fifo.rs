//! First-in first-out ports on links of fixed rate, without departures: arithmetic instead of events.

use alloc::vec;
use alloc::vec::Vec;

use fanin_units::{Bytes, Duration, Instant, Rate};

use crate::aqm::Aqm;
use crate::frame::{Count, Frame, Limit, Occupancy, Verdict};
use crate::layout::{Layout, LayoutError};
use crate::memory::Memory;
use crate::ring::Ring;

/// The most frames that one FIFO port holds at a time, whatever its memory allows.
pub const FIFO_FRAMES_MAX: u32 = 1 << 24;

/// Ports whose earliest release is kept together, so that a search skips them all at once.
const GROUP: usize = 16;
/// Nothing will ever be released.
const NEVER: u64 = u64::MAX;

/// Picoseconds in a second times bits in a byte.
const PS_BITS: u64 = 8_000_000_000_000;

/// The link behind an output port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    rate: Rate,
    /// Picoseconds a byte, where that is a whole number; else zero.
    byte_ps: u64,
    overhead: u64,
}

impl Link {
    /// A link of this rate that carries `overhead` bytes beside each frame's own: 20 for Ethernet's preamble and
    /// gap where frames are counted with their check sequence.
    ///
    /// # Panics
    /// If the rate is zero.
    pub const fn new(rate: Rate, overhead: Bytes) -> Self {
        assert!(!rate.is_zero(), "a link needs a rate");
        let byte_ps = if PS_BITS.is_multiple_of(rate.get()) { PS_BITS / rate.get() } else { 0 };
        Self { rate, byte_ps, overhead: overhead.get() }
    }

    /// The rate given.
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// How long a frame of so many bytes occupies the link; rounded up to a picosecond, as [`Rate::time_to_send`].
    #[inline]
    pub const fn time_to_send(&self, bytes: u32) -> Duration {
        let bytes = bytes as u64 + self.overhead;
        if self.byte_ps != 0 {
            return Duration::new(bytes * self.byte_ps);
        }
        match bytes.checked_mul(PS_BITS) {
            Some(bits) => Duration::new(bits.div_ceil(self.rate.get())),
            None => self.rate.time_to_send(Bytes::new(bytes)),
        }
    }
}

/// Whether the frame that is being sent takes memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InService {
    /// Until its last bit has left, as in a store-and-forward switch.
    #[default]
    Counted,
    /// Only until its first bit leaves, as in ns-3, where the device holds the frame that it sends.
    /// A frame that finds its port idle must still fit the queue that it passes through, and shows in the marks.
    Free,
}

/// What becomes of a frame that was handed to a FIFO port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passage {
    /// It is queued, and when it will be sent is known already.
    Queued {
        /// When its first bit leaves.
        start: Instant,
        /// When its last bit has left.
        end: Instant,
        /// Whether the caller must set its ECN bits to CE.
        marked: bool,
    },
    /// It is not.
    Dropped(Limit),
}

#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    release: Instant,
    bytes: u32,
    input: u32,
}

#[derive(Debug, Clone)]
struct Port {
    /// The earliest release.
    front: Instant,
    free_at: Instant,
    link: Link,
    ring: Ring<Entry>,
}

/// The memory of a switch all of whose output ports are first-in first-out on links of fixed rate.
///
/// A frame's departure is known when it arrives: the port is free again after `max(now, free) + wire time`. So nothing happens
/// at departures; memory is given back when somebody looks. An arrival settles its own output port; other ports are
/// settled only where what they have sent meanwhile could change the verdict or a high-water mark. Verdicts, counters
/// and marks are exactly those of an implementation that releases every frame at its time, and a release at the instant of an
/// arrival comes first.
///
/// Time must not run backwards from call to call.
#[derive(Debug, Clone)]
pub struct FifoMemory {
    memory: Memory,
    ports: Vec<Port>,
    in_service: InService,
    /// Whether one output's frames weigh on another's.
    coupled: bool,
    /// The earliest release of each port; kept only where outputs are coupled.
    fronts: Vec<u64>,
    /// Not later than the earliest release of each group of ports.
    group_fronts: Vec<u64>,
}

impl FifoMemory {
    /// An empty memory; `links` has the link of each output port.
    ///
    /// # Panics
    /// If there are not as many links as output ports.
    pub fn new(layout: &Layout, links: &[Link], in_service: InService) -> Result<Self, LayoutError> {
        let memory = Memory::new(layout)?;
        let outputs = memory.outputs_len();
        assert_eq!(links.len(), outputs, "one link for each output port");
        let port = |&link: &Link| Port {
            front: Instant::FAR_FUTURE,
            free_at: Instant::START,
            link,
            ring: Ring::new(),
        };
        Ok(Self {
            memory,
            ports: links.iter().map(port).collect(),
            in_service,
            coupled: layout.couples_outputs(),
            fronts: vec![NEVER; outputs],
            group_fronts: vec![NEVER; outputs.div_ceil(GROUP)],
        })
    }

    /// Marks, or drops early, by `aqm` at one output from now on.
    pub fn set_aqm(&mut self, output: usize, aqm: Aqm) {
        self.memory.set_aqm(output, aqm);
    }

    /// A frame arrives from `input` for `output`; `draw` is as for [`Memory::admit`].
    ///
    /// # Panics
    /// If there is no such port.
    #[inline]
    pub fn handle_arrival(
        &mut self,
        now: Instant,
        input: usize,
        output: usize,
        frame: Frame,
        draw: impl FnOnce() -> u32,
    ) -> Passage {
        self.settle_port(now, output);
        if self.coupled && self.memory.depends_on_others(input, output, self.memory.charge(frame.bytes)) {
            self.settle(now);
        }
        if self.ports[output].ring.len() >= FIFO_FRAMES_MAX {
            self.memory.count_drop(output, Limit::Ring, frame.bytes);
            return Passage::Dropped(Limit::Ring);
        }
        let marked = match self.memory.admit(now, input, output, frame, draw) {
            Verdict::Accepted { marked } => marked,
            Verdict::Dropped(limit) => return Passage::Dropped(limit),
        };
        let port = &mut self.ports[output];
        let start = now.max(port.free_at);
        let end = start + port.link.time_to_send(frame.bytes);
        port.free_at = end;
        let release = match self.in_service {
            InService::Counted => end,
            InService::Free => start,
        };
        if port.ring.is_empty() {
            port.front = release;
            if self.coupled {
                self.fronts[output] = release.get();
                let group = &mut self.group_fronts[output / GROUP];
                *group = release.get().min(*group);
            }
        }
        port.ring.push(Entry { release, bytes: frame.bytes, input: input as u32 });
        Passage::Queued { start, end, marked }
    }

    /// Gives back the memory of everything that has left by `now`, so that [`Self::memory`] is exact.
    pub fn settle(&mut self, now: Instant) {
        if !self.coupled {
            (0..self.ports.len()).for_each(|output| self.settle_port(now, output));
            return;
        }
        for group in 0..self.group_fronts.len() {
            if self.group_fronts[group] > now.get() {
                continue;
            }
            let outputs = group * GROUP..self.ports.len().min((group + 1) * GROUP);
            for output in outputs.clone() {
                if self.fronts[output] <= now.get() {
                    self.settle_port(now, output);
                }
            }
            self.group_fronts[group] = self.fronts[outputs].iter().copied().fold(NEVER, u64::min);
        }
    }

    #[inline]
    fn settle_port(&mut self, now: Instant, output: usize) {
        let port = &mut self.ports[output];
        if port.front > now {
            return;
        }
        let (mut charges, mut departed, mut last) = (0, Count::default(), Instant::START);
        while let Some(entry) = port.ring.pop_if(|entry| entry.release <= now) {
            let charge = self.memory.charge(entry.bytes);
            if self.coupled {
                self.memory.uncharge_input(entry.input as usize, output, charge);
            }
            charges += charge;
            departed.add(entry.bytes);
            last = entry.release;
        }
        port.front = port.ring.front().map_or(Instant::FAR_FUTURE, |entry| entry.release);
        if self.coupled {
            self.fronts[output] = port.front.get();
        }
        self.memory.settle_output(last, output, charges, departed);
    }

    /// What is queued for an output port at `now`.
    #[inline]
    pub fn queue(&mut self, now: Instant, output: usize) -> &Occupancy {
        self.settle_port(now, output);
        self.memory.output(output)
    }

    /// When an output port's link will be free, if nothing more arrives.
    #[inline]
    pub fn free_at(&self, output: usize) -> Instant {
        self.ports[output].free_at
    }

    /// The link of an output port.
    pub fn link(&self, output: usize) -> &Link {
        &self.ports[output].link
    }

    /// The accounts as of the last arrivals and settlings; call [`Self::settle`] first for exact ones.
    /// High-water marks and drops are always exact.
    pub const fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Starts all high-water marks afresh from what is held at `now`.
    pub fn reset_marks(&mut self, now: Instant) {
        self.settle(now);
        self.memory.reset_marks();
    }
}

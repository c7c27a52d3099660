//! A port with the ring of one destination at most, beside that of all others.
//!
//! Order and departures are known here too: the others first, then the ring's frames as their tokens allow. They go onto
//! the link with their times like the frames of a plain port, and who looks finds that those whose time has come have left.
//! One of the others that comes while frames of the ring have their times and have not begun goes before them: they are
//! taken back and get new times. So that this costs little, only the ring's first few frames have times, fewer where they
//! were taken back lately, and an occurrence is spent where more wait and the last of those begins.
//!
//! What is first on a link cannot be taken back: its arrival is pending. A frame that has to wait for tokens until the link
//! has run empty therefore gets its time by an occurrence when they are there.
//!
//! What is due at the instant of an arrival comes before it.

use std::collections::VecDeque;

use fanin_queueing::{BucketError, RING_FRAMES_MAX, RingError, TokenBucket};
use fanin_units::{Bytes, Instant, Rate};

use super::{Parcel, Port, PortIndex, Schedule};
use crate::rings::RingFigures;

/// So many frames of a ring have times at most, and after some were taken back.
const BOOKED_MAX: u32 = 32;
const BOOKED_MIN: u32 = 4;

/// Nothing is due.
pub(super) const NEVER: u64 = u64::MAX;

/// The port before the link, at one moment.
pub(super) struct Link<'a> {
    pub(super) port: &'a mut Port,
    pub(super) index: PortIndex,
    pub(super) schedule: &'a mut Schedule,
    pub(super) now: u64,
}

impl Link<'_> {
    #[inline(always)]
    fn accept(&mut self, start: u64, parcel: Parcel) {
        let departure = start + self.port.time_to_send(parcel.wire_bytes());
        self.port.accept(self.schedule, departure, self.index, parcel);
    }
}

/// A frame that was put onto the link with its time.
#[derive(Clone, Copy)]
struct Booked {
    /// When it begins to leave.
    start: u64,
    wire_bytes: u32,
}

/// What waits in one place, as far as anybody has looked: frames with a time and without.
#[derive(Clone, Copy, Default)]
struct Held {
    frames: u32,
    frames_max: u32,
    bytes: u64,
    bytes_max: u64,
    enqueued: u64,
    drops: u64,
}

impl Held {
    /// A frame that the switch stores so many bytes of; false where as many are there as may be.
    #[inline(always)]
    fn enter(&mut self, bytes: u32, frames_limit: u32) -> bool {
        if self.frames >= frames_limit {
            self.drops += 1;
            return false;
        }
        self.frames += 1;
        self.bytes += u64::from(bytes);
        self.frames_max = self.frames_max.max(self.frames);
        self.bytes_max = self.bytes_max.max(self.bytes);
        self.enqueued += 1;
        true
    }

    #[inline(always)]
    fn leave(&mut self, bytes: u32) {
        self.frames -= 1;
        self.bytes -= u64::from(bytes);
    }
}

/// The ring's rate.
#[derive(Clone, Copy)]
struct Tokens {
    /// After all frames that have times.
    booked: TokenBucket,
    /// After those that have begun to leave as far as anybody has looked.
    begun: TokenBucket,
}

/// What waits at such a port.
pub(crate) struct OneRing {
    /// When the first frame of the line begins to leave.
    front: u64,
    /// Frames that have times and have not begun as far as anybody has looked, in order: all of the others, and behind them
    /// the first of the ring.
    line: VecDeque<Booked>,
    /// How many of them are of the ring.
    booked: u32,
    others: Held,
    ring: Held,
    frames_limit: u32,
    unstored_bytes: u32,
    booked_max: u32,
    tokens: Option<Tokens>,
    /// Frames of the ring that have no times yet.
    waiting: VecDeque<Parcel>,
}

impl OneRing {
    /// A port whose rings hold so many frames each.
    pub(crate) fn new(frames_limit: u32, unstored_bytes: u32) -> Result<Self, RingError> {
        if frames_limit == 0 || frames_limit > RING_FRAMES_MAX {
            return Err(RingError::Frames { got: frames_limit, reserved: 0, max: RING_FRAMES_MAX });
        }
        Ok(Self {
            front: NEVER,
            line: VecDeque::new(),
            booked: 0,
            others: Held::default(),
            ring: Held::default(),
            frames_limit,
            unstored_bytes,
            booked_max: BOOKED_MAX,
            tokens: None,
            waiting: VecDeque::new(),
        })
    }

    /// Gives the ring its rate, before its first frame.
    pub(crate) fn set_shaping(&mut self, shaping: Option<(Rate, Bytes)>) -> Result<(), BucketError> {
        self.tokens = match shaping {
            Some((rate, burst)) => {
                let bucket = TokenBucket::new(rate, burst)?;
                Some(Tokens { booked: bucket, begun: bucket })
            }
            None => None,
        };
        Ok(())
    }

    /// Whether no frame has come yet.
    pub(crate) const fn is_unused(&self) -> bool {
        self.others.enqueued == 0 && self.ring.enqueued == 0
    }

    /// A frame comes, for the ring or not. Returns when the port is to be looked at, if it was not to be already; `None`
    /// where there is no room.
    #[inline(always)]
    pub(super) fn handle_arrival(
        &mut self,
        link: &mut Link<'_>,
        is_for_ring: bool,
        parcel: Parcel,
    ) -> Option<u64> {
        self.settle(link.now);
        let wire_bytes = parcel.wire_bytes();
        let held = if is_for_ring { &mut self.ring } else { &mut self.others };
        if !held.enter(wire_bytes - self.unstored_bytes, self.frames_limit) {
            return None;
        }
        if !is_for_ring {
            return Some(self.pass_ring(link, parcel));
        }
        if self.waiting.is_empty() {
            match self.start(link, wire_bytes) {
                Ok(start) => {
                    self.book(link, start, parcel);
                    return Some(NEVER);
                }
                Err(look_at) => {
                    self.waiting.push_back(parcel);
                    return Some(look_at);
                }
            }
        }
        self.waiting.push_back(parcel);
        Some(NEVER)
    }

    /// It is time to give frames of the ring their times; returns when it will be again.
    pub(super) fn handle_look(&mut self, link: &mut Link<'_>) -> u64 {
        self.settle(link.now);
        self.booked_max = (2 * self.booked_max).min(BOOKED_MAX);
        self.fill(link)
    }

    /// One of the others goes before all frames of the ring that have not begun.
    #[inline(always)]
    fn pass_ring(&mut self, link: &mut Link<'_>, parcel: Parcel) -> u64 {
        if self.booked > 0 {
            self.take_back(link.port);
        }
        let start = link.now.max(link.port.departure);
        link.accept(start, parcel);
        if start > link.now {
            self.push(start, parcel.wire_bytes());
        } else {
            self.others.leave(parcel.wire_bytes() - self.unstored_bytes);
        }
        self.fill(link)
    }

    /// Takes all frames of the ring back that have not begun.
    #[inline(never)]
    fn take_back(&mut self, port: &mut Port) {
        for _ in 0..std::mem::take(&mut self.booked) {
            self.waiting.push_front(port.unbook());
            self.line.pop_back();
        }
        self.front = self.line.front().map_or(NEVER, |booked| booked.start);
        if let Some(Tokens { booked, begun }) = &mut self.tokens {
            *booked = *begun;
        }
        self.booked_max = BOOKED_MIN;
    }

    /// Gives frames of the ring their times as far as may be; returns when to go on with it.
    #[inline(always)]
    fn fill(&mut self, link: &mut Link<'_>) -> u64 {
        while let Some(&parcel) = self.waiting.front() {
            match self.start(link, parcel.wire_bytes()) {
                Ok(start) => {
                    self.waiting.pop_front();
                    self.book(link, start, parcel);
                }
                Err(look_at) => return look_at,
            }
        }
        NEVER
    }

    /// When the ring's first frame without a time begins to leave, as things stand; or when to ask again.
    #[inline(always)]
    fn start(&self, link: &Link<'_>, wire_bytes: u32) -> Result<u64, u64> {
        let &Link { ref port, now, .. } = link;
        if self.booked >= self.booked_max {
            return Err(self.line.back().map_or(now, |booked| booked.start));
        }
        let free = now.max(port.departure);
        let Some(tokens) = &self.tokens else { return Ok(free) };
        let start = free.max(tokens.booked.ready_at(wire_bytes).get());
        if start > now.max(port.departure + port.delay) { Err(start) } else { Ok(start) }
    }

    /// A frame of the ring gets its time.
    #[inline(always)]
    fn book(&mut self, link: &mut Link<'_>, start: u64, parcel: Parcel) {
        let wire_bytes = parcel.wire_bytes();
        link.accept(start, parcel);
        if let Some(tokens) = &mut self.tokens {
            tokens.booked.take(Instant::new(start), wire_bytes);
        }
        if start > link.now {
            self.push(start, wire_bytes);
            self.booked += 1;
        } else {
            // Nothing is before it.
            self.ring.leave(wire_bytes - self.unstored_bytes);
            if let Some(tokens) = &mut self.tokens {
                tokens.begun = tokens.booked;
            }
        }
    }

    #[inline(always)]
    fn push(&mut self, start: u64, wire_bytes: u32) {
        self.front = self.front.min(start);
        self.line.push_back(Booked { start, wire_bytes });
    }

    /// Lets go what has begun to leave by `now`.
    #[inline(always)]
    pub(crate) fn settle(&mut self, now: u64) {
        while self.front <= now {
            self.leave();
        }
    }

    /// The first frame of the line has begun to leave.
    #[inline(always)]
    fn leave(&mut self) {
        let Some(Booked { start, wire_bytes }) = self.line.pop_front() else {
            self.front = NEVER;
            return;
        };
        self.front = self.line.front().map_or(NEVER, |booked| booked.start);
        let bytes = wire_bytes - self.unstored_bytes;
        if self.others.frames > 0 {
            return self.others.leave(bytes);
        }
        self.ring.leave(bytes);
        self.booked -= 1;
        if let Some(tokens) = &mut self.tokens {
            tokens.begun.take(Instant::new(start), wire_bytes);
        }
    }

    /// The frames that have no times yet.
    pub(super) fn waiting(&self) -> impl Iterator<Item = Parcel> {
        self.waiting.iter().copied()
    }

    /// Frames that have not begun to leave as far as anybody has looked.
    pub(crate) fn frames(&self) -> u64 {
        u64::from(self.others.frames + self.ring.frames)
    }

    /// Their bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.others.bytes + self.ring.bytes
    }

    /// The most bytes that one place held.
    pub(crate) fn bytes_max(&self) -> u64 {
        self.others.bytes_max.max(self.ring.bytes_max)
    }

    /// Starts the high-water marks afresh.
    pub(crate) fn reset_marks(&mut self, now: u64) {
        self.settle(now);
        for held in [&mut self.others, &mut self.ring] {
            (held.frames_max, held.bytes_max) = (held.frames, held.bytes);
        }
    }

    /// Adds what the ring of the destination did.
    pub(crate) fn add_to(&self, figures: &mut RingFigures) {
        figures.frames_max = figures.frames_max.max(self.ring.frames_max.into());
        figures.bytes_max = figures.bytes_max.max(self.ring.bytes_max);
        figures.frames += self.ring.enqueued;
        figures.drops += self.ring.drops;
    }
}

#[cfg(test)]
mod tests;

//! An output port that stores frames in rings, each with its own capacity and rate.

use alloc::vec::Vec;

use fanin_units::{Bytes, Duration, Instant, Rate};

use crate::aqm::{Aqm, Decision};
use crate::bucket::{BucketError, TokenBucket};
use crate::frame::{Count, Counters, Ecn, Frame, Limit, Occupancy, Verdict};
use crate::ready::{KEY_MAX, Ready};
use crate::ring::Ring;
use crate::wheel::Wheel;

/// The most rings of one port.
pub const RINGS_MAX: usize = 1 << 16;
/// The most frames that one ring can be told to hold.
pub const RING_FRAMES_MAX: u32 = 1 << 24;

/// Which of the rings that may send goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Discipline {
    /// In turn, a frame each.
    #[default]
    RoundRobin,
    /// The one with the most frames; in turn among equals. Lengths from 262 143 frames on count as equal.
    LongestFirst,
    /// The one with the highest [`RingSettings::priority`]; in turn among equals.
    StrictPriority,
}

/// Settings of one ring.
#[derive(Debug, Clone)]
pub struct RingSettings {
    /// The most frames it holds, at most [`RING_FRAMES_MAX`].
    pub frames_max: u32,
    /// The most bytes it holds, as [`Frame::bytes`] counts them.
    pub bytes_max: Bytes,
    /// Frames to allocate room for at once; beyond that room doubles when needed, up to `frames_max`.
    pub frames_reserved: u32,
    /// Its token bucket: rate and burst. `None`: only the port's rate holds it back.
    pub shaping: Option<(Rate, Bytes)>,
    /// For [`Discipline::StrictPriority`]; the highest goes first.
    pub priority: u8,
    /// Marking and early dropping.
    pub aqm: Aqm,
}

impl RingSettings {
    /// A ring for so many frames, not shaped.
    pub const fn new(frames_max: u32) -> Self {
        Self {
            frames_max,
            bytes_max: Bytes::MAX,
            frames_reserved: 0,
            shaping: None,
            priority: 0,
            aqm: Aqm::None,
        }
    }
}

/// Why a ring cannot be added or changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RingError {
    /// The port has as many rings as it can.
    #[error("a port has at most {max} rings")]
    TooMany {
        /// The most.
        max: usize,
    },
    /// A ring that is too deep or holds nothing.
    #[error("a ring holds 1 to {max} frames; got {got}, of which {reserved} reserved")]
    Frames {
        /// The depth asked for.
        got: u32,
        /// The room asked for at once.
        reserved: u32,
        /// The most.
        max: u32,
    },
    /// Its token bucket.
    #[error(transparent)]
    Shaping(#[from] BucketError),
}

/// What a port does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Departure<H> {
    /// This frame goes now. Its ECN bits are as the port left them.
    Frame {
        /// The ring it was in.
        ring: usize,
        /// Its descriptor.
        frame: Frame,
        /// What the caller handed in with it.
        handle: H,
    },
    /// Nothing may go before this time, exactly, unless something changes.
    NotBefore(Instant),
    /// Nothing is queued, or all that is belongs to paused rings.
    Empty,
}

#[derive(Debug, Clone, Copy, Default)]
struct Slot<H> {
    frame: Frame,
    handle: H,
}

/// Where a ring waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Empty or paused.
    Idle,
    /// May send now.
    Ready,
    /// Lacks tokens.
    Parked,
}

/// Two cache lines for all that a frame touches.
#[derive(Debug, Clone)]
#[repr(align(64))]
struct RingState<H> {
    queue: Ring<Slot<H>>,
    bytes: u64,
    bytes_limit: u64,
    bucket: TokenBucket,
    enqueued: Count,
    bytes_max: u64,
    frames_max: u32,
    frames_limit: u32,
    state: State,
    paused: bool,
    shaped: bool,
    has_aqm: bool,
    priority: u8,
    /// Since when its first frame could go, as far as it and its rate are concerned.
    due: Instant,
}

/// What only drops, marks and readers touch.
#[derive(Debug, Clone)]
struct Rare {
    aqm: Aqm,
    emptied_at: Instant,
    marked: Count,
    dropped: [Count; Limit::ALL.len()],
}

/// An output port with one or more rings of frames, generic over an opaque handle: a packet's index in the simulator, a
/// frame buffer's address in the switch. It stores descriptors and handles only.
///
/// Rings are independent: one that is full refuses its own frames, one that is paused or out of tokens keeps only its own
/// back. The cost of a frame does not depend on the number of rings, and no frame allocates beyond a ring's doubling up to
/// its capacity. Time must not run backwards from call to call.
#[derive(Debug, Clone)]
pub struct Port<H> {
    rings: Vec<RingState<H>>,
    rare: Vec<Rare>,
    ready: Ready,
    wheel: Wheel,
    discipline: Discipline,
    shaper: Option<TokenBucket>,
    /// What the wire adds to each frame, for token buckets only.
    overhead: u32,
    /// How far back a departure may count that is polled late.
    late_max: Duration,
    /// Nothing counts as sent before this.
    held_until: Instant,
    frames: u64,
}

impl<H: Copy + Default> Port<H> {
    /// A port without rings. `shaping` limits the port as a whole; with a burst of zero it is sent from as from a link
    /// of this rate, and [`Frame::bytes`] must then include what the wire adds. Where the caller knows by itself when the
    /// link is free, `None`.
    pub fn new(discipline: Discipline, shaping: Option<(Rate, Bytes)>) -> Result<Self, BucketError> {
        let shaper = match shaping {
            Some((rate, burst)) => Some(TokenBucket::new(rate, burst)?),
            None => None,
        };
        let mut ready = Ready::new();
        if discipline == Discipline::StrictPriority {
            ready.reserve_keys(u8::MAX.into());
        }
        Ok(Self {
            rings: Vec::new(),
            rare: Vec::new(),
            ready,
            wheel: Wheel::new(),
            discipline,
            shaper,
            overhead: 0,
            late_max: Duration::ZERO,
            held_until: Instant::START,
            frames: 0,
        })
    }

    /// The same port, whose token buckets charge so many bytes more for each frame than it stores: what the wire adds.
    #[must_use]
    pub const fn with_overhead(mut self, bytes: u32) -> Self {
        self.overhead = bytes;
        self
    }

    /// The same port for a caller who may come late: a frame that could have gone before [`Self::poll_departure`] is called
    /// counts as sent when it could, up to `late_max` back, so that rates are kept. At zero it counts as sent when it is.
    #[must_use]
    pub const fn with_lateness(mut self, late_max: Duration) -> Self {
        self.late_max = late_max;
        self
    }

    /// The link was held up until `now`, by a PAUSE say: the time until then is not made good.
    pub const fn set_held_until(&mut self, now: Instant) {
        self.held_until = now;
    }

    /// Adds a ring and returns its index; indices count up from zero and are never used again.
    pub fn add_ring(&mut self, settings: &RingSettings) -> Result<usize, RingError> {
        let &RingSettings { frames_max, bytes_max, frames_reserved, shaping, priority, .. } = settings;
        if self.rings.len() >= RINGS_MAX {
            return Err(RingError::TooMany { max: RINGS_MAX });
        }
        let max = RING_FRAMES_MAX;
        if frames_max == 0 || frames_max > max || frames_reserved > frames_max {
            return Err(RingError::Frames { got: frames_max, reserved: frames_reserved, max });
        }
        let bucket = match shaping {
            Some((rate, burst)) => TokenBucket::new(rate, burst)?,
            None => TokenBucket::new(TokenBucket::RATE_MAX, Bytes::ZERO)?,
        };
        let mut queue = Ring::new();
        queue.reserve(frames_reserved);
        self.rings.push(RingState {
            queue,
            bytes: 0,
            bytes_limit: bytes_max.get(),
            bucket,
            enqueued: Count::default(),
            bytes_max: 0,
            frames_max: 0,
            frames_limit: frames_max,
            state: State::Idle,
            paused: false,
            shaped: shaping.is_some(),
            has_aqm: !matches!(settings.aqm, Aqm::None),
            priority,
            due: Instant::START,
        });
        self.rare.push(Rare {
            aqm: settings.aqm.clone(),
            emptied_at: Instant::START,
            marked: Count::default(),
            dropped: Default::default(),
        });
        self.ready.add();
        self.wheel.add();
        if self.discipline == Discipline::LongestFirst {
            self.ready.reserve_keys(frames_max);
        }
        Ok(self.rings.len() - 1)
    }

    /// A frame arrives for a ring. `draw` gives 32 uniform random bits and is called only where RED needs them.
    ///
    /// # Panics
    /// If there is no such ring.
    #[inline]
    pub fn handle_arrival(
        &mut self,
        now: Instant,
        ring: usize,
        mut frame: Frame,
        handle: H,
        draw: impl FnOnce() -> u32,
    ) -> Verdict {
        let state = &mut self.rings[ring];
        let mut marked = false;
        if state.has_aqm {
            let held =
                Occupancy { bytes: state.bytes, frames: state.queue.len().into(), ..Occupancy::default() };
            let rare = &mut self.rare[ring];
            match rare.aqm.decide(now, &held, rare.emptied_at, frame, draw) {
                Decision::Pass => {}
                Decision::Mark => marked = true,
                Decision::Drop => return self.refuse(ring, Limit::Early, frame.bytes),
            }
        }
        let bytes = state.bytes + u64::from(frame.bytes);
        if state.queue.len() >= state.frames_limit || bytes > state.bytes_limit {
            return self.refuse(ring, Limit::Ring, frame.bytes);
        }
        if marked {
            self.rare[ring].marked.add(frame.bytes);
            frame.ecn = Ecn::Congestion;
        }
        state.queue.push(Slot { frame, handle });
        state.bytes = bytes;
        state.bytes_max = state.bytes_max.max(bytes);
        state.frames_max = state.frames_max.max(state.queue.len());
        state.enqueued.add(frame.bytes);
        self.frames += 1;
        match state.state {
            State::Idle if !state.paused => self.activate(now, ring, now),
            State::Ready if self.discipline == Discipline::LongestFirst => {
                self.ready.remove(ring as u32);
                self.insert_ready(ring);
            }
            _ => {}
        }
        Verdict::Accepted { marked }
    }

    /// Looks at a ring without doing anything, so that what the next arrival needs is on its way to the cache. The answer
    /// says nothing.
    #[inline]
    pub fn touch(&self, ring: usize) -> u64 {
        self.rings[ring].bytes
    }

    /// As [`Self::handle_arrival`] for many frames; `refused` is told of each that was not taken.
    pub fn handle_arrivals(
        &mut self,
        now: Instant,
        frames: impl IntoIterator<Item = (usize, Frame, H)>,
        mut draw: impl FnMut() -> u32,
        mut refused: impl FnMut(usize, H, Limit),
    ) {
        for (ring, frame, handle) in frames {
            if let Verdict::Dropped(limit) = self.handle_arrival(now, ring, frame, handle, &mut draw) {
                refused(ring, handle, limit);
            }
        }
    }

    /// What a ring would say to one frame more, markers aside: the limit that would refuse it.
    #[inline]
    pub fn would_refuse(&self, ring: usize, bytes: u32) -> Option<Limit> {
        let state = &self.rings[ring];
        let full =
            state.queue.len() >= state.frames_limit || state.bytes + u64::from(bytes) > state.bytes_limit;
        full.then_some(Limit::Ring)
    }

    /// The next frame that may go at `now`.
    #[inline]
    pub fn poll_departure(&mut self, now: Instant) -> Departure<H> {
        let Self { wheel, ready, rings, discipline, .. } = self;
        wheel.expire(now, |ring| {
            let state = &mut rings[ring as usize];
            state.state = State::Ready;
            ready.insert(ring, state.key(*discipline));
        });
        if let Some(shaper) = &self.shaper
            && shaper.open_at() > now
        {
            return match self.wheel.earliest() {
                _ if !self.ready.is_empty() => Departure::NotBefore(shaper.open_at()),
                Some(earliest) => Departure::NotBefore(earliest.max(shaper.open_at())),
                None => Departure::Empty,
            };
        }
        let Some(ring) = self.ready.pop() else {
            return match self.wheel.earliest() {
                Some(earliest) => Departure::NotBefore(earliest),
                None => Departure::Empty,
            };
        };
        let ring = ring as usize;
        let Slot { frame, handle } = self.dequeue(now, ring);
        let state = &mut self.rings[ring];
        let oldest = Instant::new(now.get().saturating_sub(self.late_max.get()));
        let mut at = state.due.max(oldest).max(self.held_until);
        let bytes = frame.bytes + self.overhead;
        if let Some(shaper) = &mut self.shaper {
            at = at.max(shaper.open_at());
            shaper.take(at, bytes);
        }
        if state.shaped {
            state.bucket.take(at, bytes);
        }
        if state.queue.is_empty() {
            state.state = State::Idle;
        } else {
            self.activate(now, ring, at);
        }
        Departure::Frame { ring, frame, handle }
    }

    /// Up to `frames_max` frames that may go at `now`, each handed to `send`. Returns how many went; with fewer than
    /// `frames_max`, [`Self::poll_departure`] says when to come back.
    #[inline]
    pub fn poll_departures(
        &mut self,
        now: Instant,
        frames_max: usize,
        mut send: impl FnMut(usize, Frame, H),
    ) -> usize {
        for sent in 0..frames_max {
            match self.poll_departure(now) {
                Departure::Frame { ring, frame, handle } => send(ring, frame, handle),
                Departure::NotBefore(_) | Departure::Empty => return sent,
            }
        }
        frames_max
    }

    /// Takes a frame out of one ring whatever its rate, pause or turn: to empty a ring that goes away.
    pub fn take(&mut self, now: Instant, ring: usize) -> Option<(Frame, H)> {
        if self.rings[ring].queue.is_empty() {
            return None;
        }
        self.deactivate(ring);
        let Slot { frame, handle } = self.dequeue(now, ring);
        if !self.rings[ring].queue.is_empty() && !self.rings[ring].paused {
            self.activate(now, ring, now);
        }
        Some((frame, handle))
    }

    /// Keeps a ring from sending, or lets it send again. Others are not touched.
    pub fn set_paused(&mut self, now: Instant, ring: usize, paused: bool) {
        let state = &mut self.rings[ring];
        if state.paused == paused {
            return;
        }
        state.paused = paused;
        if paused {
            self.deactivate(ring);
        } else if !state.queue.is_empty() {
            self.activate(now, ring, now);
        }
    }

    /// Whether a ring is kept from sending.
    pub fn is_paused(&self, ring: usize) -> bool {
        self.rings[ring].paused
    }

    /// Changes a ring's capacity. Frames that are queued stay, even above the new one.
    pub fn set_capacity(&mut self, ring: usize, frames_max: u32, bytes_max: Bytes) -> Result<(), RingError> {
        if frames_max == 0 || frames_max > RING_FRAMES_MAX {
            return Err(RingError::Frames { got: frames_max, reserved: 0, max: RING_FRAMES_MAX });
        }
        let state = &mut self.rings[ring];
        (state.frames_limit, state.bytes_limit) = (frames_max, bytes_max.get());
        if self.discipline == Discipline::LongestFirst {
            self.ready.reserve_keys(frames_max);
        }
        Ok(())
    }

    /// Changes a ring's token bucket; what it has sent already still counts.
    pub fn set_shaping(
        &mut self,
        now: Instant,
        ring: usize,
        shaping: Option<(Rate, Bytes)>,
    ) -> Result<(), BucketError> {
        let state = &mut self.rings[ring];
        match shaping {
            Some((rate, burst)) if state.shaped => state.bucket.set(now, rate, burst)?,
            Some((rate, burst)) => state.bucket = TokenBucket::new(rate, burst)?,
            None => {}
        }
        state.shaped = shaping.is_some();
        if state.state != State::Idle {
            self.deactivate(ring);
            self.activate(now, ring, now);
        }
        Ok(())
    }

    /// Changes the rate and burst of the port as a whole; what it has sent already still counts.
    pub fn set_rate(&mut self, now: Instant, shaping: Option<(Rate, Bytes)>) -> Result<(), BucketError> {
        match (shaping, &mut self.shaper) {
            (Some((rate, burst)), Some(shaper)) => shaper.set(now, rate, burst)?,
            (Some((rate, burst)), None) => self.shaper = Some(TokenBucket::new(rate, burst)?),
            (None, shaper) => *shaper = None,
        }
        Ok(())
    }

    /// Changes a ring's place under [`Discipline::StrictPriority`].
    pub fn set_priority(&mut self, now: Instant, ring: usize, priority: u8) {
        self.rings[ring].priority = priority;
        if self.rings[ring].state != State::Idle {
            self.deactivate(ring);
            self.activate(now, ring, now);
        }
    }

    /// Makes a new ring of an empty one, with counters that start at zero: indices are never given back, so that who adds
    /// and removes rings for a living uses them again.
    ///
    /// # Panics
    /// If the ring holds a frame.
    pub fn renew_ring(
        &mut self,
        now: Instant,
        ring: usize,
        settings: &RingSettings,
    ) -> Result<(), RingError> {
        assert!(self.rings[ring].queue.is_empty(), "ring {ring} is renewed while it holds frames");
        let bucket = match settings.shaping {
            Some((rate, burst)) => TokenBucket::new(rate, burst)?,
            None => TokenBucket::new(TokenBucket::RATE_MAX, Bytes::ZERO)?,
        };
        self.set_capacity(ring, settings.frames_max, settings.bytes_max)?;
        self.set_aqm(ring, settings.aqm.clone());
        let state = &mut self.rings[ring];
        (state.bucket, state.shaped, state.priority) =
            (bucket, settings.shaping.is_some(), settings.priority);
        (state.enqueued, state.bytes_max, state.frames_max, state.paused) = (Count::default(), 0, 0, false);
        let rare = &mut self.rare[ring];
        (rare.marked, rare.dropped, rare.emptied_at) = (Count::default(), Default::default(), now);
        Ok(())
    }

    /// Changes a ring's marking; averages start afresh.
    pub fn set_aqm(&mut self, ring: usize, aqm: Aqm) {
        self.rings[ring].has_aqm = !matches!(aqm, Aqm::None);
        self.rare[ring].aqm = aqm;
    }

    /// Number of rings.
    pub fn rings_len(&self) -> usize {
        self.rings.len()
    }

    /// Frames in all rings.
    pub const fn frames(&self) -> u64 {
        self.frames
    }

    /// What a ring holds; bytes are the frames' own.
    pub fn held(&self, ring: usize) -> Occupancy {
        let state = &self.rings[ring];
        Occupancy {
            bytes: state.bytes,
            frames: state.queue.len().into(),
            bytes_max: state.bytes_max,
            frames_max: state.frames_max.into(),
        }
    }

    /// What happened at a ring.
    pub fn counters(&self, ring: usize) -> Counters {
        let (state, rare) = (&self.rings[ring], &self.rare[ring]);
        Counters {
            enqueued: state.enqueued,
            departed: Count {
                frames: state.enqueued.frames - u64::from(state.queue.len()),
                bytes: state.enqueued.bytes - state.bytes,
            },
            marked: rare.marked,
            dropped: rare.dropped,
        }
    }

    /// Starts a ring's high-water marks afresh from what is held now.
    pub fn reset_marks(&mut self, ring: usize) {
        let state = &mut self.rings[ring];
        (state.bytes_max, state.frames_max) = (state.bytes, state.queue.len());
    }

    #[cold]
    fn refuse(&mut self, ring: usize, limit: Limit, bytes: u32) -> Verdict {
        self.rare[ring].dropped[limit as usize].add(bytes);
        Verdict::Dropped(limit)
    }

    #[inline]
    fn dequeue(&mut self, now: Instant, ring: usize) -> Slot<H> {
        let state = &mut self.rings[ring];
        let slot = state.queue.pop().expect("a ring that is ready holds a frame");
        state.bytes -= u64::from(slot.frame.bytes);
        self.frames -= 1;
        if state.has_aqm && state.queue.is_empty() {
            self.rare[ring].emptied_at = now;
        }
        slot
    }

    /// A ring that is not empty, not paused and nowhere yet goes where it belongs. Its first frame is the first since `since`.
    #[inline]
    fn activate(&mut self, now: Instant, ring: usize, since: Instant) {
        let state = &mut self.rings[ring];
        state.due = since;
        if state.shaped {
            let bytes = state.queue.front().map_or(0, |slot| slot.frame.bytes);
            let at = state.bucket.ready_at(bytes + self.overhead);
            state.due = since.max(at);
            if at > now {
                state.state = State::Parked;
                self.wheel.park(now, ring as u32, at);
                return;
            }
        }
        state.state = State::Ready;
        self.insert_ready(ring);
    }

    #[inline]
    fn insert_ready(&mut self, ring: usize) {
        let key = self.rings[ring].key(self.discipline);
        self.ready.insert(ring as u32, key);
    }

    fn deactivate(&mut self, ring: usize) {
        match core::mem::replace(&mut self.rings[ring].state, State::Idle) {
            State::Idle => {}
            State::Ready => self.ready.remove(ring as u32),
            State::Parked => self.wheel.remove(ring as u32),
        }
    }
}

impl<H: Copy + Default> RingState<H> {
    /// Where this ring stands among those that may send.
    #[inline]
    fn key(&self, discipline: Discipline) -> u32 {
        match discipline {
            Discipline::RoundRobin => 0,
            Discipline::StrictPriority => self.priority.into(),
            Discipline::LongestFirst => self.queue.len().min(KEY_MAX),
        }
    }
}

//! An output port that stores frames in rings, each with its own capacity and rate.

use alloc::vec::Vec;

use fanin_units::{Bytes, Duration, Instant, Rate};

use crate::aqm::{Aqm, AqmDecision};
use crate::bucket::{BucketError, TokenBucket};
use crate::fifo::Fifo;
use crate::frame::{AdmissionLimit, Counters, EcnCodepoint, Frame, FrameCount, Occupancy, Verdict};
use crate::ready::{KEY_MAX, Keyed, ReadyRings};
use crate::wheel::Wheel;

mod change;
mod cut_through;
mod next_departure;
mod settings;
mod state;

pub use next_departure::NextDeparture;
pub use settings::{RING_FRAMES_MAX, RINGS_MAX, RingError, RingService, RingSettings};

/// The result of asking a port for its next departure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Departure<H> {
    /// This frame departs now, with its ECN bits as stored.
    Frame {
        /// The ring that it leaves.
        ring: usize,
        /// The descriptor of the frame.
        frame: Frame,
        /// The caller's handle.
        handle: H,
    },
    /// No frame may depart before this time. The time is exact, unless an arrival or a change of settings comes first.
    NotBefore(Instant),
    /// No frame is queued, except in paused rings.
    Empty,
}

#[derive(Debug, Clone, Copy, Default)]
struct RingSlot<H> {
    frame: Frame,
    handle: H,
}

/// The list in which a ring waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RingWait {
    /// Empty or paused.
    Idle,
    /// May send now.
    Ready,
    /// Waits until it has tokens.
    Parked,
}

/// The part of a ring's state that every frame touches. With at most one frame in the ring, no other memory is touched.
#[derive(Debug, Clone)]
struct RingState<H> {
    /// All frames except the first.
    others: Fifo<RingSlot<H>>,
    bytes: u64,
    bytes_limit: u64,
    bytes_max: u64,
    frames_limit: u32,
    frames_max: u32,
    wait: RingWait,
    /// True if the ring has a first frame.
    has_first: bool,
    is_shaped: bool,
    is_paused: bool,
    /// True if the ring marks or drops early.
    has_aqm: bool,
    bucket: TokenBucket,
    /// The earliest time at which the first frame could depart, by its arrival and the ring's token bucket.
    due: Instant,
    first: RingSlot<H>,
    enqueued: FrameCount,
    departed: FrameCount,
}

/// The part of a ring's state that only drops, marks and readers of counters touch.
#[derive(Debug, Clone)]
struct ColdState {
    aqm: Aqm,
    priority: u8,
    emptied_at: Instant,
    marked: FrameCount,
    dropped: [FrameCount; AdmissionLimit::ALL.len()],
}

/// An output port with one or more rings of frames, generic over an opaque handle. In the simulator a handle is a
/// packet's index, in the switch a frame buffer's address. The port stores descriptors and handles only.
///
/// Rings are independent. A full ring refuses only its own frames; a paused ring, or one without tokens, delays only
/// its own. A frame's cost does not depend on the number of rings. Only the doubling of a ring allocates. Time must not
/// run backwards.
#[derive(Debug, Clone)]
pub struct Rings<H> {
    rings: Vec<RingState<H>>,
    cold: Vec<ColdState>,
    /// The ring that is served before all others, if any ([`Self::serve_first`]).
    served_first: Option<usize>,
    /// True if that ring may send now. It is then in no list.
    served_first_is_ready: bool,
    ready: ReadyRings,
    wheel: Wheel,
    service: RingService,
    shaper: Option<TokenBucket>,
    /// Bytes on the wire in addition to each frame, for token buckets only.
    overhead: u32,
    /// The largest lateness of a poll that is compensated.
    late_max: Duration,
    /// No departure counts as earlier than this time.
    paused_until: Instant,
    frames: u64,
}

impl<H: Copy + Default> Rings<H> {
    /// Makes a port without rings. `shaping` limits the port as a whole. A burst of zero spaces frames as a link of this rate
    /// does; [`Frame::bytes`] must then be wire bytes. `shaping` is `None` if the caller polls only while the link is free.
    ///
    /// # Errors
    /// If the rate or the burst of `shaping` is out of range ([`TokenBucket::new`]).
    pub fn new(service: RingService, shaping: Option<(Rate, Bytes)>) -> Result<Self, BucketError> {
        let shaper = match shaping {
            Some((rate, burst)) => Some(TokenBucket::new(rate, burst)?),
            None => None,
        };
        let mut ready = match service {
            RingService::RoundRobin => ReadyRings::InTurn(Fifo::new()),
            RingService::LongestFirst | RingService::StrictPriority => ReadyRings::ByKey(Keyed::new()),
        };
        if service == RingService::StrictPriority {
            ready.reserve_keys(u8::MAX.into());
        }
        Ok(Self {
            rings: Vec::new(),
            cold: Vec::new(),
            served_first: None,
            served_first_is_ready: false,
            ready,
            wheel: Wheel::new(),
            service,
            shaper,
            overhead: 0,
            late_max: Duration::ZERO,
            paused_until: Instant::START,
            frames: 0,
        })
    }

    /// Returns the port with token buckets that charge `bytes` bytes more for each frame than it stores: the wire's own
    /// bytes.
    #[must_use]
    pub const fn with_overhead(mut self, bytes: u32) -> Self {
        self.overhead = bytes;
        self
    }

    /// Returns the port for a caller that may poll late. To keep rates, a frame counts as sent when it could first
    /// depart, at most `late_max` before the call of [`Self::depart`].
    #[must_use]
    pub const fn with_lateness(mut self, late_max: Duration) -> Self {
        self.late_max = late_max;
        self
    }

    /// Notes that a PAUSE blocks the link until `until`. A frame then counts as sent at that time or later, so that the lost
    /// time is not compensated. The caller does not poll during the PAUSE.
    pub const fn note_paused_until(&mut self, until: Instant) {
        self.paused_until = until;
    }

    /// Adds a ring and returns its index. Indices count up from zero and are never used again.
    ///
    /// # Errors
    /// If the port has [`RINGS_MAX`] rings. If the ring has a capacity of zero frames or more than [`RING_FRAMES_MAX`], or reserves
    /// more frames than that. If its token bucket is out of range.
    pub fn add_ring(&mut self, settings: &RingSettings) -> Result<usize, RingError> {
        let &RingSettings { frames_max, bytes_max, frames_reserved, shaping, priority, .. } = settings;
        if self.rings.len() >= RINGS_MAX {
            return Err(RingError::TooMany { max: RINGS_MAX });
        }
        let max = RING_FRAMES_MAX;
        if frames_max == 0 || frames_max > max || frames_reserved > frames_max {
            return Err(RingError::Frames { actual: frames_max, reserved: frames_reserved, max });
        }
        let bucket = settings.bucket()?;
        let mut others = Fifo::new();
        others.reserve(frames_reserved.saturating_sub(1));
        self.rings.push(RingState {
            others,
            bytes: 0,
            bytes_limit: bytes_max.get(),
            bytes_max: 0,
            frames_limit: frames_max,
            frames_max: 0,
            wait: RingWait::Idle,
            has_first: false,
            is_shaped: shaping.is_some(),
            is_paused: false,
            has_aqm: !matches!(settings.aqm, Aqm::None),
            bucket,
            due: Instant::START,
            first: RingSlot::default(),
            enqueued: FrameCount::default(),
            departed: FrameCount::default(),
        });
        self.cold.push(ColdState {
            aqm: settings.aqm.clone(),
            priority,
            emptied_at: Instant::START,
            marked: FrameCount::default(),
            dropped: Default::default(),
        });
        self.ready.add();
        self.wheel.add();
        if self.service == RingService::LongestFirst {
            self.ready.reserve_keys(frames_max);
        }
        Ok(self.rings.len() - 1)
    }

    /// Serves a ring before all others, in any order of service. The rates of the port and of the ring still limit it.
    ///
    /// # Panics
    /// If another ring is served first, or if this one holds frames or does not exist.
    pub fn serve_first(&mut self, ring: usize) {
        assert!(
            self.served_first.is_none_or(|first| first == ring),
            "a port serves a second ring before all others"
        );
        assert!(!self.rings[ring].has_first, "ring {ring} is to be served first and holds frames");
        self.served_first = Some(ring);
    }

    /// Queues, marks or drops a frame for a ring. `draw` returns 32 uniform random bits; only RED calls it.
    ///
    /// # Panics
    /// If there is no such ring.
    #[inline]
    pub fn arrive(
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
            let held = Occupancy { bytes: state.bytes, frames: state.len().into(), ..Occupancy::default() };
            let cold = &mut self.cold[ring];
            match cold.aqm.decide(now, &held, cold.emptied_at, frame, draw) {
                AqmDecision::Pass => {}
                AqmDecision::Mark => marked = true,
                AqmDecision::Drop => return self.refuse(ring, AdmissionLimit::Early, frame.bytes),
            }
        }
        let (bytes, frames) = (state.bytes + u64::from(frame.bytes), state.len() + 1);
        if frames > state.frames_limit || bytes > state.bytes_limit {
            return self.refuse(ring, AdmissionLimit::Ring, frame.bytes);
        }
        if marked {
            self.cold[ring].marked.add(frame.bytes);
            frame.ecn = EcnCodepoint::Congestion;
        }
        state.push(RingSlot { frame, handle });
        state.bytes = bytes;
        (state.bytes_max, state.frames_max) = (state.bytes_max.max(bytes), state.frames_max.max(frames));
        state.enqueued.add(frame.bytes);
        self.frames += 1;
        if state.wait == RingWait::Idle {
            if !state.is_paused {
                let tokens_at = state.choose_list(now, now, frame.bytes + self.overhead);
                self.join(now, ring, tokens_at);
            }
        } else if self.service == RingService::LongestFirst && state.wait == RingWait::Ready {
            self.remove_ready(ring);
            self.insert_ready(ring);
        }
        Verdict::Accepted { marked }
    }

    /// Removes the next frame that may depart at `now`.
    #[inline]
    pub fn depart(&mut self, now: Instant) -> Departure<H> {
        let mut departure = Departure::Empty;
        let send = |ring, frame, handle| departure = Departure::Frame { ring, frame, handle };
        match self.depart_many(now, 1, send) {
            NextDeparture::Now => departure,
            NextDeparture::At(at) => Departure::NotBefore(at),
            NextDeparture::Never => Departure::Empty,
        }
    }

    /// A lower bound of the times at which queued frames may depart, by the tokens of their rings. [`Instant::START`] if a ring
    /// may send now, or if no ring waits for tokens.
    #[inline]
    pub fn none_before(&self) -> Instant {
        if self.has_ready() { Instant::START } else { self.wheel.earliest().unwrap_or(Instant::START) }
    }

    /// Passes up to `frames_max` frames that may depart at `now` to `send`. Returns the time of the next departure.
    #[inline]
    pub fn depart_many(
        &mut self,
        now: Instant,
        frames_max: usize,
        mut send: impl FnMut(usize, Frame, H),
    ) -> NextDeparture {
        let mut is_expired = false;
        let earliest = Instant::new(now.get().saturating_sub(self.late_max.get())).max(self.paused_until);
        for _ in 0..frames_max {
            // A ring that is parked after this point waits for a time later than `now`.
            if !self.served_first_is_ready && !is_expired {
                self.expire(now);
                is_expired = true;
            }
            let mut at = earliest;
            if let Some(shaper) = &self.shaper {
                let open_at = shaper.open_at();
                if open_at > now {
                    return match self.wheel.earliest() {
                        _ if self.has_ready() => NextDeparture::At(open_at),
                        Some(earliest) => NextDeparture::At(earliest.max(open_at)),
                        None => NextDeparture::Never,
                    };
                }
                at = at.max(open_at);
            }
            let Some(ring) = self.pop_ready() else {
                return self.wheel.earliest().map_or(NextDeparture::Never, NextDeparture::At);
            };
            let (frame, handle) = self.depart_from(now, ring, at);
            send(ring, frame, handle);
        }
        NextDeparture::Now
    }

    /// Removes the first frame of the ring. It counts as sent at the earliest time possible, but not before `earliest`.
    #[inline]
    fn depart_from(&mut self, now: Instant, ring: usize, earliest: Instant) -> (Frame, H) {
        let state = &mut self.rings[ring];
        assert_eq!(state.wait, RingWait::Ready, "a frame departs from a ring that has no turn");
        assert!(!state.is_paused, "a frame departs from a paused ring");
        let (RingSlot { frame, handle }, next) = state.pop();
        self.frames -= 1;
        let bytes = frame.bytes + self.overhead;
        let at = state.due.max(earliest);
        assert!(at <= now, "a frame departs before it is due");
        if let Some(shaper) = &mut self.shaper {
            shaper.take(at, bytes);
        }
        if state.is_shaped {
            state.bucket.take(at, bytes);
        }
        match next {
            Some(next) => {
                let tokens_at = state.choose_list(now, at, next.bytes + self.overhead);
                self.join(now, ring, tokens_at);
            }
            None => {
                state.wait = RingWait::Idle;
                if state.has_aqm {
                    self.cold[ring].emptied_at = now;
                }
            }
        }
        (frame, handle)
    }

    /// Takes the first frame out of a ring regardless of rate, pause or turn, to empty the ring before its removal. The frame
    /// counts as departed and takes no tokens.
    pub fn depart_at_once(&mut self, now: Instant, ring: usize) -> Option<(Frame, H)> {
        if !self.rings[ring].has_first {
            return None;
        }
        self.deactivate(ring);
        let state = &mut self.rings[ring];
        let (RingSlot { frame, handle }, _) = state.pop();
        self.frames -= 1;
        if state.has_first {
            self.awaken(now, ring);
        } else if state.has_aqm {
            self.cold[ring].emptied_at = now;
        }
        Some((frame, handle))
    }

    /// Number of rings.
    pub fn rings_len(&self) -> usize {
        self.rings.len()
    }

    /// Frames in all rings.
    pub const fn frames(&self) -> u64 {
        self.frames
    }

    /// The occupancy of a ring. Its bytes count the frames without overhead.
    pub fn occupancy(&self, ring: usize) -> Occupancy {
        let state = &self.rings[ring];
        Occupancy {
            bytes: state.bytes,
            frames: state.len().into(),
            bytes_max: state.bytes_max,
            frames_max: state.frames_max.into(),
        }
    }

    /// The counters of a ring.
    pub fn counters(&self, ring: usize) -> Counters {
        let (state, cold) = (&self.rings[ring], &self.cold[ring]);
        Counters {
            enqueued: state.enqueued,
            departed: state.departed,
            marked: cold.marked,
            dropped: cold.dropped,
        }
    }

    /// Starts a ring's high-water marks afresh from its present occupancy.
    pub fn reset_high_water_marks(&mut self, ring: usize) {
        let state = &mut self.rings[ring];
        (state.bytes_max, state.frames_max) = (state.bytes, state.len());
    }

    /// Asserts that each ring holds the arrived frames and bytes without the departed ones, as its occupancy says. Each
    /// ring must wait in the right list, and the port's totals must equal the sums over its rings.
    ///
    /// # Panics
    /// If an assertion fails.
    pub fn assert_conserved(&self) {
        let (mut frames, mut served_first_is_ready) = (0, false);
        for (ring, state) in self.rings.iter().enumerate() {
            let mut stored = FrameCount::default();
            state.slots().for_each(|slot| stored.add(slot.frame.bytes));
            let mut known = state.departed;
            known += stored;
            assert_eq!(state.enqueued, known, "frames of ring {ring} are unaccounted for");
            assert_eq!(state.bytes, stored.bytes, "the bytes of ring {ring} differ from its frames");
            assert!(state.bytes <= state.bytes_max, "ring {ring} holds more than its high-water mark");
            assert!(
                stored.frames <= state.frames_max.into(),
                "ring {ring} holds more than its high-water mark"
            );
            let waits = state.has_first && !state.is_paused;
            assert_eq!(
                waits,
                state.wait != RingWait::Idle,
                "ring {ring} waits without a frame to send, or does not wait with one"
            );
            served_first_is_ready |= self.served_first == Some(ring) && state.wait == RingWait::Ready;
            frames += stored.frames;
        }
        assert_eq!(
            self.served_first_is_ready, served_first_is_ready,
            "the ring that is served first is ready and not noted, or the reverse"
        );
        assert_eq!(self.frames, frames, "the frames of all rings do not add up to those of the port");
    }

    #[cold]
    fn refuse(&mut self, ring: usize, limit: AdmissionLimit, bytes: u32) -> Verdict {
        self.cold[ring].dropped[limit as usize].add(bytes);
        Verdict::Dropped(limit)
    }

    /// Puts a non-empty ring into its present list, unless it is paused.
    #[inline(never)]
    fn awaken(&mut self, now: Instant, ring: usize) {
        let state = &mut self.rings[ring];
        if state.is_paused {
            return;
        }
        let tokens_at = state.choose_list(now, now, state.first.frame.bytes + self.overhead);
        self.join(now, ring, tokens_at);
    }

    /// Puts a ring into its list: parks it until `tokens_at`, or lets it wait for its turn if that is `None`.
    #[inline]
    fn join(&mut self, now: Instant, ring: usize, tokens_at: Option<Instant>) {
        match tokens_at {
            Some(at) => self.wheel.park(now, ring as u32, at),
            None => self.insert_ready(ring),
        }
    }

    /// Moves the rings that have their tokens by now to the list for turns.
    #[inline]
    fn expire(&mut self, now: Instant) {
        let Self { wheel, served_first, served_first_is_ready, ready, rings, cold, service, .. } = self;
        wheel.expire(now, |ring| {
            let place = ring as usize;
            assert_eq!(rings[place].wait, RingWait::Parked, "a ring gets tokens that does not wait for them");
            assert!(rings[place].has_first, "an empty ring waits for tokens");
            rings[place].wait = RingWait::Ready;
            if *served_first == Some(place) {
                *served_first_is_ready = true;
            } else {
                ready.insert(ring, || key(&rings[place], &cold[place], *service));
            }
        });
    }

    /// Returns true if a ring waits for its turn.
    #[inline]
    const fn has_ready(&self) -> bool {
        self.served_first_is_ready || !self.ready.is_empty()
    }

    #[inline]
    fn insert_ready(&mut self, ring: usize) {
        assert_eq!(self.rings[ring].wait, RingWait::Ready, "a ring that may not send is to have a turn");
        let Self { rings, cold, service, .. } = self;
        if self.served_first == Some(ring) {
            self.served_first_is_ready = true;
        } else {
            self.ready.insert(ring as u32, || key(&rings[ring], &cold[ring], *service));
        }
    }

    #[inline]
    fn remove_ready(&mut self, ring: usize) {
        if self.served_first == Some(ring) {
            self.served_first_is_ready = false;
        } else {
            self.ready.remove(ring as u32);
        }
    }

    /// Removes the next ring to serve: the ring that is served first, or the one by the order of service.
    #[inline]
    fn pop_ready(&mut self) -> Option<usize> {
        if core::mem::take(&mut self.served_first_is_ready) {
            return self.served_first;
        }
        self.ready.pop().map(|ring| ring as usize)
    }

    fn deactivate(&mut self, ring: usize) {
        match core::mem::replace(&mut self.rings[ring].wait, RingWait::Idle) {
            RingWait::Idle => {}
            RingWait::Ready => self.remove_ready(ring),
            RingWait::Parked => self.wheel.remove(ring as u32),
        }
    }
}

/// The key of a ring among the rings that may send.
#[inline]
fn key<H: Copy + Default>(state: &RingState<H>, cold: &ColdState, service: RingService) -> u32 {
    match service {
        RingService::RoundRobin => 0,
        RingService::StrictPriority => cold.priority.into(),
        RingService::LongestFirst => state.len().min(KEY_MAX),
    }
}

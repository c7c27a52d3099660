//! An output: its queues, what has left them and is not with the driver yet, and its bad way, where it has one.

use fanin_queueing::{
    Aqm, BucketError, Count, Discipline, RING_FRAMES_MAX, RINGS_MAX, Rest, RingError, RingSettings, Rings,
};
use fanin_units::{Bytes, Duration, Instant, Rate, Ratio};

use crate::classify::Classifier;
use crate::config::{DisciplineSpec, ImpairSpec, MarkSpec, PortSpec, RingSpec};
use crate::driver::Received;
use crate::early;
use crate::frame::WIRE_BYTES;
use crate::impair::Impairment;
use crate::pass::Passing;
use crate::prefetch::prefetch;
use crate::snapshot::{Histogram, QueueSnapshot};

/// The queue of frames that no rule sends to a ring.
pub(crate) const PLAIN: usize = 0;
/// How far a port may catch up when its worker comes late: what it could have sent before that is not made good.
pub(crate) const LATE_MAX: Duration = Duration::from_millis(20);
/// Descriptors that are reserved for all rings together when they are made; beyond that rings grow as they fill.
const RESERVED_MAX: u64 = 1 << 22;

/// A frame in a queue.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Held<H> {
    pub(crate) handle: H,
    /// The port that it came in by.
    pub(crate) input: u16,
}

/// What the queues do not know about a ring.
#[derive(Debug, Clone, Default)]
pub(crate) struct RingState {
    /// Absent for the plain queue and for rings that are being removed.
    pub(crate) spec: Option<RingSpec>,
    pub(crate) is_free: bool,
    alarm_at: Option<(u64, u64)>,
    pub(crate) alarm: bool,
    pub(crate) alarms: u64,
    watch: Watch,
}

/// High-water marks over periods, and a histogram.
#[derive(Debug, Clone, Default)]
struct Watch {
    max: (u64, u64),
    max_period: (u64, u64),
    mark_seen: u64,
    histogram: Histogram,
}

impl Watch {
    fn end_period(&mut self, mark: (u64, u64)) {
        self.max = (self.max.0.max(mark.0), self.max.1.max(mark.1));
        self.max_period = mark;
        self.mark_seen = 0;
    }

    fn fill(&self, queue: &mut QueueSnapshot) {
        queue.frames_max = queue.frames_max.max(self.max.0);
        queue.bytes_max = queue.bytes_max.max(self.max.1);
        (queue.frames_max_period, queue.bytes_max_period) = self.max_period;
        queue.histogram = self.histogram;
    }
}

/// An output.
#[derive(Debug)]
pub(crate) struct Output<H> {
    pub(crate) queue: Rings<Held<H>>,
    pub(crate) classifier: Classifier,
    pub(crate) rings: Vec<RingState>,
    /// Whether any of its queues marks, so that frames' ECN bits must be known.
    pub(crate) marks: bool,
    /// When the queues were last served.
    pub(crate) clock: Instant,
    /// Frames that left the queues and that the driver had no room for, the next one last.
    pub(crate) stash: Vec<Received<H>>,
    pub(crate) impairment: Option<Impairment<H>>,
    pub(crate) paused_until: Instant,
    /// Frames that pass the queues in this round.
    pub(crate) passing: Passing<H>,
}

/// What an output gives for the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Nothing before this.
    At(Instant),
    /// There is more at once.
    Now,
    /// Nothing unless something comes.
    Never,
}

impl Next {
    pub(crate) fn or(self, other: Option<Instant>) -> Self {
        match (self, other) {
            (Self::At(a), Some(b)) => Self::At(a.min(b)),
            (Self::Never, Some(b)) => Self::At(b),
            (next, _) => next,
        }
    }
}

/// As [`early::aqm`] for what has been checked.
pub(crate) fn aqm(mark: Option<MarkSpec>, mtu: Bytes, rate: Option<Rate>) -> Aqm {
    early::aqm(mark, mtu, rate).expect("a configuration that was checked")
}

impl RingSpec {
    pub(crate) fn settings(&self, mtu: Bytes, reserved: &mut u64) -> RingSettings {
        let frames_max = self.frames.map_or(RING_FRAMES_MAX, |frames| frames.get() as u32);
        let wanted = self.frames_held(mtu).min(frames_max.into());
        let frames_reserved = wanted.min(*reserved);
        *reserved -= frames_reserved;
        RingSettings {
            frames_max,
            bytes_max: self.bytes.unwrap_or(Bytes::MAX),
            frames_reserved: frames_reserved as u32,
            shaping: self.shaping(),
            priority: self.priority,
            aqm: aqm(self.mark, mtu, self.rate),
        }
    }

    pub(crate) fn shaping(&self) -> Option<(Rate, Bytes)> {
        self.rate.map(|rate| (rate, self.burst.unwrap_or_default()))
    }

    /// The frames and bytes from which on there is an alarm.
    fn alarm_at(&self) -> Option<(u64, u64)> {
        let of = |share: Ratio, most: Option<u64>| {
            most.map_or(u64::MAX, |most| share.checked_of(most).unwrap_or(most))
        };
        self.alarm
            .map(|share| (of(share, self.frames.map(|f| f.get())), of(share, self.bytes.map(Bytes::get))))
    }
}

/// Descriptors that can still be reserved.
#[derive(Debug)]
pub(crate) struct Reserve(pub(crate) u64);

impl Default for Reserve {
    fn default() -> Self {
        Self(RESERVED_MAX)
    }
}

/// Whether so many frames and bytes reach a level.
const fn reaches(held: (u64, u64), level: (u64, u64)) -> bool {
    held.0 >= level.0 || held.1 >= level.1
}

impl<H: Copy + Default> Output<H> {
    pub(crate) fn new(spec: &PortSpec, mtu: Bytes) -> Result<Self, BucketError> {
        let discipline = match spec.discipline {
            DisciplineSpec::RoundRobin => Discipline::RoundRobin,
            DisciplineSpec::LongestFirst => Discipline::LongestFirst,
            DisciplineSpec::StrictPriority => Discipline::StrictPriority,
        };
        let queue = Rings::new(discipline, spec.rate.map(|rate| (rate, Bytes::ZERO)))?;
        let mut output = Self {
            queue: queue.with_overhead(WIRE_BYTES).with_lateness(LATE_MAX),
            classifier: Classifier::default(),
            rings: vec![RingState::default()],
            marks: spec.mark.is_some(),
            clock: Instant::START,
            stash: Vec::new(),
            impairment: None,
            paused_until: Instant::START,
            passing: Passing::default(),
        };
        let plain =
            RingSettings { aqm: aqm(spec.mark, mtu, spec.rate), ..RingSettings::new(RING_FRAMES_MAX) };
        let plain = output.queue.add_ring(&plain);
        assert!(matches!(plain, Ok(PLAIN)), "the first ring of a port is the plain queue");
        Ok(output)
    }

    /// Whether there is a place for a ring more.
    pub(crate) fn room_for_ring(&self) -> Result<(), RingError> {
        let has_room = self.queue.rings_len() < RINGS_MAX || self.rings.iter().any(|ring| ring.is_free);
        if has_room { Ok(()) } else { Err(RingError::TooMany { max: RINGS_MAX }) }
    }

    /// Adds a ring, in the place of one that was removed if there is one.
    pub(crate) fn add_ring(
        &mut self,
        spec: &RingSpec,
        mtu: Bytes,
        reserve: &mut Reserve,
    ) -> Result<usize, RingError> {
        let settings = spec.settings(mtu, &mut reserve.0);
        let state = RingState { spec: Some(spec.clone()), alarm_at: spec.alarm_at(), ..RingState::default() };
        self.marks |= spec.mark.is_some();
        if let Some(ring) = self.rings.iter().position(|ring| ring.is_free) {
            self.queue.renew_ring(self.clock, ring, &settings)?;
            self.rings[ring] = state;
            return Ok(ring);
        }
        let ring = self.queue.add_ring(&settings)?;
        self.rings.push(state);
        Ok(ring)
    }

    /// Changes a ring; what it holds stays.
    pub(crate) fn set_ring(&mut self, ring: usize, spec: &RingSpec, mtu: Bytes) -> Result<(), RingError> {
        let settings = spec.settings(mtu, &mut 0);
        self.queue.set_capacity(ring, settings.frames_max, settings.bytes_max)?;
        self.queue.set_shaping(self.clock, ring, settings.shaping)?;
        self.queue.set_priority(self.clock, ring, settings.priority);
        self.queue.set_aqm(ring, settings.aqm);
        self.marks |= spec.mark.is_some();
        let state = &mut self.rings[ring];
        (state.alarm_at, state.spec) = (spec.alarm_at(), Some(spec.clone()));
        Ok(())
    }

    /// Takes a ring's name away; it goes when it has drained.
    pub(crate) fn remove_ring(&mut self, ring: usize) {
        let state = &mut self.rings[ring];
        (state.spec, state.alarm_at, state.alarm) = (None, None, false);
        self.queue.resume(self.clock, ring);
        self.free_drained();
    }

    pub(crate) fn free_drained(&mut self) {
        for (ring, state) in self.rings.iter_mut().enumerate().skip(PLAIN + 1) {
            state.is_free |= state.spec.is_none() && self.queue.occupancy(ring).frames == 0;
        }
    }

    pub(crate) fn ring(&self, name: &str) -> Option<usize> {
        self.rings.iter().position(|ring| ring.spec.as_ref().is_some_and(|spec| spec.name == name))
    }

    /// Sets or takes away the bad way; frames on it come out as they would have.
    pub(crate) fn set_impairment(&mut self, spec: ImpairSpec, random: crate::random::Random) {
        match &mut self.impairment {
            Some(impairment) => impairment.set(spec),
            None if spec.is_none() => {}
            none => *none = Some(Impairment::new(spec, random)),
        }
    }

    /// Lets frames that may leave leave. Each counts as sent when it was due, so that a worker that comes late keeps the rates.
    #[inline(always)]
    pub(crate) fn poll(
        &mut self,
        now: Instant,
        frames_max: usize,
        mut out: impl FnMut(usize, u32, Held<H>),
    ) -> Next {
        self.clock = now;
        let rest =
            self.queue.serve(now, frames_max, prefetch, |ring, frame, held| out(ring, frame.bytes, held));
        match rest {
            Rest::More => Next::Now,
            Rest::NotBefore(next) => Next::At(next),
            Rest::Empty => Next::Never,
        }
    }

    /// Whether nothing is queued, stashed or on the way.
    pub(crate) fn is_drained(&self) -> bool {
        self.queue.frames() == 0
            && self.stash.is_empty()
            && self.impairment.as_ref().is_none_or(|impairment| impairment.len() == 0)
    }

    /// Takes a sample of every ring's length, and raises alarms.
    pub(crate) fn sample(&mut self, plain_frames: u64) {
        for (ring, state) in self.rings.iter_mut().enumerate() {
            if ring == PLAIN {
                state.watch.histogram.add(plain_frames);
                continue;
            }
            let held = self.queue.occupancy(ring);
            state.watch.histogram.add(held.frames);
            let Some(level) = state.alarm_at else { continue };
            // A peak between two samples counts, once.
            let is_new = held.bytes_max > state.watch.mark_seen;
            state.watch.mark_seen = held.bytes_max;
            if reaches((held.frames, held.bytes), level)
                || (is_new && reaches((held.frames_max, held.bytes_max), level))
            {
                state.alarms += u64::from(!state.alarm);
                state.alarm = true;
            } else if !reaches((held.frames * 10 / 9, held.bytes * 10 / 9), level) {
                state.alarm = false;
            }
        }
    }

    /// Ends a period of the high-water marks.
    pub(crate) fn end_period(&mut self, plain: (u64, u64)) {
        for ring in 0..self.rings.len() {
            let held = self.queue.occupancy(ring);
            let mark = if ring == PLAIN { plain } else { (held.frames_max, held.bytes_max) };
            self.rings[ring].watch.end_period(mark);
            self.queue.reset_marks(ring);
        }
    }

    /// Starts all high-water marks afresh.
    pub(crate) fn reset_marks(&mut self) {
        for ring in 0..self.rings.len() {
            self.queue.reset_marks(ring);
            let watch = &mut self.rings[ring].watch;
            (watch.max, watch.max_period, watch.mark_seen) = ((0, 0), (0, 0), 0);
        }
    }

    /// A ring's picture; for the plain queue only what this output knows of it.
    pub(crate) fn snapshot(&self, ring: usize) -> QueueSnapshot {
        let mut queue = QueueSnapshot::new(self.queue.occupancy(ring), &self.queue.counters(ring));
        self.fill(ring, &mut queue);
        queue
    }

    pub(crate) fn fill(&self, ring: usize, queue: &mut QueueSnapshot) {
        self.rings[ring].watch.fill(queue);
    }

    pub(crate) fn marked(&self, ring: usize) -> Count {
        self.queue.counters(ring).marked
    }
}

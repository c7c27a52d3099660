//! One output: its queues, the dequeued frames that the driver has not taken, and its link impairment.

use fanin_queueing::{
    BucketError, Frame, FrameCount, NextDeparture, RING_FRAMES_MAX, RINGS_MAX, RingError, RingSettings,
    Rings, Verdict,
};
use fanin_units::{Bytes, Duration, Instant, Rate, Ratio, wire};

use crate::config::{EcnMode, ImpairSpec, PortSpec, RingSpec, SwitchSpec};
use crate::driver::{BURST, Received};
use crate::random::SplitMix64;
use crate::snapshot::{Histogram, QueueSnapshot, RingSnapshot};

use super::impair::Impairment;

/// The queue of frames that no rule sends to a ring.
pub(super) const PLAIN: usize = 0;
/// The longest lateness that a port makes up for. A frame counts as sent at its due time, but at most this long before the
/// round.
const LATE_MAX: Duration = Duration::from_millis(20);
/// Descriptors reserved for all rings together at their creation. Beyond that rings grow as they fill.
const RESERVED_MAX: u64 = 1 << 22;

/// A frame in a queue.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct QueuedFrame<H> {
    pub(super) handle: H,
    /// Input port of the frame.
    pub(super) input: u16,
}

/// A ring's configuration and alarm.
#[derive(Debug, Clone, Default)]
struct ConfiguredRing {
    /// Absent for the plain queue and for rings that are being removed.
    spec: Option<RingSpec>,
    /// True if the ring was removed and has drained: a new ring may reuse it.
    is_free: bool,
    /// Frames and bytes that raise the alarm.
    alarm_level: Option<(u64, u64)>,
    has_alarm: bool,
    alarms: u64,
    watch: QueueWatch,
}

/// High-water marks over periods, and a histogram of the length.
#[derive(Debug, Clone, Default)]
struct QueueWatch {
    max: (u64, u64),
    max_period: (u64, u64),
    mark_seen: u64,
    histogram: Histogram,
}

impl QueueWatch {
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

/// One output of the switch.
#[derive(Debug)]
pub(super) struct Output<H> {
    queue: Rings<QueuedFrame<H>>,
    rings: Vec<ConfiguredRing>,
    /// True if the plain queue marks.
    plain_reads_ecn: bool,
    /// True if any queue marks, so that frames' ECN bits must be read.
    reads_ecn: bool,
    /// The time of the last service of the queues.
    clock: Instant,
    /// Dequeued frames without room in the driver, the next one last.
    unsent: Vec<Received<H>>,
    /// The rate of the port's link, if it is limited.
    rate: Option<Rate>,
    impairment: Option<Impairment<H>>,
    /// End of the PAUSE that holds the port.
    paused_until: Instant,
    cut_through: CutThrough<H>,
}

/// The frames that cut through an output's empty queues in this round.
#[derive(Debug)]
struct CutThrough<H> {
    frames: Vec<Received<H>>,
    /// Number of these frames that the plain queue has not counted yet.
    uncounted: FrameCount,
    /// The longest frame that may pass the plain queue, in bytes; 0 if none may. Valid for `checked`.
    plain_max: u32,
    checked: u64,
}

fn settings_of(spec: &RingSpec, switch: &SwitchSpec, reserve: &mut DescriptorReserve) -> RingSettings {
    let frames_max = spec.frames.map_or(RING_FRAMES_MAX, |frames| frames.get() as u32);
    let frames_reserved = reserve.take(spec.frames_held(switch.mtu).min(frames_max.into()));
    RingSettings {
        frames_max,
        bytes_max: spec.bytes.unwrap_or(Bytes::MAX),
        frames_reserved: frames_reserved as u32,
        shaping: spec.rate.map(|rate| (rate, spec.burst.unwrap_or_default())),
        priority: spec.priority,
        aqm: spec.ecn.aqm(switch.full_packet(spec.rate)).expect("a configuration that was checked"),
    }
}

/// Returns the frames and bytes that raise a ring's alarm.
fn alarm_level(spec: &RingSpec) -> Option<(u64, u64)> {
    let of = |share: Ratio, most: Option<u64>| {
        most.map_or(u64::MAX, |most| share.checked_of(most).unwrap_or(most))
    };
    spec.alarm.map(|share| (of(share, spec.frames.map(|f| f.get())), of(share, spec.bytes.map(Bytes::get))))
}

/// Descriptors that can still be reserved.
#[derive(Debug)]
pub(super) struct DescriptorReserve(u64);

impl DescriptorReserve {
    /// Makes the reserve of a new switch.
    pub(super) const fn new() -> Self {
        Self(RESERVED_MAX)
    }

    fn take(&mut self, wanted: u64) -> u64 {
        let taken = wanted.min(self.0);
        self.0 -= taken;
        taken
    }
}

/// Returns true if `held` frames or bytes reach a level.
const fn reaches(held: (u64, u64), level: (u64, u64)) -> bool {
    held.0 >= level.0 || held.1 >= level.1
}

impl<H: Copy + Default> Output<H> {
    /// Makes an output without rings.
    ///
    /// # Errors
    /// If the port's rate cannot be shaped.
    pub(super) fn new(spec: &PortSpec) -> Result<Self, BucketError> {
        let service = spec.service;
        let queue = Rings::new(service, spec.rate.map(|rate| (rate, Bytes::ZERO)))?;
        let mut output = Self {
            queue: queue.with_overhead(wire::ETHERNET_UNCOUNTED).with_lateness(LATE_MAX),
            rings: vec![ConfiguredRing::default()],
            plain_reads_ecn: spec.ecn.mode != EcnMode::Off,
            reads_ecn: spec.ecn.mode != EcnMode::Off,
            clock: Instant::START,
            unsent: Vec::new(),
            rate: spec.rate,
            impairment: None,
            paused_until: Instant::START,
            cut_through: CutThrough {
                frames: Vec::with_capacity(BURST),
                uncounted: FrameCount::default(),
                plain_max: 0,
                checked: 0,
            },
        };
        // Its memory, which decides about each frame, is in `buffers.rs`.
        let frames_max = spec.plain_frames.map_or(RING_FRAMES_MAX, |frames| frames.get() as u32);
        let plain = output.queue.add_ring(&RingSettings::new(frames_max));
        assert!(matches!(plain, Ok(PLAIN)), "the first ring of a port is the plain queue");
        if spec.plain_first {
            output.queue.serve_first(PLAIN);
        }
        Ok(output)
    }

    // The path of a frame.

    /// Returns true if any queue here marks, so that the ECN bits of frames must be read.
    #[inline]
    pub(super) const fn reads_ecn(&self) -> bool {
        self.reads_ecn
    }

    /// Returns true if a frame for an empty queue can leave at once. No frame may wait before it, no queue may mark,
    /// and neither PAUSE nor an impairment may hold frames.
    #[inline]
    pub(super) fn is_clear(&self, now: Instant) -> bool {
        self.queue.is_clear(now)
            && self.unsent.is_empty()
            && self.impairment.is_none()
            && self.paused_until <= now
            && !self.reads_ecn
    }

    /// Returns the longest frame that may pass the plain queue, 0 if none may. `None` unless [`Self::check_plain`] was called
    /// for this value of `check`.
    #[inline]
    pub(super) fn plain_max(&self, check: u64) -> Option<u32> {
        (self.cut_through.checked == check).then_some(self.cut_through.plain_max)
    }

    /// Finds the longest frame that may pass the plain queue, any number of times until another frame is queued. `room` is the
    /// longest frame that the queue's memory accepts.
    pub(super) fn check_plain(&mut self, now: Instant, check: u64, room: u32) -> u32 {
        let plain_max = if self.is_clear(now) { self.queue.cut_through_max(PLAIN).min(room) } else { 0 };
        self.cut_through.checked = check;
        self.cut_through.plain_max = plain_max;
        plain_max
    }

    /// Passes a frame of at most [`Self::plain_max`] bytes through the plain queue; [`Self::end_cut_through`] counts it.
    /// Returns the number of frames that pass in this round.
    #[inline]
    pub(super) fn cut_through_plain(&mut self, frame: Received<H>) -> usize {
        assert!(frame.bytes <= self.cut_through.plain_max, "a frame passes a queue without room for it");
        self.cut_through.uncounted.add(frame.bytes);
        self.push_cut_through(frame)
    }

    /// Returns true if a ring is empty and has tokens; otherwise no frame passes it.
    #[inline]
    pub(super) fn may_cut_through(&self, now: Instant, ring: usize) -> bool {
        self.queue.may_cut_through(now, ring)
    }

    /// Passes a frame through an empty ring: takes its tokens and counts it. Returns `false` if the frame must wait.
    #[inline]
    pub(super) fn cut_through_ring(&mut self, now: Instant, ring: usize, bytes: u32) -> bool {
        self.queue.cut_through(now, ring, bytes)
    }

    /// Appends a frame to the cut-through batch of this round. Returns the size of the batch.
    #[inline]
    pub(super) fn push_cut_through(&mut self, frame: Received<H>) -> usize {
        assert!(self.cut_through.frames.len() < BURST, "more frames pass than the driver takes at once");
        self.cut_through.frames.push(frame);
        self.cut_through.frames.len()
    }

    /// Returns the frames that passed empty queues in this round.
    #[inline]
    pub(super) fn cut_through(&self) -> &[Received<H>] {
        &self.cut_through.frames
    }

    /// Ends a cut-through batch after the driver took its first `taken` frames. The others wait for the driver, before
    /// all queued frames. Returns true if any wait, and the count of frames of the plain queue.
    #[inline]
    pub(super) fn end_cut_through(&mut self, taken: usize) -> (bool, FrameCount) {
        let CutThrough { frames, uncounted, checked, .. } = &mut self.cut_through;
        assert!(taken <= frames.len(), "the driver took {taken} of {} frames", frames.len());
        let is_left = taken < frames.len();
        if is_left {
            assert!(self.unsent.is_empty(), "frames passed others that wait for the driver");
            self.unsent.extend(frames[taken..].iter().rev());
            *checked = 0;
        }
        frames.clear();
        let counted = std::mem::take(uncounted);
        self.queue.count_cut_through(PLAIN, counted);
        (is_left, counted)
    }

    /// Offers a frame to a ring.
    #[inline]
    pub(super) fn enqueue(
        &mut self,
        now: Instant,
        ring: usize,
        frame: Frame,
        queued: QueuedFrame<H>,
        draw: impl FnOnce() -> u32,
    ) -> Verdict {
        self.queue.arrive(now, ring, frame, queued, draw)
    }

    /// Dequeues frames that may leave, up to `frames_max`. Each counts as sent at its due time, so that a late worker keeps
    /// the rates.
    #[inline(always)]
    pub(super) fn dequeue(
        &mut self,
        now: Instant,
        frames_max: usize,
        mut departed: impl FnMut(usize, u32, QueuedFrame<H>),
    ) -> NextDeparture {
        self.clock = now;
        self.queue.depart_many(now, frames_max, |ring, frame, queued| departed(ring, frame.bytes, queued))
    }

    /// Returns the end of the PAUSE that holds the port, if any, and then stops the queues' clock at `now`.
    #[inline]
    pub(super) fn paused_at(&mut self, now: Instant) -> Option<Instant> {
        let is_paused = self.paused_until > now;
        if is_paused {
            self.clock = now;
        }
        is_paused.then_some(self.paused_until)
    }

    /// Returns true if a PAUSE frame holds the port.
    pub(super) fn is_paused(&self, now: Instant) -> bool {
        self.paused_until > now
    }

    /// Holds the port until a time, which may be earlier than the previous one.
    pub(super) fn pause_until(&mut self, until: Instant) {
        self.paused_until = until;
        self.queue.note_paused_until(until);
    }

    /// Returns the frames that wait for the driver, the next one last.
    #[inline]
    pub(super) const fn unsent_mut(&mut self) -> &mut Vec<Received<H>> {
        &mut self.unsent
    }

    /// Returns the impairment of the link, if it has one.
    #[inline]
    pub(super) const fn impairment_mut(&mut self) -> &mut Option<Impairment<H>> {
        &mut self.impairment
    }

    /// The time for which a frame of `bytes` occupies the link; zero without a rate.
    pub(super) fn sending_time(&self, bytes: u32) -> Duration {
        let whole = Bytes::new((bytes + wire::ETHERNET_UNCOUNTED).into());
        self.rate.and_then(|rate| rate.checked_time_to_send(whole)).unwrap_or(Duration::ZERO)
    }

    /// Empties the queues and the impairment. Calls `released` for each frame from a queue.
    pub(super) fn drain(&mut self, mut released: impl FnMut(usize, u32, u16)) -> Vec<Received<H>> {
        let mut rest = std::mem::take(&mut self.unsent);
        for ring in 0..self.queue.rings_len() {
            // A paused ring is not scheduled again after each frame.
            self.queue.pause(ring);
            while let Some((frame, queued)) = self.queue.depart_at_once(self.clock, ring) {
                released(ring, frame.bytes, queued.input);
                rest.push(Received { handle: queued.handle, bytes: frame.bytes });
            }
            self.queue.resume(self.clock, ring);
        }
        if let Some(impairment) = &mut self.impairment {
            while let Some(frame) = impairment.poll_frame(Instant::FAR_FUTURE) {
                rest.push(frame);
            }
        }
        rest
    }

    /// Returns the ring, the bytes and the input of each queued frame.
    pub(super) fn queued(&self) -> impl Iterator<Item = (usize, u32, u16)> {
        (0..self.queue.rings_len()).flat_map(|ring| {
            self.queue.queued(ring).map(move |(frame, queued)| (ring, frame.bytes, queued.input))
        })
    }

    /// Returns the number of frames that are queued, wait for the driver, or are delayed by the impairment.
    pub(super) fn frames_held(&self) -> u64 {
        self.queue.frames() + self.unsent.len() as u64 + self.frames_delayed()
    }

    /// Returns the number of frames that the impairment delays.
    pub(super) fn frames_delayed(&self) -> u64 {
        self.impairment.as_ref().map_or(0, |impairment| impairment.len() as u64)
    }

    // Settings.

    /// Changes the rate of the port.
    ///
    /// # Errors
    /// If it cannot be shaped.
    pub(super) fn set_rate(&mut self, rate: Option<Rate>) -> Result<(), BucketError> {
        self.queue.set_rate(self.clock, rate.map(|rate| (rate, Bytes::ZERO)))?;
        self.rate = rate;
        Ok(())
    }

    /// Notes whether the plain queue marks.
    pub(super) fn set_plain_marker(&mut self, has_marker: bool) {
        self.plain_reads_ecn = has_marker;
        self.note_markers();
    }

    /// Notes whether any queue marks, after a change of one.
    fn note_markers(&mut self) {
        let is_marking =
            |ring: &ConfiguredRing| ring.spec.as_ref().is_some_and(|spec| spec.ecn.mode != EcnMode::Off);
        self.reads_ecn = self.plain_reads_ecn || self.rings.iter().any(is_marking);
    }

    /// Sets or ends the impairment; frames that it delays keep their times.
    pub(super) fn set_impairment(&mut self, spec: ImpairSpec, random: SplitMix64) {
        match &mut self.impairment {
            Some(impairment) => impairment.set(spec),
            None if spec.is_none() => {}
            none => *none = Some(Impairment::new(spec, random)),
        }
        self.impairment.take_if(|impairment| impairment.is_over());
    }

    /// Checks that another ring can be added.
    ///
    /// # Errors
    /// If the port has the largest number of rings.
    pub(super) fn room_for_ring(&self) -> Result<(), RingError> {
        let has_room = self.queue.rings_len() < RINGS_MAX || self.rings.iter().any(|ring| ring.is_free);
        if has_room { Ok(()) } else { Err(RingError::TooMany { max: RINGS_MAX }) }
    }

    /// Adds a ring, in the place of a removed one if possible.
    ///
    /// # Errors
    /// If the port has the largest number of rings, or the settings are wrong.
    pub(super) fn add_ring(
        &mut self,
        spec: &RingSpec,
        switch: &SwitchSpec,
        reserve: &mut DescriptorReserve,
    ) -> Result<(), RingError> {
        let settings = settings_of(spec, switch, reserve);
        let state = ConfiguredRing {
            spec: Some(spec.clone()),
            alarm_level: alarm_level(spec),
            ..ConfiguredRing::default()
        };
        if let Some(ring) = self.rings.iter().position(|ring| ring.is_free) {
            self.queue.renew_ring(self.clock, ring, &settings)?;
            self.rings[ring] = state;
        } else {
            self.queue.add_ring(&settings)?;
            self.rings.push(state);
        }
        self.note_markers();
        Ok(())
    }

    /// Changes a ring; its frames stay queued.
    ///
    /// # Errors
    /// If the settings are wrong.
    pub(super) fn set_ring(
        &mut self,
        ring: usize,
        spec: &RingSpec,
        switch: &SwitchSpec,
    ) -> Result<(), RingError> {
        let settings = settings_of(spec, switch, &mut DescriptorReserve(0));
        self.queue.set_capacity(ring, settings.frames_max, settings.bytes_max)?;
        self.queue.set_shaping(self.clock, ring, settings.shaping)?;
        self.queue.set_priority(self.clock, ring, settings.priority);
        self.queue.set_aqm(ring, settings.aqm);
        let state = &mut self.rings[ring];
        (state.alarm_level, state.spec) = (alarm_level(spec), Some(spec.clone()));
        self.note_markers();
        Ok(())
    }

    /// Removes a ring's name; the ring is freed when it has drained.
    pub(super) fn remove_ring(&mut self, ring: usize) {
        let state = &mut self.rings[ring];
        (state.spec, state.alarm_level, state.has_alarm) = (None, None, false);
        // Frames are marked when they are queued, and no rule sends further frames to this ring.
        self.note_markers();
        self.free_drained();
    }

    /// Frees removed rings that have drained.
    pub(super) fn free_drained(&mut self) {
        for (ring, state) in self.rings.iter_mut().enumerate().skip(PLAIN + 1) {
            state.is_free |= state.spec.is_none() && self.queue.occupancy(ring).frames == 0;
        }
    }

    /// Returns the number of the ring with this name.
    pub(super) fn ring(&self, name: &str) -> Option<usize> {
        self.rings.iter().position(|ring| ring.spec.as_ref().is_some_and(|spec| spec.name == name))
    }

    /// Returns the names and numbers of all rings.
    pub(super) fn rings(&self) -> impl Iterator<Item = (&str, usize)> {
        self.rings
            .iter()
            .enumerate()
            .filter_map(|(ring, state)| Some((state.spec.as_ref()?.name.as_str(), ring)))
    }

    // Monitoring.

    /// Takes a sample of every queue's length. Raises a ring's alarm at its level, and ends the alarm below nine tenths of the
    /// level.
    pub(super) fn sample(&mut self, plain_frames: u64) {
        for (ring, state) in self.rings.iter_mut().enumerate() {
            if ring == PLAIN {
                state.watch.histogram.add(plain_frames);
                continue;
            }
            let held = self.queue.occupancy(ring);
            state.watch.histogram.add(held.frames);
            let Some(level) = state.alarm_level else { continue };
            // A peak between two samples counts once.
            let is_new = held.bytes_max > state.watch.mark_seen;
            state.watch.mark_seen = held.bytes_max;
            if reaches((held.frames, held.bytes), level)
                || (is_new && reaches((held.frames_max, held.bytes_max), level))
            {
                state.alarms += u64::from(!state.has_alarm);
                state.has_alarm = true;
            } else if !reaches((held.frames * 10 / 9, held.bytes * 10 / 9), level) {
                state.has_alarm = false;
            }
        }
    }

    /// Ends a period of the high-water marks; `plain` are the frames and bytes of the plain queue.
    pub(super) fn end_period(&mut self, plain: (u64, u64)) {
        for ring in 0..self.rings.len() {
            let held = self.queue.occupancy(ring);
            let mark = if ring == PLAIN { plain } else { (held.frames_max, held.bytes_max) };
            self.rings[ring].watch.end_period(mark);
            self.queue.reset_high_water_marks(ring);
        }
    }

    /// Resets all high-water marks.
    pub(super) fn reset_high_water_marks(&mut self) {
        for ring in 0..self.rings.len() {
            self.queue.reset_high_water_marks(ring);
            let watch = &mut self.rings[ring].watch;
            (watch.max, watch.max_period, watch.mark_seen) = ((0, 0), (0, 0), 0);
        }
    }

    /// Counters of a ring; `None` if no ring has this name.
    pub(super) fn ring_snapshot(&self, name: &str) -> Option<RingSnapshot> {
        let ring = self.ring(name)?;
        let state = &self.rings[ring];
        let mut queue = QueueSnapshot::new(self.queue.occupancy(ring), &self.queue.counters(ring));
        state.watch.fill(&mut queue);
        let spec = state.spec.as_ref()?;
        Some(RingSnapshot {
            name: spec.name.clone(),
            port: spec.port.clone(),
            alarm: state.has_alarm,
            alarms: state.alarms,
            queue,
        })
    }

    /// Fills in this output's part of the plain queue's snapshot.
    pub(super) fn fill_plain(&self, queue: &mut QueueSnapshot) {
        self.rings[PLAIN].watch.fill(queue);
    }
}

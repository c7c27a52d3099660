//! Paced credits: a receiver requests bytes at the rate of its own link, with a window that it measures.
//!
//! The technique applies receiver-driven transport (NDP's pull pacer, ExpressPass, Homa, SIRD) to requests. The
//! receiver predicts the wire bytes of each answer. It keeps as many bytes outstanding as arrive in the measured delay
//! and its variation. It requests hardly faster than its link carries the answers, and slower if they arrive more
//! slowly. No parameter is set by hand.

mod delay;
mod late;
mod predict;
mod size;

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec;
use alloc::vec::Vec;

use fanin_units::tcp::RTO_MIN_LINUX;
use fanin_units::{Bytes, Duration, Instant, Rate};

use self::delay::DelayEstimate;
pub use self::size::RelativeSize;

/// Bytes in the window beyond the round trip, as a multiple of the mean bytes that overtake an answer.
const OVERTAKING: f64 = 2.0;
/// Bytes that may be requested at once after a pause, as a multiple of the mean bytes overtaking an answer.
const OVERTAKING_BURST: f64 = 6.0;
/// The most frames of the window for one more answer. A larger answer would add queue without hiding more delay.
const ANSWER_FRAMES_MAX: u64 = 10;
/// The least burst, in mean answers of at most [`ANSWER_FRAMES_MAX`] frames. It hides the delay of an event's first answer
/// and variations shorter than an answer, which cause no overtaking.
const BURST_ANSWERS_MIN: f64 = 0.5;
/// Most answers of mean size in a burst. At high rates, the bytes of the delays' variation exceed a switch's memory.
const BURST_ANSWERS_MAX: f64 = 12.0;
/// Decrease of the burst with the mean deviation of events' sizes. Answers of unknown size may bring more bytes than a
/// switch holds.
const BURST_DEVIATIONS: f64 = 2.0;
/// Largest overtaking that counts, in delays; larger ones say nothing about usual answers.
const OVERTAKING_DELAYS_MAX: f64 = 2.0;
/// An answer is late after this many transmission times of the window, or of the bytes outstanding before it, whichever
/// is longer.
const LATE_FACTOR: f64 = 4.0;
/// Decrease of the window's share in one window of late answers.
const LATE_DECREASE: f64 = 0.25;
/// Increase of the window's share in one window of other answers.
const INCREASE: f64 = 0.05;
/// Increase of the share's limit in one window of answers, after a loss.
const SHARE_MAX_INCREASE: f64 = 1.0 / 256.0;
/// Answers without a probe of the delay after which requests wait until nothing is outstanding.
const ANSWERS_WITHOUT_PROBE: u32 = 8192;
/// Number of first requests that all measure the delay. At the pace of the link their answers hardly wait for each
/// other.
const PROBES_FIRST: usize = 8;
/// Weight of the newest sample in means of sizes and times.
const GAIN: f64 = 1.0 / 16.0;
/// Weight of the newest sample in means over all readouts.
const MEAN_GAIN: f64 = 1.0 / 64.0;
/// An answer is overdue if it takes this many times the usual time: a segment was lost.
const OVERDUE_FACTOR: f64 = 4.0;
/// Overdue answers in a row after which their time counts as usual. A few follow each loss that TCP repairs soon.
const LATE_IN_ROW: u32 = 64;
/// Least time until an answer is overdue, in picoseconds. TCP takes longer to repair a lost tail.
const OVERDUE_MIN: f64 = 10e9;
/// Time until an answer is overdue while no usual time is known, in picoseconds: above TCP's least timeout.
const OVERDUE_FIRST: f64 = 250e9;
/// The largest relative decrease of the share with one overdue answer.
const LOSS_DECREASE_MAX: f64 = 0.5;
/// The least share of window and pace.
const SHARE_MIN: f64 = 1.0 / 64.0;

/// The settings of paced credits: properties of the host's own interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacedCreditsConfig {
    /// The rate of the link. Not zero.
    pub rate: Rate,
    /// Payload of a full segment. A request asks for at most [`Self::SEGMENTS`] segments, in whole fragments. Not zero.
    pub segment: Bytes,
    /// Bytes of the same segment on the wire, with headers, preamble, check sequence and inter-packet gap; at least the
    /// payload.
    pub frame: Bytes,
    /// The expected payload of a fragment, until answers show it. Zero: unknown, and the first request is sent alone.
    pub fragment: Bytes,
    /// Bytes of an answer without its payload: those of [`crate::answer_bytes`], or zero where an answer is all payload.
    pub header: Bytes,
}

impl PacedCreditsConfig {
    /// Most full segments of one answer. Larger ones are requested in parts, so that two answers that arrive together
    /// fill little of a switch. Smaller parts would cost more frames.
    pub const SEGMENTS: u64 = 5;

    /// Returns true if rate and segment are above zero, and the frame is no smaller than the segment.
    pub fn is_valid(&self) -> bool {
        !self.rate.is_zero() && !self.segment.is_zero() && self.frame >= self.segment
    }
}

/// The credit that a request holds until its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteCredit {
    number: u64,
    bytes: u64,
    /// Bytes that were outstanding when the request left.
    ahead: u64,
    is_probe: bool,
}

impl ByteCredit {
    /// Returns the bytes of the answer on the wire, as predicted when the request left.
    pub fn bytes(self) -> Bytes {
        Bytes::new(self.bytes)
    }
}

/// A request whose answer is overdue.
#[derive(Debug, Clone, Copy)]
struct OverdueCredit {
    bytes: u64,
    /// Factor by which it lowered the limit of the share.
    decrease: f64,
}

/// A request without an answer.
#[derive(Debug, Clone, Copy)]
struct OutstandingCredit {
    sent: Instant,
    bytes: u64,
    /// Usual bytes of the answer's payload.
    usual: f64,
    event: Option<u64>,
    is_outstanding: bool,
    /// Factor by which it lowered the limit of the share, if its answer was late; 1 otherwise.
    decrease: f64,
}

/// The pacing and the window of one receiver.
#[derive(Debug, Clone)]
pub struct PacedCredits {
    config: PacedCreditsConfig,
    /// Mean payload bytes of a fragment of each readout; zero before its first answer.
    sizes: Vec<f64>,
    /// Arrival of each readout's latest answer that took as long as a timeout. Requests sent before it waited behind it.
    repaired: Vec<Instant>,
    /// Mean payload bytes of a fragment over all readouts.
    fragment: f64,
    /// Mean deviation of events' relative sizes from 1.
    deviation: f64,
    /// Mean bytes of an answer on the wire.
    answer: f64,
    /// Delay from a request to its answer, without the answer's transmission time and without the receiver's own queue.
    delay: Option<DelayEstimate>,
    /// Mean picoseconds from a request to its answer, all queues included.
    response_time: f64,
    /// Mean lead of overtaking answers over overtaken ones, in picoseconds between their requests. FIFO queues do not
    /// change it, so that it measures the variation of the readouts' delays.
    overtaking: f64,
    /// Time of the latest request with an answer.
    youngest: Instant,
    /// The used share of the window: less than 1 after late answers and losses.
    share: f64,
    /// Upper limit of the share, lowered by losses.
    share_max: f64,
    /// Overdue answers in a row.
    overdue_in_row: u32,
    /// The latest answer was later than the window and the outstanding bytes explain.
    is_late: bool,
    /// Answers since the last probe.
    unprobed: u32,
    /// Requests in the order of sending; the oldest may be answered already.
    requests: VecDeque<OutstandingCredit>,
    /// The number of the first of `requests`.
    first: u64,
    outstanding: u64,
    outstanding_max: u64,
    /// Overdue requests by number; they take no part of the window.
    overdue: BTreeMap<u64, OverdueCredit>,
    losses: u64,
    last_arrival: Instant,
    /// Earliest time at which the next request may leave.
    next: Instant,
}

impl PacedCredits {
    /// Makes credits for requests to `readouts` readouts. Until the first answer, the pace alone limits requests of known
    /// size, and a request of unknown size is sent alone.
    ///
    /// # Panics
    /// If the settings are not valid.
    pub fn new(config: PacedCreditsConfig, readouts: usize) -> Self {
        assert!(config.is_valid(), "a link has no rate, or no segments");
        Self {
            sizes: vec![0.0; readouts],
            repaired: vec![Instant::START; readouts],
            fragment: config.fragment.get() as f64,
            deviation: 0.0,
            answer: 0.0,
            delay: None,
            response_time: 0.0,
            overtaking: 0.0,
            youngest: Instant::START,
            share: 1.0,
            share_max: 1.0,
            overdue_in_row: 0,
            is_late: false,
            unprobed: 0,
            requests: VecDeque::new(),
            first: 0,
            outstanding: 0,
            outstanding_max: 0,
            overdue: BTreeMap::new(),
            losses: 0,
            last_arrival: Instant::START,
            next: Instant::START,
            config,
        }
    }

    /// Sets the expected payload of one fragment of a readout, if known beforehand.
    pub fn expect(&mut self, readout: u16, fragment: Bytes) {
        self.sizes[usize::from(readout)] = fragment.get() as f64;
        self.fragment = self.fragment.max(fragment.get() as f64);
    }

    /// Returns the bytes on the wire that may be outstanding before one more request is sent.
    pub fn window(&self) -> Bytes {
        Bytes::new((self.share * self.window_full()) as u64)
    }

    /// Returns the requested bytes on the wire that have not arrived, without overdue ones.
    pub fn outstanding(&self) -> Bytes {
        Bytes::new(self.outstanding)
    }

    /// Returns the most bytes that were ever outstanding.
    pub fn outstanding_max(&self) -> Bytes {
        Bytes::new(self.outstanding_max)
    }

    /// Returns the predicted bytes of overdue answers.
    pub fn overdue(&self) -> Bytes {
        Bytes::new(self.overdue.values().map(|request| request.bytes).sum())
    }

    /// Returns the number of late and overdue answers that lowered pace and window, without overdue ones of late hosts.
    pub fn losses(&self) -> u64 {
        self.losses
    }

    /// Returns true if a request may leave at `now`. Removes overdue requests from the window first.
    #[inline]
    pub fn may_send(&mut self, now: Instant) -> bool {
        self.expire(now);
        now >= self.next && self.room_at().is_some_and(|at| now >= at)
    }

    /// Returns the time of the next call of [`Self::may_send`], if no answer arrives before.
    #[inline]
    pub fn poll_deadline(&self) -> Option<Instant> {
        // An overdue request makes room.
        let overdue = self
            .requests
            .front()
            .map(|oldest| oldest.sent.checked_add(self.overdue_after()).unwrap_or(Instant::FAR_FUTURE));
        let room = [self.room_at(), overdue].into_iter().flatten().min()?;
        Some(room.max(self.next))
    }

    /// Returns the number of a readout's fragments in the next request: equal parts of about
    /// [`PacedCreditsConfig::SEGMENTS`] segments at most. An event without answers has an unknown size, and is
    /// requested in parts of one segment. With many small answers, the first one also arrives sooner.
    #[inline]
    pub fn fragments_of_part(&self, readout: u16, fragments: u16, size: RelativeSize) -> u16 {
        let bytes = self.predict(readout, fragments, size);
        let segments = if size.usual > 0.0 { PacedCreditsConfig::SEGMENTS } else { 1 };
        let most = self.config.segment.get() * segments;
        let parts = (bytes / most as f64) as u64 + 1;
        let parts = parts.min(u64::from(fragments.max(1))) as u16;
        fragments.div_ceil(parts)
    }

    /// Charges a request that leaves. [`Self::on_answer`] or [`Self::on_withdrawn`] returns the credit.
    #[inline]
    pub fn on_sent(&mut self, now: Instant, readout: u16, fragments: u16, size: RelativeSize) -> ByteCredit {
        let bytes = (self.on_wire(self.predict(readout, fragments, size)) as u64).max(1);
        // Without outstanding requests, the answer waits behind no other answer to this receiver.
        let is_first = self.delay.is_none() && self.requests.len() < PROBES_FIRST;
        let is_probe = self.outstanding == 0 || is_first;
        assert!(self.requests.back().is_none_or(|last| last.sent <= now), "time runs backwards");
        let number = self.first + self.requests.len() as u64;
        let credit = ByteCredit { number, bytes, ahead: self.outstanding, is_probe };
        if is_probe {
            self.unprobed = 0;
        }
        self.requests.push_back(OutstandingCredit {
            sent: now,
            bytes,
            usual: self.usual(readout) * f64::from(fragments),
            event: size.event,
            is_outstanding: true,
            decrease: 1.0,
        });
        self.outstanding += bytes;
        self.outstanding_max = self.outstanding_max.max(self.outstanding);
        // After a pause a burst may leave, with as many bytes as the variation of delays spreads in time.
        let burst = OVERTAKING_BURST * self.overtaking;
        let burst = burst.min(BURST_ANSWERS_MAX * self.answer / self.link_rate());
        let burst = burst / (1.0 + BURST_DEVIATIONS * self.deviation);
        let burst = self.share * burst.max(BURST_ANSWERS_MIN * self.window_answer() / self.link_rate());
        let from = self.next.max(Instant::new(now.get().saturating_sub(burst as u64)));
        self.next = Instant::new(from.get().saturating_add((bytes as f64 / self.pace()) as u64));
        credit
    }

    /// Handles the answer to a request that left at `sent`. `answer` has the payload's bytes, and the relative size of
    /// the event so far. Returns the updated relative size.
    #[inline]
    pub fn on_answer(
        &mut self,
        now: Instant,
        readout: u16,
        fragments: u16,
        credit: ByteCredit,
        sent: Instant,
        answer: (Bytes, RelativeSize),
    ) -> RelativeSize {
        assert!(now >= sent && now >= self.last_arrival, "time runs backwards");
        let time = now.saturating_since(sent);
        let is_overdue = self.delay.is_some() && time > self.overdue_after();
        let repaired = &mut self.repaired[usize::from(readout)];
        if time >= RTO_MIN_LINUX {
            *repaired = now;
        }
        let is_repaired = sent < *repaired;
        if !is_repaired && let Some(overdue) = self.overdue.get(&credit.number) {
            self.raise_share_max(*overdue);
        }
        let predicted = self.predicted(credit).get() as f64;
        self.on_withdrawn(credit);
        let (bytes, event) = answer;
        let bytes = bytes.get() as f64;
        let wire = self.on_wire(bytes);
        let usual = self.usual(readout) * f64::from(fragments);
        let usual = if usual > 0.0 { usual } else { bytes };
        let before = event.factor();
        let event = RelativeSize { bytes: event.bytes + bytes, usual: event.usual + usual, ..event };
        self.owe(wire - predicted);
        if event.factor() != before {
            self.predict_again(event);
        }
        let fragment = bytes / f64::from(fragments.max(1));
        update_mean(&mut self.sizes[usize::from(readout)], fragment, GAIN);
        update_mean(&mut self.fragment, fragment, MEAN_GAIN);
        let off = (event.factor().unwrap_or(1.0) - 1.0).abs();
        self.deviation += (off - self.deviation) * MEAN_GAIN;
        self.unprobed = self.unprobed.saturating_add(1);
        update_mean(&mut self.answer, wire, MEAN_GAIN);
        // The time of a repaired answer says nothing about the path. If many answers in a row are late, the path is longer.
        self.overdue_in_row = if is_overdue && !is_repaired { self.overdue_in_row + 1 } else { 0 };
        if !is_overdue || self.overdue_in_row > LATE_IN_ROW {
            let time = time.get() as f64;
            update_mean(&mut self.response_time, time, GAIN);
            let delay = (time - wire / self.link_rate()).max(0.0);
            if credit.is_probe {
                self.add_delay(delay);
            }
            self.update_share(wire, delay, credit.ahead as f64);
            self.update_overtaking(sent);
        }
        self.last_arrival = now;
        event
    }

    /// Handles a request that is given up, or repeated with a new credit.
    ///
    /// # Panics
    /// If the credit was returned before.
    pub fn on_withdrawn(&mut self, credit: ByteCredit) {
        let Some(index) = credit.number.checked_sub(self.first) else {
            let overdue = self.overdue.remove(&credit.number);
            assert!(overdue.is_some(), "a credit comes back twice");
            return;
        };
        let request = &mut self.requests[index as usize];
        assert!(request.is_outstanding, "a credit comes back twice");
        request.is_outstanding = false;
        self.outstanding -= request.bytes;
        self.drop_answered();
    }

    /// Handles a request without an answer within the request timeout.
    pub fn on_timeout(&mut self, credit: ByteCredit) {
        // Late and overdue requests have been counted before.
        let place = credit.number.checked_sub(self.first);
        if let Some(request) = place.map(|place| self.requests[place as usize])
            && request.decrease == 1.0
        {
            self.on_loss(request.bytes as f64);
        }
    }

    /// Checks that every outstanding byte belongs to a request, for tests.
    ///
    /// # Panics
    /// If one does not.
    pub fn check_invariants(&self) {
        let outstanding: u64 =
            self.requests.iter().filter(|request| request.is_outstanding).map(|one| one.bytes).sum();
        assert_eq!(
            self.outstanding, outstanding,
            "the credit in use is not that of requests without an answer"
        );
        assert!(
            self.requests.front().is_none_or(|request| request.is_outstanding),
            "an answered request is kept"
        );
        assert!(
            (SHARE_MIN..=1.0).contains(&self.share),
            "window and pace are no share of what the link carries"
        );
    }

    /// Returns the link's rate in bytes a picosecond.
    #[inline]
    fn link_rate(&self) -> f64 {
        self.config.rate.get() as f64 / 8e12
    }

    /// Returns the rate at which requests leave, in bytes of their answers a picosecond.
    #[inline]
    fn pace(&self) -> f64 {
        self.link_rate() * self.share
    }

    /// Returns the window of an uncongested network, in bytes: a round trip, the variation of delays, and one answer.
    ///
    /// An answer's credit returns with its last byte, which comes later by the answer's time on the link. Variations
    /// shorter than an answer cause no overtaking.
    #[inline]
    fn window_full(&self) -> f64 {
        // Until the delay is known, the pace alone limits requests of known size.
        let Some(delay) = &self.delay else {
            return if self.fragment > 0.0 { OVERDUE_MIN * self.link_rate() } else { 0.0 };
        };
        (delay.base() + OVERTAKING * self.overtaking) * self.link_rate() + self.window_answer() + 1.0
    }

    /// Returns the mean bytes of an answer on the wire, at most [`ANSWER_FRAMES_MAX`] frames, for the window and the
    /// burst.
    #[inline]
    fn window_answer(&self) -> f64 {
        self.answer.min((ANSWER_FRAMES_MAX * self.config.frame.get()) as f64)
    }

    /// Lowers the share if an answer is later than the window and the outstanding bytes explain; raises it otherwise.
    #[inline]
    fn update_share(&mut self, wire: f64, delay: f64, ahead: f64) {
        let full = self.window_full();
        if full == 0.0 {
            return;
        }
        let part = (wire / full).min(1.0);
        let expected = full.max(ahead) / self.link_rate();
        self.share_max = (self.share_max + part * SHARE_MAX_INCREASE).min(1.0);
        self.is_late = delay > LATE_FACTOR * expected;
        self.share += if self.is_late { -part * LATE_DECREASE * self.share } else { part * INCREASE };
        assert!((SHARE_MIN..=1.0).contains(&self.share_max), "the share has a limit that it cannot keep");
        self.share = self.share.clamp(SHARE_MIN, self.share_max);
    }

    /// Updates the mean lead of overtaking answers with the answer to a request that left at `sent`.
    #[inline]
    fn update_overtaking(&mut self, sent: Instant) {
        let most = self.delay.as_ref().map_or(0.0, DelayEstimate::base) * OVERTAKING_DELAYS_MAX;
        let overtaken = self.youngest.saturating_since(sent).get() as f64;
        self.overtaking += (overtaken.min(most) - self.overtaking) * MEAN_GAIN;
        self.youngest = self.youngest.max(sent);
    }

    /// Returns the time at which the window has room for a request if no answer arrives. `None`: the window has room
    /// only after an answer or its timeout.
    ///
    /// The oldest answer is assumed to arrive at the link's rate. It begins after the base delay, but not before the
    /// latest arrival. The second of two large answers is thus requested before the first is complete. Late answers do not
    /// arrive so: a window below an answer then admits one request at a time, which measures the delay anew.
    #[inline]
    fn room_at(&self) -> Option<Instant> {
        let Some(oldest) = self.requests.front().filter(|_| self.outstanding > 0) else {
            return Some(Instant::START);
        };
        let delay = self.delay.as_ref().map_or(f64::INFINITY, DelayEstimate::base);
        if self.unprobed >= ANSWERS_WITHOUT_PROBE {
            return None;
        }
        let excess = (self.outstanding + 1).saturating_sub(self.window().get());
        if excess == 0 {
            return Some(Instant::START);
        }
        if excess >= oldest.bytes || self.is_late && self.window().get() < oldest.bytes {
            return None;
        }
        let begin = oldest.sent.get().saturating_add(delay as u64).max(self.last_arrival.get());
        Some(Instant::new(begin.saturating_add((excess as f64 / self.link_rate()) as u64)))
    }

    /// Returns the time after which an answer is overdue.
    fn overdue_after(&self) -> Duration {
        if self.delay.is_none() {
            return Duration::new(OVERDUE_FIRST as u64);
        }
        Duration::new((OVERDUE_FACTOR * self.response_time).max(OVERDUE_MIN) as u64)
    }

    fn add_delay(&mut self, sample: f64) {
        match &mut self.delay {
            Some(delay) => delay.add(sample),
            None => self.delay = Some(DelayEstimate::new(sample)),
        }
    }

    /// Removes overdue requests from the window.
    #[inline]
    fn expire(&mut self, now: Instant) {
        while let Some(&oldest) = self.requests.front()
            && now.saturating_since(oldest.sent) >= self.overdue_after()
        {
            self.outstanding -= oldest.bytes;
            let late = oldest.decrease;
            let decrease = if late < 1.0 { late } else { self.on_loss(oldest.bytes as f64) };
            self.overdue.insert(self.first, OverdueCredit { bytes: oldest.bytes, decrease });
            self.requests.pop_front();
            self.first += 1;
            self.drop_answered();
        }
    }

    /// Lowers the share by the lost part of the window, and limits it. Returns the factor of the limit.
    fn on_loss(&mut self, bytes: f64) -> f64 {
        self.losses += 1;
        let window = (self.share * self.window_full()).max(1.0);
        let share_max = self.share_max;
        self.share *= 1.0 - (bytes / window).min(LOSS_DECREASE_MAX);
        self.share = self.share.max(SHARE_MIN);
        self.share_max = self.share;
        self.share_max / share_max
    }

    /// Lets the share rise again as after late answers. An answer that comes before TCP's least timeout was late, not lost.
    fn raise_share_max(&mut self, overdue: OverdueCredit) {
        self.losses -= 1;
        self.share_max = (self.share_max / overdue.decrease).min(1.0);
    }

    fn drop_answered(&mut self) {
        while self.requests.front().is_some_and(|request| !request.is_outstanding) {
            self.requests.pop_front();
            self.first += 1;
        }
    }
}

/// Moves a mean towards a sample; the first sample is the mean.
fn update_mean(mean: &mut f64, sample: f64, gain: f64) {
    debug_assert!(sample.is_finite() && sample >= 0.0, "a sample of {sample}");
    *mean = if *mean > 0.0 { *mean + (sample - *mean) * gain } else { sample };
}

#[cfg(test)]
mod tests;

//! Paced credits: a receiver requests bytes at the rate of its own link, with a window that it measures.
//!
//! The idea is that of receiver-driven transports (NDP's pull pacer, ExpressPass, Homa, SIRD), applied to requests. The
//! receiver predicts the size of each answer and sends requests no faster than its link can carry the answers. It keeps
//! at most a measured round trip and [`ANSWERS_QUEUED`] answers outstanding. Nothing is set by hand.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use fanin_units::{Bytes, Duration, Instant, Rate};

/// Answers beyond the round trip in the window: they keep the link busy while answers vary in delay.
const ANSWERS_QUEUED: f64 = 3.0;
/// Answers that may be requested at once after a pause: the link would otherwise wait for the first late one.
const ANSWERS_BURST: f64 = 1.0;
/// A request is a probe of the delay if no more than this share of the window is outstanding.
const PROBE_SHARE: f64 = 0.5;
/// Weight of the newest sample in sizes and delays.
const GAIN: f64 = 1.0 / 16.0;
/// Weight of the newest sample in means over all readouts.
const MEAN_GAIN: f64 = 1.0 / 64.0;
/// The first answers of an event are taken to be larger than usual by this many mean deviations.
const EVENT_DEVIATIONS: f64 = 3.0;
/// The least size of an event, relative to the usual one: an empty first answer must not end the pacing of
/// all others.
const RELATIVE_SIZE_MIN: f64 = 1.0 / 4.0;
/// An answer that takes this many times the usual delay and the window's time is overdue: something was lost.
const OVERDUE_FACTOR: f64 = 4.0;
/// Factor of pace and window after a loss.
const LOSS_FACTOR: f64 = 0.5;
/// The least factor of pace and window.
const SHARE_MIN: f64 = 1.0 / 8.0;
/// Growth of that factor with each answer that is not overdue.
const SHARE_GROWTH: f64 = 1.0 / 1024.0;

/// The settings of paced credits: facts about the host's own interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacedCreditsConfig {
    /// Rate at which payload can arrive: the rate of the link, less the headers of full frames. Not zero.
    pub rate: Rate,
    /// Payload of a full segment. A request asks for at most [`Self::SEGMENTS`] of them, in whole fragments.
    pub segment: Bytes,
}

impl PacedCreditsConfig {
    /// Full segments that one answer has at most. Larger ones are requested in parts, so that two answers that arrive
    /// together fill little of a switch; smaller parts would cost frames.
    pub const SEGMENTS: u64 = 5;
}

/// The credit that a request holds until its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteCredit {
    number: u64,
    bytes: u64,
    is_probe: bool,
}

impl ByteCredit {
    /// The bytes that the answer was predicted to have.
    pub fn bytes(self) -> Bytes {
        Bytes::new(self.bytes)
    }
}

/// A request without an answer.
#[derive(Debug, Clone, Copy)]
struct OutstandingCredit {
    sent: Instant,
    bytes: u64,
    is_open: bool,
}

/// The size of an event in relation to usual ones, as far as its answers tell.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RelativeSize {
    /// Bytes that arrived.
    bytes: f64,
    /// Bytes that these answers usually have.
    usual: f64,
}

/// The pacing and the window of one receiver.
#[derive(Debug)]
pub struct PacedCredits {
    config: PacedCreditsConfig,
    /// Mean bytes of a fragment of each readout; zero before its first answer.
    sizes: Vec<f64>,
    /// Mean bytes of a fragment over all readouts.
    fragment: f64,
    /// Mean bytes of an answer.
    answer: f64,
    /// Mean deviation of events' relative sizes from 1.
    deviation: f64,
    /// Picoseconds from a request to its answer on idle links, without the answer's own time on the link.
    delay: Option<f64>,
    /// Factor of pace and window, below 1 after losses.
    share: f64,
    /// Before this time another loss counts as the same.
    hold_cuts: Instant,
    /// Requests in the order of sending, the oldest of which may be answered.
    requests: VecDeque<OutstandingCredit>,
    /// The number of the first of `requests`.
    first: u64,
    outstanding: u64,
    outstanding_max: u64,
    /// Bytes of requests that are overdue: they hold no part of the window.
    overdue: u64,
    losses: u64,
    /// The next request may leave.
    next: Instant,
}

impl PacedCredits {
    /// Credits for requests to `readouts` readouts. Nothing is known about delays and sizes yet: the first request goes
    /// alone.
    ///
    /// # Panics
    /// If the rate or the segment is zero.
    pub fn new(config: PacedCreditsConfig, readouts: usize) -> Self {
        assert!(!config.rate.is_zero() && !config.segment.is_zero(), "a link has a rate and segments");
        Self {
            config,
            sizes: vec![0.0; readouts],
            fragment: 0.0,
            answer: 0.0,
            deviation: 0.0,
            delay: None,
            share: 1.0,
            hold_cuts: Instant::START,
            requests: VecDeque::new(),
            first: 0,
            outstanding: 0,
            outstanding_max: 0,
            overdue: 0,
            losses: 0,
            next: Instant::START,
        }
    }

    /// The bytes that may be outstanding before one more request: a round trip at the link's rate and a few answers.
    pub fn window(&self) -> Bytes {
        // Until the delay is known, one request at a time.
        let Some(delay) = self.delay else { return Bytes::ZERO };
        let bytes = self.share * (delay * self.bytes_per_ps() + ANSWERS_QUEUED * self.answer);
        Bytes::new(bytes as u64)
    }

    /// Bytes that are requested and have not arrived, without those overdue.
    pub fn outstanding(&self) -> Bytes {
        Bytes::new(self.outstanding)
    }

    /// The most bytes that were ever outstanding.
    pub fn outstanding_max(&self) -> Bytes {
        Bytes::new(self.outstanding_max)
    }

    /// Bytes of requests whose answers are overdue.
    pub fn overdue(&self) -> Bytes {
        Bytes::new(self.overdue)
    }

    /// Times at which overdue answers lowered pace and window.
    pub fn losses(&self) -> u64 {
        self.losses
    }

    /// True if a request may leave now.
    #[inline]
    pub fn may_send(&mut self, now: Instant) -> bool {
        self.expire(now);
        now >= self.next && self.has_room()
    }

    /// When [`Self::may_send`] has to be asked again, if no answer comes before.
    #[inline]
    pub fn poll_deadline(&self) -> Option<Instant> {
        if self.has_room() {
            return Some(self.next);
        }
        // An overdue request makes room, within a window's worth of them.
        let oldest = self.requests.front().filter(|_| self.may_overcommit())?;
        Some(oldest.sent.checked_add(self.patience()?).unwrap_or(Instant::FAR_FUTURE).max(self.next))
    }

    /// How many of a readout's fragments the next request names: all of them in equal parts of a few segments.
    #[inline]
    pub fn fragments_of_part(&self, readout: u16, fragments: u16, size: RelativeSize) -> u16 {
        let bytes = self.predict(readout, fragments, size);
        let most = self.config.segment.get() * PacedCreditsConfig::SEGMENTS;
        let parts = (bytes / most as f64) as u64 + 1;
        let parts = parts.min(u64::from(fragments.max(1))) as u16;
        fragments.div_ceil(parts)
    }

    /// A request leaves. The credit comes back with [`Self::on_answer`] or [`Self::on_withdrawn`].
    #[inline]
    pub fn on_sent(&mut self, now: Instant, readout: u16, fragments: u16, size: RelativeSize) -> ByteCredit {
        let bytes = (self.predict(readout, fragments, size) as u64).max(1);
        let window = self.window().get() as f64;
        let is_probe = self.delay.is_none() || self.outstanding as f64 <= PROBE_SHARE * window;
        let credit = ByteCredit { number: self.first + self.requests.len() as u64, bytes, is_probe };
        self.requests.push_back(OutstandingCredit { sent: now, bytes, is_open: true });
        self.outstanding += bytes;
        self.outstanding_max = self.outstanding_max.max(self.outstanding);
        // A pause earns no more than the burst.
        let burst = ANSWERS_BURST * self.answer / self.bytes_per_ps();
        let from = self.next.max(Instant::new(now.get().saturating_sub(burst as u64)));
        let gap = bytes as f64 / (self.bytes_per_ps() * self.share);
        self.next = Instant::new(from.get().saturating_add(gap as u64));
        credit
    }

    /// The answer to a request arrived. Returns the relative size of its event with it.
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
        let late = self.patience().is_some_and(|patience| now.saturating_since(sent) > patience);
        self.on_withdrawn(credit);
        let (bytes, event) = answer;
        let bytes = bytes.get() as f64;
        let usual = self.usual(readout) * f64::from(fragments);
        let usual = if usual > 0.0 { usual } else { bytes };
        // What was predicted wrongly is added to the pace, or taken from it.
        if self.delay.is_some() {
            let debt = (bytes - credit.bytes as f64) / self.bytes_per_ps();
            self.next = Instant::new((self.next.get() as f64 + debt).max(0.0) as u64);
        }
        let event = RelativeSize { bytes: event.bytes + bytes, usual: event.usual + usual };
        let fragment = bytes / f64::from(fragments.max(1));
        follow(&mut self.sizes[usize::from(readout)], fragment, GAIN);
        follow(&mut self.fragment, fragment, MEAN_GAIN);
        follow(&mut self.answer, bytes, MEAN_GAIN);
        let off = (event.factor().unwrap_or(1.0) - 1.0).abs();
        self.deviation += (off - self.deviation) * MEAN_GAIN;
        if late {
            self.on_loss(now);
        } else {
            self.share = (self.share + SHARE_GROWTH).min(1.0);
            if credit.is_probe {
                let time = now.saturating_since(sent).get() as f64;
                let sample = (time - bytes / self.bytes_per_ps()).max(0.0);
                let delay = self.delay.get_or_insert(sample);
                *delay += (sample - *delay) * GAIN;
            }
        }
        event
    }

    /// A request is given up, or repeated with a new credit.
    pub fn on_withdrawn(&mut self, credit: ByteCredit) {
        let Some(index) = credit.number.checked_sub(self.first) else {
            let left = self.overdue.checked_sub(credit.bytes);
            self.overdue = left.expect("a credit comes back once");
            return;
        };
        let request = &mut self.requests[index as usize];
        assert!(request.is_open && request.bytes == credit.bytes, "a credit comes back once");
        request.is_open = false;
        self.outstanding -= credit.bytes;
        self.drop_closed();
    }

    /// Checks that every byte outstanding belongs to a request, for tests.
    ///
    /// # Panics
    /// If one does not.
    pub fn check_invariants(&self) {
        let open: u64 = self.requests.iter().filter(|request| request.is_open).map(|one| one.bytes).sum();
        assert_eq!(self.outstanding, open, "requests without an answer hold the credit");
        assert!(self.requests.front().is_none_or(|request| request.is_open), "answered ones are dropped");
        assert!((SHARE_MIN..=1.0).contains(&self.share), "pace and window are a share of the link's");
    }

    #[inline]
    fn bytes_per_ps(&self) -> f64 {
        self.config.rate.get() as f64 / 8e12
    }

    /// The window has room, or nothing is on its way.
    #[inline]
    fn has_room(&self) -> bool {
        self.outstanding == 0 || self.outstanding < self.window().get()
    }

    fn may_overcommit(&self) -> bool {
        self.overdue < self.window().get()
    }

    /// The time after which an answer is overdue.
    fn patience(&self) -> Option<Duration> {
        let answers = (ANSWERS_QUEUED + 1.0) * self.answer / self.bytes_per_ps();
        Some(Duration::new((OVERDUE_FACTOR * (self.delay? + answers)) as u64))
    }

    /// Takes overdue requests out of the window.
    #[inline]
    fn expire(&mut self, now: Instant) {
        let Some(patience) = self.patience() else { return };
        while let Some(oldest) = self.requests.front()
            && now.saturating_since(oldest.sent) >= patience
            && self.may_overcommit()
        {
            self.outstanding -= oldest.bytes;
            self.overdue += oldest.bytes;
            self.requests.pop_front();
            self.first += 1;
            self.on_loss(now);
            self.drop_closed();
        }
    }

    fn on_loss(&mut self, now: Instant) {
        if now < self.hold_cuts {
            return;
        }
        self.losses += 1;
        self.share = (self.share * LOSS_FACTOR).max(SHARE_MIN);
        self.hold_cuts = self.patience().and_then(|time| now.checked_add(time)).unwrap_or(now);
    }

    fn drop_closed(&mut self) {
        while self.requests.front().is_some_and(|request| !request.is_open) {
            self.requests.pop_front();
            self.first += 1;
        }
    }

    /// Mean bytes of a fragment of a readout; zero if nothing is known.
    #[inline]
    fn usual(&self, readout: u16) -> f64 {
        let own = self.sizes[usize::from(readout)];
        if own > 0.0 { own } else { self.fragment }
    }

    /// The bytes that an answer will probably have. An event without answers may be larger than usual.
    #[inline]
    fn predict(&self, readout: u16, fragments: u16, event: RelativeSize) -> f64 {
        let factor = event.factor().unwrap_or(1.0 + EVENT_DEVIATIONS * self.deviation);
        self.usual(readout) * f64::from(fragments) * factor
    }
}

impl RelativeSize {
    fn factor(self) -> Option<f64> {
        (self.usual > 0.0).then(|| (self.bytes / self.usual).max(RELATIVE_SIZE_MIN))
    }
}

/// Moves a mean towards a sample; the first sample is the mean.
fn follow(mean: &mut f64, sample: f64, gain: f64) {
    *mean = if *mean > 0.0 { *mean + (sample - *mean) * gain } else { sample };
}

#[cfg(test)]
mod tests;

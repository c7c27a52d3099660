//! Link impairment: loss, duplication, delay, jitter and reordering of the frames that leave a port, drawn from a seed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fanin_units::{Duration, Instant, Ratio};

use crate::config::ImpairSpec;
use crate::driver::Received;
use crate::random::SplitMix64;

/// The decision of an impairment on a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FrameFate {
    /// Sends the frame at this time, with a copy if `twice` is set.
    Delay { until: Instant, twice: bool },
    /// Drops the frame.
    Lose,
}

/// The impairment of one output, with the frames that it delays, ordered by time.
#[derive(Debug)]
pub(super) struct Impairment<H> {
    spec: ImpairSpec,
    random: SplitMix64,
    /// Departure time of the last frame that keeps its order.
    last: Instant,
    sequence: u64,
    delayed: BinaryHeap<Reverse<(Instant, u64)>>,
    frames: std::collections::HashMap<u64, Received<H>>,
}

impl<H: Copy> Impairment<H> {
    pub(super) fn new(spec: ImpairSpec, random: SplitMix64) -> Self {
        Self {
            spec,
            random,
            last: Instant::START,
            sequence: 0,
            delayed: BinaryHeap::new(),
            frames: std::collections::HashMap::new(),
        }
    }

    pub(super) const fn set(&mut self, spec: ImpairSpec) {
        self.spec = spec;
    }

    const fn happens(&mut self, share: Ratio) -> bool {
        // A share of zero draws nothing, so that the other draws stay the same.
        share.get() > 0 && self.random.below(1_000_000) < share.get()
    }

    /// Draws the fate of a frame that occupies the link for `sending` from `now` on. Its delay begins with its last bit, as
    /// on a real link.
    pub(super) fn draw(&mut self, now: Instant, sending: Duration) -> FrameFate {
        if self.happens(self.spec.loss) {
            return FrameFate::Lose;
        }
        let twice = self.happens(self.spec.duplicate);
        if self.happens(self.spec.reorder) {
            return FrameFate::Delay { until: now, twice };
        }
        let jitter = match self.spec.jitter.get() {
            0 => 0,
            most => self.random.below(most + 1),
        };
        let delay = sending.get().saturating_add(self.spec.delay.get()).saturating_add(jitter);
        let at = Instant::new(now.get().saturating_add(delay));
        self.last = at.max(self.last);
        FrameFate::Delay { until: self.last, twice }
    }

    /// Returns true if another frame can be delayed.
    pub(super) fn has_room(&self) -> bool {
        self.frames.len() < self.spec.frames as usize
    }

    /// Delays a frame until `at`.
    ///
    /// # Panics
    /// If the queue is full.
    pub(super) fn put(&mut self, at: Instant, frame: Received<H>) {
        assert!(self.has_room(), "an impairment of {} frames gets one more", self.spec.frames);
        self.delayed.push(Reverse((at, self.sequence)));
        self.frames.insert(self.sequence, frame);
        self.sequence += 1;
    }

    /// Returns the departure time of the next delayed frame.
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.delayed.peek().map(|Reverse((at, _))| *at)
    }

    /// Removes the next frame that is due by `now`.
    pub(super) fn poll_frame(&mut self, now: Instant) -> Option<Received<H>> {
        if self.next_at().is_none_or(|at| at > now) {
            return None;
        }
        let Reverse((_, sequence)) = self.delayed.pop()?;
        let frame = self.frames.remove(&sequence);
        assert!(frame.is_some(), "delayed frame {sequence} left before its time");
        frame
    }

    pub(super) fn len(&self) -> usize {
        self.frames.len()
    }

    /// Returns true if it was ended and delays no frame any more.
    pub(super) fn is_over(&self) -> bool {
        self.spec.is_none() && self.frames.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(spec: ImpairSpec, seed: u64) -> Vec<u32> {
        let mut way = Impairment::new(spec, SplitMix64::new(seed, 0));
        let mut out = Vec::new();
        for n in 0..10_000u32 {
            let now = Instant::START + Duration::from_micros(n.into());
            while let Some(frame) = way.poll_frame(now) {
                out.push(frame.bytes);
            }
            if let FrameFate::Delay { until, twice } = way.draw(now, Duration::ZERO) {
                for _ in 0..=u8::from(twice) {
                    way.put(until, Received { handle: (), bytes: n });
                }
            }
        }
        while let Some(frame) = way.poll_frame(Instant::FAR_FUTURE) {
            out.push(frame.bytes);
        }
        out
    }

    fn share(text: &str) -> Ratio {
        text.parse().unwrap()
    }

    #[test]
    fn shares_are_kept_and_seeds_repeat() {
        let spec = ImpairSpec {
            delay: Duration::from_micros(50),
            jitter: Duration::from_micros(20),
            loss: share("10 %"),
            duplicate: share("5 %"),
            ..ImpairSpec::default()
        };
        let out = run(spec, 1);
        assert_eq!(out, run(spec, 1));
        assert_ne!(out, run(spec, 2));
        assert!(out.is_sorted(), "jitter keeps the order");
        let mut distinct = out.clone();
        distinct.dedup();
        assert!((8_800..9_200).contains(&distinct.len()), "{}", distinct.len());
        assert!((380..520).contains(&(out.len() - distinct.len())), "{}", out.len() - distinct.len());
    }

    #[test]
    fn reordered_frames_overtake() {
        let delay = Duration::from_micros(50);
        let out = run(ImpairSpec { delay, reorder: share("10 %"), ..ImpairSpec::default() }, 1);
        assert_eq!(out.len(), 10_000);
        let overtaken = out.windows(2).filter(|pair| pair[1] < pair[0]).count();
        assert!((700..1_100).contains(&overtaken), "{overtaken}");
    }
}

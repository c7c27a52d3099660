//! A bad way: loss, duplication, delay, jitter and reordering of what leaves a port, by seed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fanin_units::{Instant, Ratio};

use crate::config::ImpairSpec;
use crate::driver::Received;
use crate::random::Random;

/// What becomes of a frame that enters the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It comes at this time, and where `twice` is set, a copy of it too.
    Comes { at: Instant, twice: bool },
    /// It is lost.
    Lost,
}

/// Frames on the way, by the time at which they come out.
#[derive(Debug)]
pub(crate) struct Impairment<H> {
    spec: ImpairSpec,
    random: Random,
    /// Where order is kept, nothing comes before this.
    last: Instant,
    sequence: u64,
    on_the_way: BinaryHeap<Reverse<(Instant, u64)>>,
    frames: std::collections::HashMap<u64, Received<H>>,
}

impl<H: Copy> Impairment<H> {
    pub(crate) fn new(spec: ImpairSpec, random: Random) -> Self {
        Self {
            spec,
            random,
            last: Instant::START,
            sequence: 0,
            on_the_way: BinaryHeap::new(),
            frames: std::collections::HashMap::new(),
        }
    }

    pub(crate) const fn set(&mut self, spec: ImpairSpec) {
        self.spec = spec;
    }

    const fn happens(&mut self, share: Ratio) -> bool {
        // A share of zero draws nothing, so that what else is random stays the same.
        share.get() > 0 && self.random.below(1_000_000) < share.get()
    }

    /// Draws a frame's fate.
    pub(crate) fn draw(&mut self, now: Instant) -> Fate {
        if self.happens(self.spec.loss) {
            return Fate::Lost;
        }
        let twice = self.happens(self.spec.duplicate);
        if self.happens(self.spec.reorder) {
            return Fate::Comes { at: now, twice };
        }
        let jitter = match self.spec.jitter.get() {
            0 => 0,
            most => self.random.below(most + 1),
        };
        let at = Instant::new(now.get().saturating_add(self.spec.delay.get()).saturating_add(jitter));
        self.last = at.max(self.last);
        Fate::Comes { at: self.last, twice }
    }

    /// Whether one frame more may be on the way.
    pub(crate) fn has_room(&self) -> bool {
        self.frames.len() < self.spec.frames as usize
    }

    /// A frame comes out at `at`.
    pub(crate) fn put(&mut self, at: Instant, frame: Received<H>) {
        self.on_the_way.push(Reverse((at, self.sequence)));
        self.frames.insert(self.sequence, frame);
        self.sequence += 1;
    }

    /// When the next frame comes out.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.on_the_way.peek().map(|Reverse((at, _))| *at)
    }

    /// A frame that is due.
    pub(crate) fn take(&mut self, now: Instant) -> Option<Received<H>> {
        if self.next_at().is_none_or(|at| at > now) {
            return None;
        }
        let Reverse((_, sequence)) = self.on_the_way.pop()?;
        self.frames.remove(&sequence)
    }

    pub(crate) fn len(&self) -> usize {
        self.frames.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanin_units::Duration;

    fn run(spec: ImpairSpec, seed: u64) -> Vec<u32> {
        let mut way = Impairment::new(spec, Random::new(seed, 0));
        let mut out = Vec::new();
        for n in 0..10_000u32 {
            let now = Instant::START + Duration::from_micros(n.into());
            while let Some(frame) = way.take(now) {
                out.push(frame.bytes);
            }
            if let Fate::Comes { at, twice } = way.draw(now) {
                for _ in 0..=u8::from(twice) {
                    way.put(at, Received { handle: (), bytes: n });
                }
            }
        }
        while let Some(frame) = way.take(Instant::FAR_FUTURE) {
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

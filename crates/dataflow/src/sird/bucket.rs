//! Limit of a sender's outstanding credit: the smaller one of two control loops like DCTCP's (§4.2).

/// A control loop for the size of a bucket, driven by the marks of the network or by those of the sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Loop {
    bytes: u32,
    /// Moving average of the marked share, in millionths (α of RFC 8257).
    alpha: u32,
    seen: u32,
    marked: u32,
}

/// Millionths in one.
const ONE: u64 = 1_000_000;

impl Loop {
    fn note(&mut self, bytes: u32, is_marked: bool, bounds: &Bounds) {
        self.seen += bytes;
        if is_marked {
            self.marked += bytes;
        }
        // Once for each bucket of data, which is about a round trip.
        if self.seen < self.bytes {
            return;
        }
        assert!(self.marked <= self.seen && self.seen > 0, "more bytes marked than seen");
        let share = u64::from(self.marked) * ONE / u64::from(self.seen);
        let gain = u64::from(bounds.gain);
        self.alpha = ((u64::from(self.alpha) * (ONE - gain) + share * gain) / ONE) as u32;
        self.bytes = if self.marked > 0 {
            let kept = 2 * ONE - u64::from(self.alpha);
            ((u64::from(self.bytes) * kept / (2 * ONE)) as u32).max(bounds.step)
        } else {
            (self.bytes + bounds.step).min(bounds.most)
        };
        assert!((bounds.step..=bounds.most).contains(&self.bytes), "a bucket outside of its bounds");
        (self.seen, self.marked) = (0, 0);
    }
}

/// The limits and gain of the loops.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Bounds {
    /// Bytes of a packet: the least size of a bucket, and the growth of a bucket.
    pub(super) step: u32,
    pub(super) most: u32,
    /// Weight of the newest share, in millionths.
    pub(super) gain: u32,
}

/// A receiver's credit for one sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SenderBucket {
    network: Loop,
    sender: Loop,
}

impl SenderBucket {
    /// Makes a full bucket, as sensitive to the first mark as a new DCTCP connection (RFC 8257 §3.4).
    pub(super) fn new(bounds: &Bounds) -> Self {
        let full = Loop { bytes: bounds.most, alpha: ONE as u32, seen: 0, marked: 0 };
        Self { network: full, sender: full }
    }

    /// Returns the credit that may be outstanding, in bytes.
    #[inline]
    pub(super) fn bytes(&self) -> u32 {
        self.network.bytes.min(self.sender.bytes)
    }

    /// Handles scheduled data that arrived. `marked`: a switch set the ECN mark. `congested`: the sender has more
    /// credit than its link can serve.
    #[inline]
    pub(super) fn note(&mut self, bytes: u32, marked: bool, congested: bool, bounds: &Bounds) {
        self.network.note(bytes, marked, bounds);
        self.sender.note(bytes, congested, bounds);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds { step: 1_000, most: 10_000, gain: 62_500 };

    #[test]
    fn follows_marks_down_and_comes_back() {
        let mut bucket = SenderBucket::new(&BOUNDS);
        assert_eq!(bucket.bytes(), 10_000);
        // All data marked and α at one: the bucket is halved; after half a bucket it is halved again.
        (0..10).for_each(|_| bucket.note(1_000, true, false, &BOUNDS));
        assert_eq!(bucket.bytes(), 5_000);
        (0..100).for_each(|_| bucket.note(1_000, true, false, &BOUNDS));
        assert_eq!(bucket.bytes(), 1_000, "never below a packet");
        // The other loop has not changed; this one grows by a packet for each bucket of data.
        (0..60).for_each(|_| bucket.note(1_000, false, false, &BOUNDS));
        assert_eq!(bucket.bytes(), 10_000);
        (0..10).for_each(|_| bucket.note(1_000, false, true, &BOUNDS));
        assert!(bucket.bytes() < 10_000, "a congested sender counts by itself");
    }
}

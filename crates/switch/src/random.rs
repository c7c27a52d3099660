//! Random numbers from a seed: the same on every machine.

use fanin_units::{MIX_STEP, mix};

/// SplitMix64 (Steele, Lea and Flood 2014): small and fast.
#[derive(Debug, Clone)]
pub(crate) struct SplitMix64(u64);

impl SplitMix64 {
    /// Makes the stream with the number `stream` from a seed.
    pub(crate) const fn new(seed: u64, stream: u64) -> Self {
        Self(seed ^ stream.wrapping_add(1).wrapping_mul(0xd1b5_4a32_d192_ed03))
    }

    #[inline]
    pub(crate) const fn next_u64(&mut self) -> u64 {
        let mixed = mix(self.0);
        self.0 = self.0.wrapping_add(MIX_STEP);
        mixed
    }

    #[inline]
    pub(crate) const fn next_u32(&mut self) -> u32 {
        (self.next_u64() >> 32) as u32
    }

    /// Draws a whole number below `bound`, or returns 0 if `bound` is 0.
    pub(crate) const fn below(&mut self, bound: u64) -> u64 {
        ((self.next_u64() as u128 * bound as u128) >> 64) as u64
    }
}

//! Random numbers from a seed: the same on every machine.

/// SplitMix64 (Steele, Lea and Flood 2014): small and fast.
#[derive(Debug, Clone)]
pub(crate) struct SplitMix64(u64);

impl SplitMix64 {
    /// Makes the stream of this number for a seed.
    pub(crate) const fn new(seed: u64, stream: u64) -> Self {
        Self(seed ^ stream.wrapping_add(1).wrapping_mul(0xd1b5_4a32_d192_ed03))
    }

    #[inline]
    pub(crate) const fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    #[inline]
    pub(crate) const fn next_u32(&mut self) -> u32 {
        (self.next_u64() >> 32) as u32
    }

    /// A whole number below `bound`, or 0 if `bound` is 0.
    pub(crate) const fn below(&mut self, bound: u64) -> u64 {
        ((self.next_u64() as u128 * bound as u128) >> 64) as u64
    }
}

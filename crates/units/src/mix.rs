//! A function that spreads bits, for seeds and hashes.

/// The increment of `SplitMix64`.
pub const MIX_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// One step of `SplitMix64` (Steele, Lea, Flood 2014): spreads every bit of the input over the output. The generator's
/// next number is `mix` of its state, which then grows by [`MIX_STEP`].
#[inline]
pub const fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(MIX_STEP);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

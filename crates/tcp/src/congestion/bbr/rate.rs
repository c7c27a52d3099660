//! Bandwidths and gains as fixed-point numbers.

/// A bandwidth is in segments a microsecond, times 2 to this power (`BW_SCALE`).
pub(super) const RATE_SHIFT: u32 = 24;
/// A gain is in 1/256 (`BBR_SCALE`).
pub(super) const UNIT_SHIFT: u32 = 8;
pub(super) const UNIT: u64 = 1 << UNIT_SHIFT;
/// Margin by which pacing stays below the bandwidth, so that no queue builds up (`bbr_pacing_margin_percent`).
const MARGIN_PERCENT: u64 = 1;

/// Bytes a second of a bandwidth and a gain, less the margin (`bbr_rate_bytes_per_sec`).
pub(super) fn bytes_per_second(rate: u64, gain: u64, mss: u64) -> u64 {
    let gained = (u128::from(rate) * u128::from(mss) * u128::from(gain)) >> UNIT_SHIFT;
    ((gained * u128::from(1_000_000 / 100 * (100 - MARGIN_PERCENT))) >> RATE_SHIFT) as u64
}

//! The static window: a congestion window of constant size (thesis §6.4, ICC'15 §IV).

use crate::config::Config;

/// The window in units. It neither grows nor falls.
#[inline]
pub(super) fn cwnd(config: &Config, segments: u32) -> u32 {
    segments.saturating_mul(config.segment_units())
}

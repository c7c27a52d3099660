//! The static window: a congestion window of constant size (thesis §6.4, ICC'15 §IV).

use crate::config::{Config, CongestionConfig};

/// The window in units. It neither grows nor falls.
#[inline]
pub(super) fn cwnd(config: &Config) -> u32 {
    let CongestionConfig::Static { static_window } = config.congestion_control else {
        unreachable!("a connection keeps its algorithm")
    };
    static_window.saturating_mul(config.segment_units())
}

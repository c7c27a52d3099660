//! M21TCP's sender: switches grant a window, which bounds the congestion window of whatever algorithm runs
//! (M21TCP §III.C).

use super::window::CongestionWindow;
use crate::config::Config;

impl CongestionWindow {
    /// Bounds the window by the `bytes` granted, but not below a segment (equation (2)).
    pub(crate) fn limit_to_grant(&mut self, config: &Config, bytes: u32) {
        let segments = (bytes.saturating_sub(config.m21_deduction) / u32::from(config.mss)).max(1);
        self.set_clamp(config, segments);
    }
}

//! M21TCP's sender: switches grant a window, which bounds the congestion window of whatever algorithm runs
//! (M21TCP §III.C).

use crate::config::Config;
use crate::endpoint::Endpoint;

impl Endpoint {
    /// Bounds the congestion window by the `bytes` granted, but not below a segment (equation (2)).
    pub fn limit_window(&mut self, config: &Config, bytes: u32) {
        let segments = (bytes.saturating_sub(config.m21_deduction) / u32::from(config.mss)).max(1);
        self.set_cwnd_clamp(config, segments);
    }
}

//! The path window: the least window that switches on the path have written into an option of the data. The receiver
//! echoes it, and it bounds the window of any algorithm (M21TCP §III.C).

use super::window::CongestionWindow;
use crate::config::Config;

impl CongestionWindow {
    /// Bounds the window by the granted `bytes`, but not below a segment (M21TCP equation (2)).
    pub(crate) fn limit_to_path(&mut self, config: &Config, bytes: u32) {
        let segments = (bytes.saturating_sub(config.path_window_deduction) / u32::from(config.mss)).max(1);
        self.set_clamp(config, segments);
    }
}

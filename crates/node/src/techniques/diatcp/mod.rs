//! DIATCP: the receiver's window limits the window of CUBIC. A collector divides one window among its connections.
//!
//! [`barrier`] does so for the aggregator of a barrier workload, [`collector`] for event building.

pub(crate) mod barrier;
pub(crate) mod collector;

use fanin_dataflow::WindowShares;
use fanin_scenario::{CongestionControl, Scenario};

use super::live::{LiveTechnique, Sysctl};

/// Smallest window with a scale factor, bytes (RFC 7323 §2.2). Without a scale factor, the kernel never reduces an advertised
/// window (`__tcp_select_window`).
const SCALED_WINDOW_MIN: u64 = 1 << 16;

pub(super) const TECHNIQUE: LiveTechnique = LiveTechnique {
    // A smaller window takes effect at once, not after the larger one is used up.
    sysctls: &[Sysctl {
        name: "tcp_shrink_window",
        value: "1",
        effect: ["windows that shrink at once", "a larger window is used up first"],
    }],
    receive_window: |scenario| Some(GlobalWindow::of(scenario)?.clamp_max()),
    ..LiveTechnique::kernel("cubic")
};

/// The window that a collector divides.
#[derive(Debug, Clone, Copy)]
pub(super) struct GlobalWindow {
    /// Segments that may be in flight from all senders together.
    segments: u32,
    /// Payload of a full segment, bytes.
    segment: u32,
}

impl GlobalWindow {
    /// Returns the window of a scenario; `None` unless it uses DIATCP.
    fn of(scenario: &Scenario) -> Option<Self> {
        let transport = &scenario.transport;
        let saturated = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        (transport.congestion_control == CongestionControl::Diatcp).then(|| Self {
            segments: saturated(transport.diatcp.global_window.get()),
            segment: saturated(transport.segment_payload().get().max(1)),
        })
    }

    fn bytes(self) -> u64 {
        u64::from(self.segments) * u64::from(self.segment)
    }

    /// Returns the largest window that a connection may ever advertise, bytes. As a clamp before the connection is made, it
    /// also sets the window scale: a smaller scale makes shares more exact.
    fn clamp_max(self) -> u64 {
        self.bytes().max(SCALED_WINDOW_MIN)
    }

    fn shares(self, scenario: &Scenario) -> WindowShares {
        let is_deadline_aware = scenario.transport.diatcp.deadline_aware;
        WindowShares::new(self.segments, scenario.workload.deadline, is_deadline_aware)
    }
}

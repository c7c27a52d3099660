//! Sums over the whole network at one time.

use fanin_network::{Network, PortIndex};
use fanin_units::Instant;

/// Sums over the whole network at one time.
#[derive(Clone, Debug, Default)]
pub struct RunTotals {
    /// The time of these sums.
    pub at: Instant,
    /// Frames that hosts have sent.
    pub frames: u64,
    /// Bytes on the wire of the frames that hosts have sent.
    pub bytes: u64,
    /// Frames that switches dropped.
    pub drops: u64,
    /// Frames that links lost at random; `None` if no link loses frames.
    pub link_losses: Option<u64>,
    /// Frames that switches marked.
    pub marks: u64,
    /// Segments that endpoints sent.
    pub segments: u64,
    /// Segments that endpoints retransmitted.
    pub retransmits: u64,
    /// Retransmission timers that expired.
    pub timeouts: u64,
    /// Entries into fast recovery.
    pub fast_retransmits: u64,
    /// Retransmissions of segments that had arrived.
    pub spurious_retransmits: u64,
    /// Tail loss probes that endpoints sent.
    pub tail_loss_probes: u64,
    /// Wire bytes that arrived over each port's link.
    pub port_bytes: Vec<u64>,
    /// Payload bytes that arrived over each port's link at their destination.
    pub port_payload: Vec<u64>,
}

impl RunTotals {
    /// Returns the bytes that arrived over a port's link since `before`.
    pub(crate) fn port_bytes_since(&self, before: &Self, port: PortIndex) -> u64 {
        self.port_bytes[port as usize] - before.port_bytes[port as usize]
    }

    /// Returns each port's utilisation since `before`, as a share of its link's rate; empty if no time has passed. A frame counts
    /// whole when it arrives, also if it began before. So the share is capped at 1.
    pub(crate) fn utilisation_since(&self, before: &Self, network: &Network) -> Vec<f64> {
        let seconds = self.at.saturating_since(before.at).as_secs_f64();
        if seconds == 0.0 {
            return Vec::new();
        }
        let share = |port: PortIndex| {
            let bytes = self.port_bytes_since(before, port);
            (bytes as f64 * 8.0 / seconds / network.link(port).rate.get() as f64).min(1.0)
        };
        network.ports().map(share).collect()
    }
}

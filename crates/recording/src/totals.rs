//! Sums over the whole network at one time.

use fanin_network::{Network, PortIndex};
use fanin_units::Instant;

/// Counts of endpoints: segments, retransmits, timeouts, fast retransmits, spurious retransmits, tail loss probes.
pub type EndpointCounts = [u64; 6];

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
    /// Counts of the workload's endpoints.
    pub own: EndpointCounts,
    /// Counts of the endpoints of background connections.
    pub background: EndpointCounts,
    /// Payload bytes that each background connection has delivered.
    pub background_delivered: Vec<u64>,
    /// Wire bytes that arrived over each port's link.
    pub port_bytes: Vec<u64>,
    /// Payload bytes that arrived over each port's link at their destination.
    pub port_payload: Vec<u64>,
}

impl RunTotals {
    /// Returns the counts of the workload's endpoints since `before`.
    pub(crate) fn own_since(&self, before: &Self) -> EndpointCounts {
        std::array::from_fn(|place| self.own[place] - before.own[place])
    }

    /// Returns the counts of the background's endpoints since `before`.
    pub(crate) fn background_since(&self, before: &Self) -> EndpointCounts {
        std::array::from_fn(|place| self.background[place] - before.background[place])
    }

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

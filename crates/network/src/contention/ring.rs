//! The ring of a software switch in front of a collector, and its rate limit.
//!
//! If all answers to a collector pass one ring, its token bucket limits them. In any time `t` it lets `rate × t` bytes pass, and at
//! most one burst and one frame beyond these. A server of that rate behind the ring would hold no more than the burst and the frame.
//! So it would pass each byte at most `ahead` later, the time of these bytes at the rate. That is a preemptive schedule of the jobs
//! on a link machine of that rate. Each job ends there at most `ahead` later than in the network.

use fanin_units::{Bytes, Duration, Rate};

use crate::{Network, PortIndex, Roles};

/// The rate limit of a ring that all answers to a collector pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RingLimit {
    /// The rate, below that of the link.
    pub(super) rate: Rate,
    /// The time at this rate of a burst and a frame.
    pub(super) ahead: Duration,
}

impl RingLimit {
    /// Returns the limit of the ring of collector `place`, whose host has these ports towards it. `None` if the link is slower,
    /// or if some answers pass no ring.
    pub(super) fn of(network: &Network, roles: &Roles, place: usize, ports: &[PortIndex]) -> Option<Self> {
        // In a hybrid, the switch with the rings is on a detour.
        let &[port] = ports else { return None };
        let rate = network.ring_rate(port).filter(|_| roles.software.is_none())?;
        let node = network.source(port);
        let rings = network.switch(node)?.rings()?;
        let has_ring = |readout| network.names(node, [("readout", readout), ("collector", place as u32)]);
        if !(0..roles.readouts.len() as u32).all(has_ring) {
            return None;
        }
        let framing = network.framing;
        let frame = u64::from(network.frame_bytes - framing.stored_bytes + framing.link_bytes);
        let ahead = rings.burst.get().checked_add(frame)?;
        Some(Self { rate, ahead: rate.checked_time_to_send(Bytes::new(ahead))? })
    }
}

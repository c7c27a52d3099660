//! SIRD: a receiver grants credit to its senders.

use fanin_scenario::{CongestionControl, Scenario};
use fanin_units::{Bytes, Packets};

use super::planned::PlannedTechnique;
use crate::derived::{Derived, brief};
use crate::event_burst::{Burst, EventBurst};

pub(super) const TECHNIQUE: PlannedTechnique = PlannedTechnique {
    limit,
    fixes_windows: is_used,
    first_window: |s| is_used(s).then_some(0),
    unproven: |s| is_used(s).then_some("frames of SIRD are not counted"),
    ..PlannedTechnique::NONE
};

fn is_used(s: &Scenario) -> bool {
    s.transport.congestion_control == CongestionControl::Sird
}

fn limit(s: &Scenario, event: &EventBurst<'_>) -> Option<Burst> {
    if !is_used(s) {
        return None;
    }
    // SIRD's BDP counts the network alone, so that this is the upper bound.
    let bdp = event.system.last_hop.bytes_in(event.system.rtt.value);
    let mss = Bytes::new(event.system.segments.mss());
    let bucket = s.transport.sird.bucket;
    let packets = bucket.of_bytes(bdp).max(mss).div_ceil(mss).min(event.packets().get());
    let frames = Derived::new(
        "burst",
        event.frame * packets,
        "bucket × BDP in frames",
        format!("{bucket} × {} = {packets} × {}", brief(bdp), brief(event.frame)),
        "SIRD §4.1",
    );
    Some(Burst::limited(frames, Packets::new(packets), "the receiver's credit"))
}

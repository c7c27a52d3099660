//! DIATCP: a global window of each collector, shared among its connections.

use fanin_scenario::{CongestionControl, Scenario};
use fanin_units::{Bytes, Packets};

use super::planned::PlannedTechnique;
use crate::bounds::{bandwidth_delay_product, gwnd_range};
use crate::derived::{Derivation, Derived, brief};
use crate::event_burst::{Burst, EventBurst};
use crate::system::SystemFigures;

pub(super) const TECHNIQUE: PlannedTechnique = PlannedTechnique {
    limit,
    fixes_windows: is_used,
    first_window: |s| is_used(s).then_some(0),
    window_rows,
    ..PlannedTechnique::NONE
};

fn is_used(s: &Scenario) -> bool {
    s.transport.congestion_control == CongestionControl::Diatcp
}

fn limit(s: &Scenario, event: &EventBurst<'_>) -> Option<Burst> {
    if !is_used(s) {
        return None;
    }
    // Connections that exceed the global window wait.
    let packets = s.transport.diatcp.global_window.get().min(event.packets().get());
    let frames = Derived::new(
        "burst",
        event.frame * packets,
        "global window in frames",
        format!("{packets} × {}", brief(event.frame)),
        "ICC'15 §IV.D eq. (9)",
    );
    Some(Burst::limited(frames, Packets::new(packets), "the global window"))
}

fn window_rows(_: &Scenario, system: &SystemFigures, buffer: Option<Bytes>) -> Vec<Derivation> {
    let Some(buffer) = buffer else { return Vec::new() };
    let bdp = bandwidth_delay_product(system.last_hop, system.rtt.value);
    let gwnd = gwnd_range(bdp.value, buffer, 1);
    vec![gwnd.min.erase(), gwnd.max.erase()]
}

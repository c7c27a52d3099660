//! Fastpass: an arbiter allocates a timeslot to each packet.

use fanin_scenario::{Scenario, ShapingMethod};

use super::planned::PlannedTechnique;
use crate::bounds::{fastpass_queue_max, fastpass_slots};
use crate::derived::Derivation;
use crate::system::SystemFigures;

pub(super) const TECHNIQUE: PlannedTechnique = PlannedTechnique {
    takes_turns: is_used,
    delays_answers: is_used,
    unproven: |s| is_used(s).then_some("messages of a scheduler are not counted"),
    rows,
    ..PlannedTechnique::NONE
};

fn is_used(s: &Scenario) -> bool {
    s.shaping.method == ShapingMethod::Fastpass
}

fn rows(s: &Scenario, system: &SystemFigures) -> Vec<Derivation> {
    let frame = system.segments.wire_max();
    let edge = system.classes.first().map_or(system.last_hop, |first| first.rate.max(system.last_hop));
    let settings = &s.shaping.fastpass;
    let mut rows = vec![fastpass_slots(edge, frame, u64::from(settings.slot_mtus)).erase()];
    if !settings.clock_error.is_zero() {
        rows.push(fastpass_queue_max(settings.clock_error, system.last_hop, frame).erase());
    }
    rows
}

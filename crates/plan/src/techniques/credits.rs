//! Credits: a fixed number of fragments that a collector may have outstanding.

use fanin_scenario::{Scenario, ShapingMethod};
use fanin_units::Packets;

use super::planned::PlannedTechnique;
use crate::bounds::credit_burst;
use crate::event_burst::{Burst, EventBurst};

pub(super) const TECHNIQUE: PlannedTechnique = PlannedTechnique { limit, ..PlannedTechnique::NONE };

fn limit(s: &Scenario, event: &EventBurst<'_>) -> Option<Burst> {
    if s.shaping.method != ShapingMethod::Credits {
        return None;
    }
    let system = event.system;
    let credits = u64::from(s.shaping.credits);
    let packets = Packets::new(credits / system.fragments * system.answer.segments.get());
    let frames = credit_burst(credits, &system.requests());
    Some(Burst { varies: true, ..Burst::limited(frames, packets, "credits") })
}

//! The barrel shifter: hosts send to one another in phases.

use fanin_scenario::{Scenario, ShapingMethod};

use super::planned::PlannedTechnique;

pub(super) const TECHNIQUE: PlannedTechnique = PlannedTechnique {
    takes_turns: is_used,
    delays_answers: is_used,
    unproven: |s| is_used(s).then_some("messages of a scheduler are not counted"),
    ..PlannedTechnique::NONE
};

fn is_used(s: &Scenario) -> bool {
    s.shaping.method == ShapingMethod::BarrelShifter
}

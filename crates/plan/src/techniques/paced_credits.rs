//! Paced credits: a window and a pace that each collector measures.

use fanin_scenario::{Scenario, ShapingMethod};

use super::planned::PlannedTechnique;

pub(super) const TECHNIQUE: PlannedTechnique = PlannedTechnique {
    delays_answers: is_used,
    unproven: |s| is_used(s).then_some("paced credits measure their window during the run"),
    ..PlannedTechnique::NONE
};

fn is_used(s: &Scenario) -> bool {
    s.shaping.method == ShapingMethod::PacedCredits
}

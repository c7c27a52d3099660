//! Paced credits: a window and a pace that each collector measures.

use fanin_scenario::ShapingMethod;

use super::planned::PlannedTechnique;

pub(super) const TECHNIQUE: PlannedTechnique = PlannedTechnique {
    unproven: |s| {
        let is_used = s.shaping.method == ShapingMethod::PacedCredits;
        is_used.then_some("paced credits measure their window during the run")
    },
    ..PlannedTechnique::NONE
};

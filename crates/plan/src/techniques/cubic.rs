//! CUBIC: windows grow with the time since the last loss.

use fanin_scenario::CongestionControl;

use super::planned::PlannedTechnique;

pub(super) const TECHNIQUE: PlannedTechnique = PlannedTechnique {
    starts_slowly: |s| (s.transport.congestion_control == CongestionControl::Cubic).then_some(true),
    ..PlannedTechnique::NONE
};

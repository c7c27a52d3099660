//! BBR: a model of the path paces the senders.

use fanin_scenario::CongestionControl;

use super::planned::PlannedTechnique;

pub(super) const TECHNIQUE: PlannedTechnique = PlannedTechnique {
    first_window: |s| (s.transport.congestion_control == CongestionControl::Bbr).then_some(0),
    ..PlannedTechnique::NONE
};

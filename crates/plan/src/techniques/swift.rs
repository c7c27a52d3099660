//! Swift: senders hold the delay at a target.

use fanin_scenario::CongestionControl;

use super::planned::PlannedTechnique;

pub(super) const TECHNIQUE: PlannedTechnique = PlannedTechnique {
    is_signalled: |s| s.transport.congestion_control == CongestionControl::Swift,
    ..PlannedTechnique::NONE
};
